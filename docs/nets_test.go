package docs

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/internal/text"
	"onlinerna/nn"
	_ "onlinerna/nn/zoo"
	"onlinerna/train/recipe"
)

var update = flag.Bool("update", false, "write nets.md")

// TestNets compares nets.md with the nets. The flag -update writes it.
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
		photos := ""
		if a.Mean != nil {
			photos = fmt.Sprintf("%d of %d, %s", a.Size, cmp.Or(a.Resize, augment.Margin(a.Size)),
				cmp.Or(a.Interpolation, "bilinear"))
		}
		recipes := ""
		if names := recipe.ForNet(a.Name); names != nil {
			recipes = "~" + strings.Join(names, "~, ~") + "~"
		}
		fmt.Fprintf(&b, "| ~%s~ | %s | %s | %.3g | %d×%d×%d | %s | %s |\n", a.Name, a.Summary, text.Thousands(m.NumParams()),
			float64(flops)/1e9, a.Size, a.Size, a.Channels, photos, recipes)
	}
	page := strings.ReplaceAll(b.String(), "~", "`")
	if *update {
		if err := os.WriteFile("nets.md", []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, "nets.md") != page {
		t.Error("nets.md differs from the nets: run go test ./docs -run TestNets -update")
	}
	if count := fmt.Sprintf("lists %d nets", len(nn.Architectures())); !strings.Contains(read(t, "../README.md"), count) {
		t.Errorf("README.md does not say that rna models %s", count)
	}
}

// byFamily lists the nets, those of a family together, families by their names.
func byFamily() (list []nn.Architecture) {
	list = nn.Architectures()
	slices.SortStableFunc(list, func(a, b nn.Architecture) int { return strings.Compare(a.Family, b.Family) })
	return list
}
