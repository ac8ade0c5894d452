package docs

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/internal/text"
	"onlinerna/nn"
	_ "onlinerna/nn/zoo"
	"onlinerna/train/recipe"
)

var update = flag.Bool("update", false, "write nets.md, and README.md's table and number of nets")

// TestNets compares nets.md, and README.md's table and number of nets, with the nets. The flag -update writes them.
func TestNets(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Nets

This page lists the nets that ~--model~ takes, with their sizes and how they take photographs. ~rna models NET~ adds the
memory of training, the normalisation and other constants. ~go test ./docs -run TestNets -update~ writes the page.

GFLOP are those of an image forward, a multiplication and an addition being two. Photographs are resized to the second
number on the shorter side, and then cropped to the first. Names of nets and of their parameters are torchvision's or
timm's. ~go test ./nn/zoo~ compares parameters, GFLOP and preparation with those that torchvision and timm publish.

`)
	table := "| family | nets | parameters |\n|-|-|-|\n"
	family := ""
	var sizes []sized              // of a family
	var names, parameters []string // of families of four nets at most, which share a row
	row := func() {
		slices.SortStableFunc(sizes, func(a, b sized) int { return cmp.Compare(a.parameters, b.parameters) })
		least, most := sizes[0], sizes[len(sizes)-1]
		nets, of := fmt.Sprintf("~%s~", least.name), millions(least.parameters)
		if len(sizes) > 1 {
			nets, of = fmt.Sprintf("%s to ~%s~", nets, most.name), of+" to "+millions(most.parameters)
		}
		if len(sizes) <= 4 {
			names, parameters = append(names, nets), append(parameters, of)
			return
		}
		table += fmt.Sprintf("| %s | %d, %s | %s |\n", family, len(sizes), nets, of)
	}
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
				row()
			}
			family, sizes = a.Family, nil
			fmt.Fprintf(&b, "## %s\n\n| net | | parameters | GFLOP | input | photographs | recipes |\n|-|-|-|-|-|-|-|\n", family)
		}
		sizes = append(sizes, sized{a.Name, m.NumParams()})
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
	row()
	table += fmt.Sprintf("| others | %s | %s |\n", strings.Join(names, ", "), strings.Join(parameters, ", "))
	page := strings.ReplaceAll(b.String(), "~", "`")
	readme := read(t, "../README.md")
	const first, last = "<!-- nets -->\n", "<!-- end of nets -->\n"
	before, rest, _ := strings.Cut(readme, first)
	_, after, ok := strings.Cut(rest, last)
	if !ok {
		t.Fatalf("README.md lacks %q or %q", first, last)
	}
	count := fmt.Sprintf("lists %d nets", len(nn.Architectures()))
	if !listed.MatchString(before) {
		t.Fatalf("README.md does not say that rna models %s", count)
	}
	want := listed.ReplaceAllString(before, count) + first + strings.ReplaceAll(table, "~", "`") + last + after
	if *update {
		for name, text := range map[string]string{"nets.md": page, "../README.md": want} {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read(t, "nets.md") != page || read(t, "../README.md") != want {
		t.Error("nets.md or README.md differs from the nets: run go test ./docs -run TestNets -update")
	}
}

// listed is README.md's number of nets.
var listed = regexp.MustCompile(`lists \d+ nets`)

// sized is a net with its number of parameters.
type sized struct {
	name       string
	parameters int
}

// millions is a number of parameters to three digits.
func millions(n int) string {
	if n < 1_000_000 {
		return text.Thousands(n)
	}
	return fmt.Sprintf("%.3g M", float64(n)/1e6)
}

// byFamily lists the nets, those of a family together, families by their names.
func byFamily() (list []nn.Architecture) {
	list = nn.Architectures()
	slices.SortStableFunc(list, func(a, b nn.Architecture) int { return strings.Compare(a.Family, b.Family) })
	return list
}
