package train

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// scheduleFree is a run of an averaging optimiser with BatchNorm.
func scheduleFree(t *testing.T, out string) Spec {
	c := tinyColour(out, pictures(t, 20, 6, 16))
	c.Optimizer, c.Schedule, c.RNA.Mode, c.Epochs = "schedule-free-sgd", schedule.Schedule{Rate: .5, Warmup: 1},
		average.Off, 3
	return c
}

// averageOf returns the parameters of a run plus k times the first vector of state.
func averageOf(t *testing.T, r *Run) []float64 {
	x, d := numbers(t, r.Net.Params), numbers(t, r.engine.update.State[0])
	k := r.engine.update.Optimizer.(device.Averaging).Offset()
	for i := range x {
		x[i] += k * d[i]
	}
	return x
}

// TestAveragedIterate checks that evaluation, kept files and hooks all see the average, with its own statistics, and
// that training is unaffected.
func TestAveragedIterate(t *testing.T) {
	c := scheduleFree(t, filepath.Join(t.TempDir(), "run"))
	var r *Run
	var working, stats, want, late, kept []float64
	epochs := 0
	r = newRun(t, c, reference(op.Float64), watch{
		Step: func(s *hook.State) error {
			working, stats, want = numbers(t, r.Net.Params), numbers(t, r.Net.Stats), averageOf(t, r)
			v, err := s.Iterate()
			if err == nil {
				late = numbers(t, v)
				near(t, "iterate after a step", late, want, 1e-12)
			}
			return err
		},
		Epoch: func(s *hook.State) error {
			epochs++
			kept = numbers(t, r.Net.Params)
			near(t, "iterate after an epoch", kept, want, 1e-12)
			if slices.Equal(kept, working) || slices.Equal(numbers(t, r.Net.Stats), stats) {
				t.Error("the parameters or their statistics are those of training")
			}
			v, err := s.Iterate()
			if err == nil && !slices.Equal(numbers(t, v), kept) {
				t.Error("the iterate is not what is in the network")
			}
			before := numbers(t, r.Net.Stats)
			if err := s.Recalibrate(t.Context()); err != nil {
				return err
			}
			near(t, "statistics", before, numbers(t, r.Net.Stats), 1e-12)
			return err
		},
	})
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	if epochs != c.Epochs {
		t.Fatalf("%d epochs", epochs)
	}
	if !slices.Equal(numbers(t, r.Net.Params), working) || !slices.Equal(numbers(t, r.Net.Stats), stats) {
		t.Error("parameters and statistics are not those of the last step")
	}
	if _, err := r.Net.LoadWeights(filepath.Join(c.Out, "final.safetensors")); err != nil {
		t.Fatal(err)
	}
	near(t, "final.safetensors", numbers(t, r.Net.Params), kept, 0)
	s, err := r.Evaluate(t.Context())
	if err != nil || *s != *r.History[len(r.History)-1].SGD {
		t.Errorf("final.safetensors scores %+v, %v; the record has %+v", s, err, r.History[len(r.History)-1].SGD)
	}
}

// TestAveragedShares compares the steps' shares with their definition: squared largest rates.
func TestAveragedShares(t *testing.T) {
	var s shares
	rule := scheduleFreeRule{}
	for i, want := range []float64{0, 1, 4. / 5, 4. / 9, 4. / 13} {
		if got := s.share(rule, []float64{0, 1, 2, 1, .5}[i]); got != want {
			t.Errorf("share of step %d is %g, want %g", i+1, got, want)
		}
	}
}

type scheduleFreeRule struct{ device.Averaging }

func (scheduleFreeRule) Weight(most float64) float64 { return most * most }

// TestAveragedInjection replaces the averaged iterate: training continues from the new point, with the state kept or
// reset.
func TestAveragedInjection(t *testing.T) {
	for _, reset := range []bool{false, true} {
		c := scheduleFree(t, "")
		c.Epochs, c.Schedule.Warmup = 1, 0
		var point []float64
		r := trained(t, c, reference(op.Float64), watch{Epoch: func(s *hook.State) error {
			if err := s.Net.Params.AddScaled(.5, s.Net.Params); err != nil {
				return err
			}
			point = numbers(t, s.Net.Params)
			if reset {
				return s.ResetMomentum()
			}
			return nil
		}})
		near(t, "iterate", averageOf(t, r), point, 1e-12)
		if d := numbers(t, r.engine.update.State[0]); reset == slices.ContainsFunc(d,
			func(x float64) bool { return x != 0 }) {
			t.Errorf("reset %t: the state is %v", reset, d[:3])
		}
	}
}

// TestAveragedTogether trains on two ranks, which stay equal and close to one process that accumulates their batches.
func TestAveragedTogether(t *testing.T) {
	c := tiny("")
	c.Optimizer, c.Schedule, c.RNA.Mode, c.Epochs, c.Batch = "schedule-free-adamw", schedule.Schedule{Rate: 1e-3},
		average.Off, 2, 4
	one := c
	one.Accumulate = 2
	want := numbers(t, trained(t, one, reference(op.Float64)).Net.Params)
	all := together(t, 2, c, reference64, nil)
	for _, o := range all {
		if o.err != nil || !slices.Equal(o.params, all[0].params) {
			t.Fatalf("ranks have gone apart: %v", o.err)
		}
	}
	near(t, "parameters", all[0].params, want, 1e-9)
}

// TestResetStepsCount: bias corrections restart after the state is reset. Adam's first step changes each weight that
// has a gradient by the learning rate.
func TestResetStepsCount(t *testing.T) {
	c := tiny("")
	c.Optimizer, c.Schedule, c.RNA.Mode, c.Epochs = "adamw", schedule.Schedule{Kind: schedule.Constant, Rate: 1e-3},
		average.Off, 2
	c.WeightDecay = ptr(0)
	var r *Run
	var before []float64
	first := true
	r = newRun(t, c, reference(op.Float64), watch{
		Epoch: func(s *hook.State) error {
			before = numbers(t, s.Net.Params)
			return s.ResetMomentum()
		},
		Step: func(s *hook.State) error {
			if s.Epoch < 2 || !first {
				return nil
			}
			first = false
			most := 0.
			for i, w := range numbers(t, s.Net.Params) {
				most = max(most, math.Abs(w-before[i]))
			}
			if math.Abs(most-1e-3) > 1e-6 {
				t.Errorf("the first step after a reset is %g at most, want the rate", most)
			}
			return nil
		},
	})
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
}
