package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"onlinerna/rna/convex"
)

func TestDraw(t *testing.T) {
	x := []float64{0, 1, 2, 3}
	var out bytes.Buffer
	err := Draw(&out, "svg", "a <title>",
		Panel{X: "iteration", Y: "f − f*", Log: true, Curves: []Curve{
			{Name: "gd", X: x, Y: []float64{1, 0.1, 1e-20, -1e-17}},
			{Name: "online_rna_gd", X: x, Y: []float64{1, math.NaN(), math.Inf(1), 1e-3}},
			{Name: "of one's own", X: x[:1], Y: []float64{1}},
		}},
		Panel{X: "iteration", Y: "error", Curves: []Curve{{Name: "gd", X: x, Y: []float64{3, 3, 3, 3}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Online RNA + gradient", "Gradient", "of one", "1e-16", "iteration"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the figure", want)
		}
	}
	d := xml.NewDecoder(&out)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := Draw(io.Discard, "svg", "", Panel{}); err == nil {
		t.Error("nothing was drawn without an error")
	}
	if err := Draw(io.Discard, "svg", "", Panel{Curves: []Curve{{Name: "gd", X: x}}}); err == nil {
		t.Error("x without y was drawn")
	}
}

// Every method has a name and a look of its own.
func TestLegend(t *testing.T) {
	for _, list := range [][]convex.Method{convex.Deterministic(), convex.Stochastic()} {
		seen := map[string]bool{}
		for _, m := range list {
			name := Legend(m.String())
			if name == m.String() || seen[name] {
				t.Errorf("%s is %q in the legend", m, name)
			}
			seen[name] = true
		}
	}
}
