package report

import (
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// The line of an epoch names the best weights of the run so far, and their measure unless it is the error on validation
// images.
func TestEpochLine(t *testing.T) {
	score := func(wrong, loss float64) network.Score {
		return network.Score{Top1: 100 - wrong, Loss: loss, Images: 10}
	}
	sgd, rna := score(30, .31), score(20, .4)
	r := hook.EpochRecord{Epoch: 5, SGD: &sgd, RNA: &hook.RNARecord{Status: "ok", Score: &rna},
		Averages: []hook.AverageRecord{{Epochs: 5, Score: score(20, .2)}, {Epochs: 10, Score: score(22, .1)}}}
	c := train.Spec{Epochs: 9, BestBy: hook.ByError}
	best := func(by string, epoch int) {
		list, _ := r.Ranking(by)
		r.Best, c.BestBy = &hook.BestRecord{ScoreRecord: list[0], Epoch: epoch}, by
	}
	for _, x := range []struct {
		by    string
		epoch int
		want  string
	}{
		{hook.ByError, 5, "error: SGD 30.00 %, average of 5 20.00 % (best so far), average of 10 22.00 %, RNA 20.00 %  "},
		{hook.ByLoss, 5, "error: SGD 30.00 %, average of 5 20.00 %, average of 10 22.00 % (best so far by validation " +
			"loss), RNA 20.00 %  "},
		{hook.ByLoss, 4, "error: SGD 30.00 %, average of 5 20.00 %, average of 10 22.00 %, RNA 20.00 %  "},
	} {
		if best(x.by, x.epoch); !strings.Contains(plain(EpochLine(&c, &r)), x.want) {
			t.Errorf("%q, want %q", plain(EpochLine(&c, &r)), x.want)
		}
	}
	best(hook.ByError, 3)
	want := "validation error: average of 5 20.00 %, loss 0.2000; RNA 20.00 %, loss 0.4000; average of 10 22.00 %, " +
		"loss 0.1000; SGD 30.00 %, loss 0.3100; " +
		"best of the run: average of 5 of epoch 3, 20.00 %, loss 0.2000"
	if got := rankingLine(&c, &r); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Held = []hook.ScoreRecord{{Kind: network.SGD, Score: score(10, .1)}, {Kind: network.RNA, Score: score(11, .05)}}
	best(hook.ByLoss, 5)
	if got, want := plain(EpochLine(&c, &r)), "RNA 20.00 % (best so far by held-out loss)"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := rankingLine(&c, &r),
		"held-out loss: RNA 0.0500; SGD 0.1000; best of the run: RNA of epoch 5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.RNA.NoDifference = true
	if got := plain(EpochLine(&c, &r)); !strings.Contains(got, "held-out loss) (lambda makes no difference)  ") {
		t.Errorf("%q", got)
	}
	r.SGD, r.RNA, r.Averages, r.Bad = nil, nil, nil, 1
	if got, want := plain(EpochLine(&c, &r)), "held-out error: SGD 10.00 %, RNA 11.00 % (best so far by held-out loss) "+
		" 1 image unreadable  "; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.Skipped, r.LossScale = 2, 1024
	if got := plain(EpochLine(&c, &r)); !strings.Contains(got, "  skipped 2 steps, loss scale 1024  ") {
		t.Errorf("%q", got)
	}
}

// plain returns a line as printed without wrapping.
func plain(line string) string { return strings.ReplaceAll(line, "\u00a0", " ") }
