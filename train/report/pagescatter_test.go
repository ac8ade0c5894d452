package report

import (
	"strings"
	"testing"

	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// By hand: the axes reach from 68 to 442 and from 34 to 238.
func TestScatter(t *testing.T) {
	c := scatterOf("x", [][2]float64{{0, 10}, {50, 30}, {100, 20}}, 6)
	if want := "M68 238h0M255 34h0M442 136h0"; c.Points != want {
		t.Errorf("%s, want %s", c.Points, want)
	}
	if want := "M105.4 238L180.2 34"; c.Diagonal != want { // from 10 to 30 on both
		t.Errorf("%s, want %s", c.Diagonal, want)
	}
	if p := c.Data.Points[1]; p[0] != 255.0 || p[1] != 34.0 || p[2] != "label 50\npredicted 30" {
		t.Errorf("%v", p)
	}
	for _, y := range c.Y {
		if y.TextY != y.At+4 {
			t.Errorf("%+v", y)
		}
	}
	if c.LabelX != c.Left-6 || c.LabelY != c.Bottom+16 || c.NameY != c.Bottom+36 || c.Middle != 255 {
		t.Errorf("%+v", c)
	}
	if c.Title != "x: prediction by label" || !strings.Contains(c.Note, "3 of 6 images") {
		t.Errorf("%s, %s", c.Title, c.Note)
	}
	if c := scatterOf("x", [][2]float64{{5, 7}}, 1); c.Points != "M255 136h0" || c.Diagonal != "" || len(c.X) == 0 {
		t.Errorf("one point: %+v", c)
	}
	if list := marks(span{lo: 0, hi: 1}); len(list) != 11 || list[1].Label != "0.1" {
		t.Errorf("%+v", list)
	}
	if c := scatterOf("x", nil, 0); c.Points != "" || len(c.Data.Points) != 0 {
		t.Errorf("no point: %+v", c)
	}
}

// Options of three numbers or more have a figure of the best scores, with a logarithm where they differ by factors.
func TestOptionScatters(t *testing.T) {
	var list []runs.Run
	for i, rate := range []float64{.001, .01, .1} {
		r := run(1, rate, 100+100*i)
		r.Config.Batch = 32 << (i % 2)
		r.History[0].Best = &hook.BestRecord{Epoch: 1,
			ScoreRecord: hook.ScoreRecord{Kind: network.SGD, Score: *r.History[0].SGD}}
		list = append(list, r)
	}
	figures := optionScatters(GroupRuns(list))
	if len(figures) != 1 { // the batch has two values
		t.Fatalf("%d figures", len(figures))
	}
	c := figures[0]
	if c.Title != "Best error, % by lr" || c.Name != "lr (log scale)" || c.Points != "M68.1 238h0M255 136h0M441.9 34h0" {
		t.Errorf("%s, %s, %s", c.Title, c.Name, c.Points)
	}
	if p := c.Data.Points[0][2]; p != "A: r\nlr 0.001\nbest error 10.00 %" {
		t.Errorf("%q", p)
	}
	// An option that is 0 in a run, or differs by little, has a linear axis.
	for _, values := range [][]float64{{0, .01, 1}, {.06, .5, 1}} {
		var linear []runs.Run
		for i, r := range list {
			r.Config.Schedule.Rate, r.Config.RNA.Beta = .1, &values[i]
			linear = append(linear, r)
		}
		if c := optionScatters(GroupRuns(linear)); len(c) != 1 || c[0].Name != "rna-beta" {
			t.Errorf("%v: %+v", values, c)
		}
	}
	p := &Page{Groups: GroupRuns(list)}
	if page := paged(t, p); !strings.Contains(page, "Scores by option") || strings.Contains(page, "ZgotmplZ") {
		t.Error("the page has no figure")
	}
	if page := paged(t, &Page{Groups: GroupRuns(list[:2])}); strings.Contains(page, "Scores by option") {
		t.Error("two values are drawn")
	}
}
