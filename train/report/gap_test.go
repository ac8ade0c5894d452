package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/replay"
)

// known is a score on 1000 images for weights that are wrong on images lo to hi.
func known(lo, hi int) *network.Score {
	right := make([]bool, 1000)
	for i := range right {
		right[i] = i < lo || i >= hi
	}
	return &network.Score{Loss: .5, Top1: 100 - float64(hi-lo)/10, Images: 1000, Right: network.NewOutcomes(right)}
}

// 200 and 190 images are wrong, 10 and 0 of them in one only: the paired error is √(10 − 10²/1000)/1000 = 0.31 points,
// that of two sets of images 1.77.
func TestBetween(t *testing.T) {
	g := between(*known(0, 190), *known(0, 200))
	if math.Abs(g.points+1) > 1e-9 || math.Abs(g.deviation-.3146) > 1e-4 || math.Abs(g.p-2./1024) > 1e-12 || !g.paired {
		t.Errorf("%+v", g)
	}
	if got := g.how(1); got != "p = 0.002" {
		t.Error(got)
	}
	if got := g.how(24); got != "p = 0.002; 0.047 corrected for the best of 25" {
		t.Error(got)
	}
	if got := (gap{paired: true, p: 1e-9}).how(10); got != "p < 0.0001; < 0.0001 corrected for the best of 11" {
		t.Error(got)
	}
	if got := (gap{paired: true, p: .2}).how(10); got != "p = 0.2; 1 corrected for the best of 11" {
		t.Error(got)
	}
	for p, want := range map[float64]string{.5: "= 0.5", 1e-4: "= 0.0001", 9.9e-5: "< 0.0001", 2e-5: "< 0.0001"} {
		if got := probability(p); got != want {
			t.Errorf("%v: %s, want %s", p, got, want)
		}
	}
	unknown := *known(0, 200)
	unknown.Right = ""
	if g := between(*known(0, 190), unknown); g.paired || math.Abs(g.deviation-1.7717) > 1e-4 {
		t.Errorf("%+v", g)
	}
}

func TestPairedReports(t *testing.T) {
	c := train.Spec{BestBy: hook.ByError, Data: "d", RNA: average.Options{Mode: average.Offline, Window: 3}}
	r := hook.EpochRecord{Epoch: 1, SGD: known(0, 200), RNA: &hook.RNARecord{Status: "ok", C: []float64{1},
		Score: known(0, 190)}}
	r.Best = &hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.RNA, Score: *known(0, 190)}, Epoch: 1}
	h := []hook.EpochRecord{{Epoch: 0, SGD: known(0, 300)}, r}
	got := table(t, c, h)
	for _, want := range []string{
		"epoch 1, 19.00 %, 1.00 ± 0.31 points below SGD (p = 0.002; 0.0039 corrected for the best of 3).\n",
		"Differences to SGD on the same images, epoch 1: RNA of the last 3 epochs, offline -1.00 ± 0.31 points.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	// Held-out images choose: the gap on validation images needs no correction.
	r.Held = []hook.ScoreRecord{{Kind: network.SGD, Score: *known(0, 210)}, {Kind: network.RNA, Score: *known(0, 190)}}
	if got := verdict(c, []hook.EpochRecord{r}); !strings.HasSuffix(got, ", -1.00 ± 0.31 points to SGD (p = 0.002).\n") {
		t.Error(got)
	}
	var b bytes.Buffer
	curves := []*replay.Curve{{Name: "SGD", Kind: network.SGD, Points: []replay.Point{{Epoch: 1, Val: known(0, 200)}}},
		{Name: "average of 2", Kind: network.Average, Points: []replay.Point{{Epoch: 1, Val: known(0, 190)}}},
		{Name: "average of 3", Kind: network.Average, Points: []replay.Point{{Epoch: 1, Val: known(0, 195)}}},
		{Name: "average of 4", Kind: network.Average}}
	if err := (Replay{c, &replay.Result{Epochs: []int{1}, Curves: curves}}).Table(&b); err != nil ||
		!strings.Contains(b.String(), "-1.00 ± 0.31") || !strings.Contains(b.String(), "± is the paired standard error") {
		t.Errorf("%v\n%s", err, &b)
	}
	want := "Lowest in epoch 1: average of 2, 1.00 ± 0.31 points below SGD,\n" +
		"p = 0.002; 0.0039 corrected for the best of 3 by McNemar's test\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, &b)
	}
	// A name of 30 letters is whole, a longer one is not.
	for name, want := range map[string]string{strings.Repeat("n", 30): strings.Repeat("n", 30) + ", 1.00",
		strings.Repeat("n", 31): strings.Repeat("n", 14) + "…" + strings.Repeat("n", 15) + ", 1.00"} {
		list := []series{{name: "SGD", scores: map[int]network.Score{1: *known(0, 200)}},
			{name: name, scores: map[int]network.Score{1: *known(0, 190)}}}
		if got := lowest(list, 1); !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	one := &replay.Result{Epochs: []int{1}, Curves: []*replay.Curve{{Name: "SGD", Kind: network.SGD,
		Points: []replay.Point{{Epoch: 1, Val: &network.Score{Images: 1, Loss: .5, Top1: 100, Top5: 100}}}}}}
	var lines bytes.Buffer
	if err := (Replay{c, one}).CSV(&lines); err != nil ||
		!strings.HasSuffix(lines.String(), "\n1,SGD,sgd,,,,,,,,,,0.5,100,100,,,,,,\n") {
		t.Errorf("%v\n%s", err, &lines)
	}
	curves[0].Points[0].Val = known(0, 190)
	b.Reset()
	if err := (Replay{c, &replay.Result{Epochs: []int{1}, Curves: curves}}).Table(&b); err != nil ||
		strings.Contains(b.String(), "Lowest in") {
		t.Errorf("%v\n%s", err, &b)
	}
}
