package zoo_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"onlinerna/nn"
)

// TestPublished compares the nets with what torchvision and timm publish about their weights: parameters,
// multiplications and additions of an image, and how images are prepared.
func TestPublished(t *testing.T) {
	b, err := os.ReadFile("testdata/published.tsv")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		m, err := nn.Build(f[0], nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Error(err)
			continue
		}
		seen[f[0]] = true
		if got := fmt.Sprint(m.NumParams()); got != f[1] {
			t.Errorf("%s: %s parameters, want %s", f[0], got, f[1])
		}
		if f[2] != "" {
			want, _ := strconv.ParseFloat(f[2], 64)
			if flops, err := m.FLOPs(); err != nil || math.Abs(float64(flops)/2e9-want) > .00051 {
				t.Errorf("%s: %.4f·10⁹ pairs, %v; want %s", f[0], float64(flops)/2e9, err, f[2])
			}
		}
		a := m.Arch
		resize, how := cmp.Or(a.Resize, int(math.Round(float64(a.Size)*256/224))), cmp.Or(a.Interpolation, "bilinear")
		got := fmt.Sprintln(a.Size, resize, how, a.Mean, a.Std)
		list := func(s string) string { return "[" + strings.ReplaceAll(s, ",", " ") + "]" }
		if want := fmt.Sprintln(f[3], f[4], f[5], list(f[6]), list(f[7])); got != want {
			t.Errorf("%s takes %s, want %s", f[0], got, want)
		}
	}
	for _, a := range nn.Architectures() {
		if a.Mean != nil && !seen[a.Name] && !strings.Contains(a.Name, "narrow") {
			t.Errorf("published.tsv lacks %s", a.Name)
		}
	}
}

// Each net has the fields that rna models prints, and takes another number of classes and of channels.
func TestArchitectures(t *testing.T) {
	for _, a := range nn.Architectures() {
		if a.Family == "" || a.Summary == "" || a.Reference == "" || (a.Mean == nil) != (a.Classes != 1000) {
			t.Errorf("%+v", a)
		}
		m, err := a.Model(nn.Config{Batch: 2, Classes: 7, Channels: 1, Dropout: .5, DropPath: .1})
		if err != nil {
			t.Error(err)
		} else if m.RandomCounter == nil && a.Dropout+a.DropPath > 0 {
			t.Errorf("%s has no random layer", a.Name)
		}
	}
}

// Inputs that do not fit are refused with the layer and its shapes.
func TestInputs(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want string
	}{
		"vgg16": {300, "layer avgpool: (1, 512, 9, 9) is not a multiple of 7×7 pixels, " +
			"which the linear layers take: choose an input size of 224"},
		"swin_t":   {225, "images of 225×225 pixels: height and width must be multiples of 4: choose an input size of 224 or 228"},
		"vit_b_16": {100, "images of 100×100 pixels: height and width must be multiples of 16: choose an input size of 96 or 112"},
		"maxvit_t": {300, "images of 300×300 pixels: height and width must be multiples of 224: choose an input size of 224 or 448"},
	} {
		_, err := nn.Build(name, nn.Config{Batch: 1, Size: c.size})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s at %d pixels: %v, want …%s…", name, c.size, err, c.want)
		}
	}
}
