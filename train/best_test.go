package train

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/schedule"
)

// bestOf returns the best of all weights in the records, the first on a tie.
func bestOf(history []hook.EpochRecord, by string) (best hook.BestRecord) {
	for _, rec := range history {
		list, _ := rec.Ranking(by)
		for _, x := range list[:min(1, len(list))] {
			if best.Epoch == 0 || hook.Compare(x.Score, best.Score, by) < 0 {
				best = hook.BestRecord{ScoreRecord: x, Epoch: rec.Epoch}
			}
		}
	}
	return best
}

// checkBest compares best.safetensors, its metadata and the run's last record with the best of its records.
func checkBest(t *testing.T, r *Run) hook.BestRecord {
	t.Helper()
	want := bestOf(r.History, r.Resolved.BestBy)
	if got := r.History[len(r.History)-1].Best; got == nil || *got != want {
		t.Errorf("the record has %+v, want %+v", got, want)
	}
	meta, err := r.Net.LoadWeights(filepath.Join(r.Resolved.Out, bestFile))
	if err != nil {
		t.Fatal(err)
	}
	if by := map[bool]string{true: "held-out ", false: "validation "}[r.in.held != nil] +
		r.Resolved.BestBy; meta.BestBy != by {
		t.Errorf("the file says it is the best by %q, want %q", meta.BestBy, by)
	}
	if meta.Kind != want.Kind || meta.Snapshots != want.Snapshots || meta.Epoch != want.Epoch {
		t.Errorf("the file says %s of %d, epoch %d; want %+v", meta.Kind, meta.Snapshots, meta.Epoch, want)
	}
	score, err := r.judge.evaluateHeld(t.Context())
	if r.in.held == nil {
		score, err = r.Evaluate(t.Context())
	}
	if err != nil || *score != want.Score {
		t.Errorf("the file scores %+v, %v; want %+v", score, err, want.Score)
	}
	return want
}

// TestBest checks that best.safetensors has the lowest error, or loss, of all scored weights.
func TestBest(t *testing.T) {
	kinds := map[network.Kind]bool{}
	dev := cpuDevice(t, 2)
	for _, by := range []string{hook.ByError, hook.ByLoss} {
		for _, holdout := range []float64{0, 0.02} {
			c := tiny(filepath.Join(t.TempDir(), "run"))
			c.Epochs, c.BestBy, c.Holdout, c.EMA, c.RNA.Averages = 6, by, holdout, []float64{12}, []int{2, 3}
			c.StepsLimit, c.ValLimit = 30, 8
			c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 0.1}
			r := trained(t, c, dev)
			if n := len(r.History[5].Scores()); n != 5 {
				t.Errorf("%d candidates in the last epoch: %+v", n, r.History[5])
			}
			kinds[checkBest(t, r).Kind] = true
			for _, k := range c.RNA.Averages {
				meta, err := r.Net.LoadWeights(filepath.Join(c.Out, map[int]string{2: "average-2",
					3: "average-3"}[k]+".safetensors"))
				if err != nil || meta.Kind != network.Average || meta.Snapshots != k || meta.Epoch != 6 {
					t.Errorf("average of %d: %+v, %v", k, meta, err)
				}
			}
		}
	}
	if len(kinds) < 2 {
		t.Errorf("the best were all of %v: nothing was chosen", kinds)
	}
}

// TestAverageIsBest: an average that scores best is kept.
func TestAverageIsBest(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.Epochs = 4
	average := hook.ScoreRecord{Kind: network.Average, Snapshots: 3, Score: network.Score{Top1: 100, Images: 1}}
	r := trained(t, c, cpuDevice(t, 2), watch{Epoch: func(s *hook.State) error {
		if s.Epoch != 3 {
			return nil
		}
		s.Record.Averages = append(s.Record.Averages, hook.AverageRecord{Epochs: 3, Score: average.Score})
		return s.JudgeAverage(t.Context(), 3, &average.Score)
	}})
	if got := r.History[3].Best; got == nil || got.ScoreRecord != average || got.Epoch != 3 {
		t.Errorf("the best is %+v", got)
	}
	meta, err := r.Net.LoadWeights(filepath.Join(c.Out, bestFile))
	if err != nil || meta.Kind != network.Average || meta.Snapshots != 3 || meta.Epoch != 3 {
		t.Errorf("%+v, %v", meta, err)
	}
}

