package docs

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"onlinerna/data/augment"
	"onlinerna/internal/text"
	"onlinerna/nn"
	_ "onlinerna/nn/zoo"
	"onlinerna/train/network"
	"onlinerna/train/recipe"
)

var update = flag.Bool("update", false, "write nets.md, nn/sizes.tsv, and README.md's families and number of nets")

// TestNets compares nets.md, nn/sizes.tsv, and README.md's families and number of nets, with the nets. The flag -update
// writes them.
func TestNets(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Nets

This page lists the nets that ~--model~ takes, with their sizes and how they take photographs. ~rna models NET~ adds the
memory of training, the normalisation and other constants. ~go test ./docs -run TestNets -update~ writes the page.

GFLOP are those of an image forward, a multiplication and an addition being two. Photographs are resized to the second
number on the shorter side, and then cropped to the first. Names of nets and of their parameters are torchvision's or
timm's. ~go test ./nn/zoo~ compares parameters, GFLOP and preparation with those that torchvision and timm publish.

`)
	family := ""
	counts := map[string]int{} // of nets by family
	var sizes []int            // parameters
	var table strings.Builder  // of package nn
	for _, a := range byFamily() {
		m, err := nn.Build(a.Name, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		flops, err := m.FLOPs()
		if err != nil {
			t.Fatal(err)
		}
		if a.Family != family {
			if family != "" {
				b.WriteString("\n")
			}
			family = a.Family
			fmt.Fprintf(&b, "## %s\n\n| net | | parameters | GFLOP | input | photographs | recipes |\n|-|-|-|-|-|-|-|\n", family)
		}
		counts[family]++
		head := network.Head(m)
		outputs, widths := 0, []int{0, 0, 0}
		for _, p := range m.Params {
			if slices.Contains(head, p.Name) {
				outputs += p.Shape.Size()
			} else if len(p.Shape) == 1 && !slices.Contains(widths, p.Shape[0]) {
				widths = append(widths, p.Shape[0])
			}
		}
		slices.Sort(widths)
		slices.Reverse(widths)
		fmt.Fprintf(&table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", a.Name, m.NumParams(), outputs, len(m.Params)-len(head),
			widths[0], widths[1], widths[2])
		sizes = append(sizes, m.NumParams())
		photos := ""
		if a.Mean != nil {
			photos = fmt.Sprintf("%d of %d, %s", a.Size, cmp.Or(a.Resize, augment.Margin(a.Size)),
				cmp.Or(a.Interpolation, "bilinear"))
		}
		recipes := ""
		if names := recipe.ForNet(a.Name); names != nil {
			recipes = "~" + strings.Join(names, "~, ~") + "~"
		}
		fmt.Fprintf(&b, "| ~%s~ | %s | %s | %s | %d×%d×%d | %s | %s |\n", a.Name, a.Summary, text.Thousands(m.NumParams()),
			text.Digits(float64(flops)/1e9), a.Size, a.Size, a.Channels, photos, recipes)
	}
	page := strings.ReplaceAll(b.String(), "~", "`")
	readme := read(t, "../README.md")
	const first, last = "<!-- nets -->\n", "<!-- end of nets -->\n"
	before, rest, _ := strings.Cut(readme, first)
	_, after, ok := strings.Cut(rest, last)
	if !ok {
		t.Fatalf("README.md lacks %q or %q", first, last)
	}
	count := fmt.Sprintf("lists %s nets", text.Thousands(len(nn.Architectures())))
	if !listed.MatchString(before) {
		t.Fatalf("README.md does not say that rna models %s", count)
	}
	want := listed.ReplaceAllString(before, count) + first + families(counts, sizes) + last + after
	if *update {
		for name, text := range map[string]string{"nets.md": page, "../README.md": want, sizesFile: table.String()} {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read(t, "nets.md") != page || read(t, "../README.md") != want || read(t, sizesFile) != table.String() {
		t.Error("nets.md, README.md or nn/sizes.tsv differs from the nets: run go test ./docs -run TestNets -update")
	}
}

const sizesFile = "../nn/sizes.tsv"

// TestTimm counts the nets here among those of which timm has weights, as README.md does.
func TestTimm(t *testing.T) {
	names := strings.Fields(read(t, "../nn/zoo/testdata/timm.txt"))
	here := 0
	for _, name := range names {
		if _, err := nn.Lookup(name); err == nil {
			here++
		}
	}
	if want := fmt.Sprintf("%s of the %s", text.Thousands(here), text.Thousands(len(names))); !strings.Contains(read(t, "../README.md"), want) {
		t.Errorf("README.md does not say %q", want)
	}
}

// listed is README.md's number of nets.
var listed = regexp.MustCompile(`lists [\d,]+ nets`)

// families are README.md's lines about the families with the given numbers of nets, and about their parameters.
func families(counts map[string]int, parameters []int) (lines string) {
	var words []string
	for _, f := range slices.Sorted(maps.Keys(counts)) {
		word := "`" + f + "`"
		if n := counts[f]; n > 1 {
			word += fmt.Sprintf("\u00a0%d", n)
		}
		words = append(words, word)
	}
	list := fmt.Sprintf("Families, and how many nets they have: %s. They have %s to %s parameters.",
		strings.Join(words, ", "), millions(slices.Min(parameters)), millions(slices.Max(parameters)))
	line := ""
	for _, word := range strings.Split(list, " ") {
		if utf8.RuneCountInString(line+" "+word) > 120 {
			lines, line = lines+line+"\n", ""
		}
		line += strings.Repeat(" ", min(len(line), 1)) + word
	}
	return strings.ReplaceAll(lines+line+"\n", "\u00a0", " ")
}

// millions is a number of parameters, large ones to three digits.
func millions(n int) string {
	if n < 1_000_000 {
		return text.Thousands(n)
	}
	if n < 1_000_000_000 {
		return fmt.Sprintf("%.3g million", float64(n)/1e6)
	}
	return fmt.Sprintf("%.3g billion", float64(n)/1e9)
}

// byFamily lists the nets, those of a family together, families by their names.
func byFamily() (list []nn.Architecture) {
	list = nn.Architectures()
	slices.SortStableFunc(list, func(a, b nn.Architecture) int { return strings.Compare(a.Family, b.Family) })
	return list
}
