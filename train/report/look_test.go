package report

import (
	"image/color"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"onlinerna/train"
	"onlinerna/train/internal/figure"
	"onlinerna/train/network"
)

// Colours at the ends and in the middle of the scales.
func TestColours(t *testing.T) {
	white := color.RGBA{255, 255, 255, 255}
	mid := func(c color.RGBA, by float64, round func(float64) float64) color.RGBA {
		mix := func(to uint8) uint8 { return uint8(round(255 + by*(float64(to)-255))) }
		return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
	}
	d, w := diverging{}.Colors(), whites{}.Colors()
	for _, c := range []struct {
		name      string
		got, want color.Color
	}{
		{"lowest", d[0], figure.Blue}, {"zero", d[50], white}, {"highest", d[100], figure.Vermilion},
		{"half below", d[25], mid(figure.Blue, .5, math.Round)}, {"half above", d[75], mid(figure.Vermilion, .5, math.Round)},
		{"none", w[0], white}, {"all", w[100], figure.Blue}, {"half", w[50], mid(figure.Blue, .5, math.Floor)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if len(d) != 101 || len(w) != 101 {
		t.Errorf("%d and %d colours", len(d), len(w))
	}
}

// Counts are white on dark cells, those with more than half of a row.
func TestCountsIn(t *testing.T) {
	labels, err := countsIn([][]int{{3, 1}, {0, 2}})
	if err != nil || len(labels.Labels) != 3 {
		t.Fatal(labels, err)
	}
	for i, want := range []struct {
		text  string
		x, y  float64
		white bool
	}{{"3", 0, 1, true}, {"1", 1, 1, false}, {"2", 1, 0, true}} {
		if labels.Labels[i] != want.text || labels.XYs[i].X != want.x || labels.XYs[i].Y != want.y ||
			(labels.TextStyle[i].Color == color.White) != want.white {
			t.Errorf("count %d: %v at %v, %v", i, labels.Labels[i], labels.XYs[i], labels.TextStyle[i].Color)
		}
	}
}

// Ranges of axes by hand: a margin of five per cent on linear ones, more if all values are equal.
func TestLinearSpans(t *testing.T) {
	for _, c := range []struct {
		values []float64
		lo, hi float64
	}{{[]float64{1, 2}, .95, 2.05}, {[]float64{2, 2}, 1.8, 2.2}, {[]float64{0, 0}, 0, 1e-3}, {[]float64{math.NaN()}, 0, 1},
		{[]float64{0, 1, 1.5}, 0, 1.575}} {
		s := series{kind: network.SGD, scores: map[int]network.Score{}}
		for i, v := range c.values {
			s.scores[i+1] = network.Score{Loss: v}
		}
		got := spanOf([]series{s}, func(s network.Score) float64 { return s.Loss })
		if math.Abs(got.lo-c.lo) > 1e-12 || math.Abs(got.hi-c.hi) > 1e-12 || got.log {
			t.Errorf("%v: %+v", c.values, got)
		}
	}
	// The training curve may leave the panel at the lower end, but not below 0.
	trained := series{kind: training, scores: map[int]network.Score{1: {Loss: -1}}}
	others := series{kind: network.SGD, scores: map[int]network.Score{1: {Loss: 1}, 2: {Loss: 2}}}
	if s := spanOf([]series{trained, others}, func(s network.Score) float64 { return s.Loss }); s.lo != 0 || s.hi != 2.1 {
		t.Errorf("%+v", s)
	}
	labels := ""
	for _, tick := range (span{lo: 1e-4, hi: 3e-3, log: true}).ticks() {
		labels += tick.Label + " "
	}
	if labels != "0.0001 0.0003 0.001 0.003 " {
		t.Error(labels)
	}
	labels = ""
	for _, tick := range (span{lo: 1.2, hi: 2.2, log: true}).ticks() {
		labels += tick.Label + " "
	}
	if labels != "1.5 2 " {
		t.Error(labels)
	}
	labels = ""
	for _, tick := range (span{lo: 2.5, hi: 4.5, log: true}).ticks() {
		labels += tick.Label + " "
	}
	if labels != "3 4 " {
		t.Error(labels)
	}
	labels = ""
	for _, tick := range (span{lo: 4.5, hi: 9, log: true}).ticks() {
		labels += tick.Label + " "
	}
	if labels != "5 6 8 " {
		t.Error(labels)
	}
	if list := (span{lo: 1, hi: 1.4, log: true}).ticks(); len(list) != 1 || list[0].Label != "1" {
		t.Errorf("%+v", list)
	}
}

// A panel leaves out a series without a finite value, and has a margin beside the first and the last epoch.
func TestPanelRoom(t *testing.T) {
	c := train.Spec{Epochs: 101}
	list := []series{
		{kind: network.SGD, name: "SGD", scores: map[int]network.Score{1: {Loss: 1}, 101: {Loss: 2}}},
		{kind: network.RNA, name: "RNA", scores: map[int]network.Score{2: {Loss: math.NaN()}}},
	}
	p, err := panel(c, list, "loss", func(s network.Score) float64 { return s.Loss })
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(p.X.Min+1) > 1e-12 || math.Abs(p.X.Max-103) > 1e-12 {
		t.Errorf("epochs from %g to %g", p.X.Min, p.X.Max)
	}
}

// Lines of coefficients have equal lengths, and the comparison with pure noise also works for two coefficients.
func TestCoefficientColumns(t *testing.T) {
	_, h := demo()
	h[9].RNA.C = []float64{.5, .5}
	var b strings.Builder
	if err := CoefficientTable(&b, h[8:]); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for _, line := range lines[1:5] {
		if utf8.RuneCountInString(line) != utf8.RuneCountInString(lines[1]) {
			t.Errorf("%q is not as long as %q", line, lines[1])
		}
	}
	if !strings.Contains(b.String(), "Of 3 iterates that scatter about a point, c is a parabola at the distance 0.000.") {
		t.Error(b.String())
	}
}
