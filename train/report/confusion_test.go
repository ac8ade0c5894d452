package report

import (
	"math"
	"strings"
	"testing"
)

func TestConfusion(t *testing.T) {
	var b strings.Builder
	if err := Confusion(&b, "svg", "x<y>", []string{"cat", "dog & co", "none"}, [][]int{{17, 3, 0}, {1, 41, 0},
		{0, 0, 0}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">17<", ">3<", ">41<", ">cat<", ">predicted<", "dog &amp; co"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(b.String(), ">none<") {
		t.Error("a class that does not occur is drawn")
	}
	if strings.Contains(b.String(), "NaN") {
		t.Error("the SVG contains what is no number")
	}
	g := confusion{{3, 1}, {0, 0}} // the first label is on top
	if g.Z(0, 1) != 0.75 || g.Z(1, 1) != 0.25 || !math.IsNaN(g.Z(0, 0)) {
		t.Errorf("%g %g %g", g.Z(0, 1), g.Z(1, 1), g.Z(0, 0))
	}
	if Confusion(&b, "svg", "", []string{"one"}, [][]int{{1}}) == nil {
		t.Error("a matrix of one class is drawn")
	}
}
