package train

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// stopAfter runs a config on ranks, one of which is told to stop after the given number of steps.
func stopAfter(t *testing.T, n, steps int, c Spec) {
	t.Helper()
	list := together(t, n, c, reference64, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		return runOn(ctx, c, dev, g, nil, second{watch{Step: func(s *hook.State) error {
			if g.Rank() == n-1 && s.Steps == steps {
				cancel()
			}
			return nil
		}}})
	})
	for k, o := range list {
		if !errors.Is(o.err, ErrInterrupted) || !Common(o.err) || len(o.history) != 0 {
			t.Fatalf("rank %d: %v after %d steps, %d epochs", k, o.err, len(o.losses), len(o.history))
		}
	}
}

// end is the outcome of a run.
type end struct {
	params, stats []float64
	history       []hook.EpochRecord
}

// finish runs a config on ranks to its end, from its checkpoint if resume is set.
func finish(t *testing.T, n int, c Spec, resume bool) (e end) {
	t.Helper()
	rankstest.Run(t, n, time.Minute, func(g *ranks.Group) error {
		dev, _ := reference64()
		own := c
		var r *Run
		var err error
		if resume {
			r, err = Resume(c.Out, Deps{Device: dev, Ranks: g}, nil)
		} else {
			r, err = New(own, Deps{Device: dev, Ranks: g})
		}
		if err != nil {
			return err
		}
		defer r.Close()
		if err := r.Train(context.Background()); err != nil || !g.First() {
			return err
		}
		e.params, e.stats, e.history = make([]float64, r.Net.Params.Len()), make([]float64, r.Net.Stats.Len()), r.History
		return errors.Join(r.Net.Params.ReadAt64(e.params, 0), r.Net.Stats.ReadAt64(e.stats, 0))
	})
	return e
}

// Ranks that are told to stop during an evaluation stop there, at the same place, and resume with equal results.
func TestStopInEvaluation(t *testing.T) {
	c := Spec{Data: pictures(t, 43, 11, 12), Model: "conv6", Batch: 3, Epochs: 2, Seed: 3, Out: filepath.Join(t.TempDir(),
		"run"), RNA: average.Options{Mode: average.Off}}
	// 15 batches are 5 steps of 3 ranks; the last step has been issued when the hook is called.
	stopAfter(t, 3, 5, c)
	got := finish(t, 3, c, true)
	c.Out = ""
	want := finish(t, 3, c, false)
	if !slices.Equal(got.params, want.params) || len(got.history) != 2 ||
		got.history[0].SGD.Loss != want.history[0].SGD.Loss {
		t.Errorf("other results than without a stop: %+v, want %+v", got.history, want.history)
	}
}

// A checkpoint within an epoch stores the ranks' mean running statistics, from which resumed ranks continue: the
// weights equal those of an uninterrupted run bit for bit, and the final mean equals its up to rounding, also if some
// ranks lack a batch of the last step.
func TestStatisticsOfResumedRanks(t *testing.T) {
	c := Spec{Data: pictures(t, 38, 11, 12), Model: "resnet20", Batch: 3, Epochs: 1, Seed: 3,
		Out: filepath.Join(t.TempDir(), "run"), RNA: average.Options{Mode: average.Off}}
	stopAfter(t, 4, 2, c) // 3 steps with a batch of each rank, and one with a batch of one
	got := finish(t, 4, c, true)
	c.Out = ""
	want := finish(t, 4, c, false)
	if !slices.Equal(got.params, want.params) {
		t.Error("other weights than without a stop")
	}
	if d := apart(got.stats, want.stats); d > 1e-13 || len(got.stats) == 0 {
		t.Errorf("the statistics are %g apart", d)
	}
}

// Ranks without a batch do not affect the statistics: steps with one batch give those of one process, with --accumulate
// or without.
func TestStatisticsOfIdleRanks(t *testing.T) {
	c := Spec{Data: pictures(t, 3, 3, 12), Model: "resnet20", Batch: 3, Epochs: 2, Seed: 3,
		RNA: average.Options{Mode: average.Off}}
	got := finish(t, 3, c, false)
	c.Accumulate = 3
	want := finish(t, 1, c, false)
	if d := apart(got.stats, want.stats); d > 1e-12 || len(got.stats) == 0 {
		t.Errorf("the statistics are %g apart", d)
	}
	if d := apart(got.params, want.params); d > 1e-12 {
		t.Errorf("the weights are %g apart", d)
	}
}

// Frozen statistics stay equal bit for bit, whatever the number of ranks: the mean of equal numbers is summed in
// float64.
func TestFrozenStatisticsOfRanks(t *testing.T) {
	c := Spec{Data: pictures(t, 18, 5, 12), Model: "resnet20", Batch: 3, Epochs: 1, Seed: 3,
		RNA: average.Options{Mode: average.Off}, Freeze: []string{"*bn*"}}
	c.Schedule.Rate = 1e-5
	rankstest.Run(t, 3, time.Minute, func(g *ranks.Group) error {
		dev, _ := cpuOne()
		own := c
		r, err := New(own, Deps{Device: dev, Ranks: g})
		if err != nil {
			return err
		}
		defer r.Close()
		before, after := make([]float64, r.Net.Stats.Len()), make([]float64, r.Net.Stats.Len())
		for i := range before {
			before[i] = float64(float32(1 + 1/float64(3+i)))
		}
		if err := errors.Join(r.Net.Stats.WriteAt64(before, 0), r.Train(context.Background()), r.Net.Stats.ReadAt64(after,
			0)); err != nil {
			return err
		}
		if !slices.Equal(before, after) {
			return errors.New("frozen statistics have changed")
		}
		return nil
	})
}
