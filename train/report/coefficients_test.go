package report

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"onlinerna/train/hook"
)

func TestCoefficients(t *testing.T) {
	c, h := demo()
	h[5].RNA = nil // nothing extrapolated in epoch 6
	h[3].RNA.C = []float64{0.25, 0.75}
	g := coefficients(h)
	if cols, rows := g.Dims(); cols != 7 || rows != 3 || g.X(0) != 4 {
		t.Errorf("%d columns from epoch %g, %d rows", cols, g.X(0), rows)
	}
	for _, v := range []struct {
		col, row int
		want     float64
	}{{0, 0, 0.75}, {0, 1, 0.25}, {1, 2, -0.25}} {
		if got := g.Z(v.col, v.row); got != v.want {
			t.Errorf("epoch %g, age %d: %g, want %g", g.X(v.col), v.row, got, v.want)
		}
	}
	if !math.IsNaN(g.Z(0, 2)) || !math.IsNaN(g.Z(2, 0)) {
		t.Error("a snapshot that is not there has a coefficient")
	}
	var b bytes.Buffer
	if err := Coefficients(&b, "svg", c, h); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	for _, want := range []string{"<svg", ">epoch<", ">snapshots before the newest<", ">-0.75<", ">0.75<", ">1<", ">5<"} {
		if !strings.Contains(s, want) {
			t.Errorf("the figure lacks %q", want)
		}
	}
	if strings.Contains(s, "NaN") {
		t.Error("the SVG contains what is no number")
	}
	// One extrapolation, and none.
	if err := Coefficients(io.Discard, "svg", c, h[:4]); err != nil {
		t.Error(err)
	}
	if err := Coefficients(io.Discard, "svg", c, h[:2]); err == nil || Extrapolated(h[:2]) || !Extrapolated(h) {
		t.Error("coefficients where nothing was extrapolated")
	}
	if err := Coefficients(io.Discard, "svg", c,
		[]hook.EpochRecord{{Epoch: 1, RNA: &hook.RNARecord{Choice: "kept"}}}); err == nil {
		t.Error("coefficients where the iterate was kept")
	}
}
