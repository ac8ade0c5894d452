package report

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

func TestCompare(t *testing.T) {
	c, h := demo()
	for i := range h {
		h[i].Best = &hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.RNA, Score: *score(16, .3)}, Epoch: 9}
	}
	other := c
	other.Schedule.Rate, other.Classes, other.Out = 0.2, []string{"a rather long name of a class", "b"}, "elsewhere"
	short := h[:7]
	runs := []Finished{{"first", c, h}, {"second", other, short}, {"third", c, nil}}
	var b bytes.Buffer
	if err := Compare(&b, runs); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
A  first
B  second
C  third

   epoch  error %  loss    best: error %  loss    weights
A  10     20.00    0.4000  16.00          0.3000  RNA of epoch 9
B  7      26.00    0.5714  16.00          0.3000  RNA of epoch 9
C  0      -        -       -              -       no epoch is over
Errors and losses are those on validation images; best by error.
B − A, the last epoch: error +6.00 ± 1.19 points (as of two sets of images)
B − A, the best: error 0.00 ± 1.04 points (as of two sets of images)
± is a standard error over images; p is McNemar's, of the same images. Neither knows of other seeds.

Options that differ:
         A    B                         C
classes  -    a rather lo…of a class,b  -
lr       0.1  0.2                       0.1
`, "\n")
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", &b, want)
	}
	b.Reset()
	if err := Compare(&b, []Finished{runs[0], runs[0]}); err != nil || !strings.Contains(b.String(), "same options") {
		t.Errorf("a run and itself: %v\n%s", err, &b)
	}
	b.Reset()
	if err := PlotRuns(&b, "svg", runs); err != nil || !strings.Contains(b.String(), "B: second") ||
		strings.Contains(b.String(), "third") {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	if !strings.Contains(b.String(), "Phase of the learning rate ends") {
		t.Error("no line where the phases of both runs end")
	}
	steady := runs[0]
	steady.Config.Schedule.Kind = schedule.Constant
	b.Reset()
	if err := PlotRuns(&b, "svg", []Finished{runs[0], steady}); err != nil || strings.Contains(b.String(),
		"Phase of the learning rate ends") {
		t.Errorf("a line where the phases of one run end, %v", err)
	}
	if PlotRuns(io.Discard, "svg", runs[2:]) == nil || PlotRuns(io.Discard, "svg", nil) == nil {
		t.Error("nothing is drawn without an error")
	}
}

// Long values with equal beginnings stay distinguishable, and rates have six digits.
func TestDifferences(t *testing.T) {
	run := func(file string, rate float64) Finished {
		return Finished{Config: train.Spec{Init: "runs/the-same-long-folder-of-runs/" + file, HeadRate: rate}}
	}
	rows := differences([]Finished{run("a.pth", 0.028124999999999997), run("b.pth", 0.5)})
	want := map[string][]string{"init": {"runs/the-sa…f-runs/a.pth", "runs/the-sa…f-runs/b.pth"}, "head-lr": {"0.028125",
		"0.5"}}
	if len(rows) != len(want) {
		t.Errorf("rows %v", rows)
	}
	for _, row := range rows {
		if !slices.Equal(row[1:], want[row[0]]) {
			t.Errorf("%s: %v", row[0], row[1:])
		}
	}
}