// TestBestResumed: a resumed run has the best weights as of its checkpoint, whatever was written later.
func TestBestResumed(t *testing.T) {
	dev := cpuDevice(t, 2)
	make := func(out string) Spec {
		c := tiny(out)
		c.Epochs, c.BestBy, c.CheckpointEvery, c.StepsLimit, c.ValLimit = 8, hook.ByLoss, 3, 30, 8
		c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 0.05}
		return c
	}
	whole := trained(t, make(filepath.Join(t.TempDir(), "whole")), dev)
	for _, fails := range []int{2, 5} { // before and after the second checkpoint
		out := filepath.Join(t.TempDir(), "run")
		broken := errors.New("broken")
		first := newRun(t, make(out), dev, watch{Epoch: func(s *hook.State) error {
			if s.Epoch == fails {
				return broken
			}
			return nil
		}})
		if err := first.Train(t.Context()); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		later := first.judge.best
		first.Close()
		r, err := Resume(out, Deps{Device: dev, Hooks: []hook.Hook{watch{}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.judge.best != nil && *r.judge.best == *later || r.judge.best == nil && fails > 3 {
			t.Fatalf("%+v is the best before and after: nothing is shown", r.judge.best)
		}
		if r.judge.best == nil {
			if slices.Contains(traintest.Files(t, out), bestFile) {
				t.Errorf("%s is of an epoch that is to come", bestFile)
			}
		} else {
			w := network.Meta{}
			if w, err = network.ReadMeta(filepath.Join(out, bestFile)); err != nil || w.Epoch != r.judge.best.Epoch ||
				w.Kind != r.judge.best.Kind {
				t.Errorf("the file is of %s, epoch %d, the run's best is %+v: %v", w.Kind, w.Epoch, r.judge.best, err)
			}
		}
		if err := r.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := checkBest(t, r), bestOf(whole.History, hook.ByLoss); got != want {
			t.Errorf("resumed, the best is %+v, want %+v", got, want)
		}
	}
}

// TestBestOfRanks: ranks agree on the best weights, which rank 0 writes, also when the run resumes with another number
// of ranks.
func TestBestOfRanks(t *testing.T) {
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 24, 12, 12))
	c.Batch, c.Epochs, c.EMA, c.RNA.Start = 2, 4, []float64{12}, 1
	check := func(list []outcome, epochs int) {
		t.Helper()
		for k, o := range list {
			if o.err != nil || len(o.history) != epochs {
				t.Fatalf("rank %d: %d epochs, %v", k, len(o.history), o.err)
			}
			want := bestOf(o.history, hook.ByError)
			if got := *o.history[epochs-1].Best; got != want || got != *list[0].history[epochs-1].Best {
				t.Errorf("rank %d: the best is %+v, want %+v", k, got, want)
			}
			if meta, err := network.ReadMeta(filepath.Join(c.Out, bestFile)); err != nil || meta.Kind != want.Kind ||
				meta.Snapshots != want.Snapshots || meta.Epoch != want.Epoch {
				t.Errorf("rank %d: the file is of %+v, %v, want %+v", k, meta, err, want)
			}
		}
	}
	check(together(t, 2, c, reference64, nil), 4)
	check(together(t, 3, c, reference64, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		r, err := Resume(c.Out, Deps{Device: dev, Ranks: g}, func(c *Spec) { c.Epochs = 6 })
		if err != nil {
			return outcome{err: err}
		}
		defer r.Close()
		return outcome{err: r.Train(t.Context()), history: r.History}
	}), 6)
}
