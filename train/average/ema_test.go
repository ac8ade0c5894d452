package average_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// TestEMA follows the average step by step, and checks that it does not affect training.
func TestEMA(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.Epochs, c.RNA.Mode = 2, average.Off
	dev := cpuDevice(t, 2)
	plain := trained(t, train.Spec{Batch: c.Batch, Epochs: c.Epochs, StepsLimit: c.StepsLimit, ValLimit: c.ValLimit,
		Seed: c.Seed, Schedule: c.Schedule, RNA: c.RNA}, dev)
	c.EMA, c.KeepEvery = []float64{12}, 1
	var want []float64
	r := trained(t, c, dev, watch{Step: func(s *hook.State) error {
		w := numbers(t, s.Net.Params)
		if want == nil {
			want = make([]float64, len(w))
		}
		a := 13 / (float64(s.Steps) + 12)
		for i := range w {
			want[i] += a * (w[i] - want[i])
		}
		return nil
	}})
	if !slices.Equal(numbers(t, r.Net.Params), numbers(t, plain.Net.Params)) {
		t.Error("the average changed the training")
	}
	if list, err := filepath.Glob(filepath.Join(c.Out, "kept", "*ema*")); err != nil || len(list) > 0 {
		t.Errorf("a single average is kept: %v, %v", list, err)
	}
	got, _ := at(t, r, filepath.Join(c.Out, "ema.safetensors"))
	near(t, "the average", got, want, 1e-6)
	meta, err := r.Net.LoadWeights(filepath.Join(c.Out, "ema.safetensors"))
	if err != nil || meta.Kind != network.EMA || meta.Epoch != 2 {
		t.Errorf("metadata %+v, %v", meta, err)
	}
	last := r.History[1]
	if s, err := r.Evaluate(t.Context()); err != nil || last.EMA == nil || *s != *last.EMA {
		t.Errorf("ema.safetensors scores %+v, %v; recorded was %+v", s, err, last.EMA)
	}
}

// TestEMAs: of two averages the last one is scored, and both are kept every second epoch.
func TestEMAs(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.Epochs, c.EMA, c.KeepEvery, c.RNA.Mode = 5, []float64{5, 12}, 2, average.Off
	want := map[float64][]float64{}
	kept := map[string][]float64{}
	r := trained(t, c, cpuDevice(t, 2), watch{Step: func(s *hook.State) error {
		w := numbers(t, s.Net.Params)
		for _, gamma := range c.EMA {
			if want[gamma] == nil {
				want[gamma] = make([]float64, len(w))
			}
			for i := range w {
				want[gamma][i] += (gamma + 1) / (float64(s.Steps) + gamma) * (w[i] - want[gamma][i])
			}
			if s.Batch == s.Batches && s.Epoch%2 == 0 {
				kept[hook.EMAFile(s.Epoch, gamma)] = slices.Clone(want[gamma])
			}
		}
		return nil
	}})
	if list, err := filepath.Glob(filepath.Join(c.Out, "kept", "*-ema-*")); err != nil || len(list) != 4 || len(kept) != 4 {
		t.Fatalf("%v, %v, of %d", list, err, len(kept))
	}
	_, _, steps := r.Position()
	steps /= c.Epochs
	for name, x := range kept {
		file := filepath.Join(c.Out, name+".safetensors")
		got, _ := at(t, r, file)
		near(t, name, got, x, 1e-6)
		meta, err := network.ReadMeta(file)
		if err != nil || meta.Kind != network.EMA || hook.EMAFile(meta.Epoch, meta.Gamma) != name || meta.Step != meta.Epoch*steps {
			t.Errorf("%s: %+v, %v", name, meta, err)
		}
	}
	got, _ := at(t, r, filepath.Join(c.Out, "ema.safetensors"))
	near(t, "the average", got, want[12], 1e-6)
	list, err := train.KeptEMAs(c.Out, c, 4)
	if err != nil || len(list) != 4 || filepath.Base(list[1]) != "epoch-0002-ema-12.safetensors" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := train.KeptEMAs(c.Out, c, 3); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	c.EMA = []float64{12}
	if _, err := train.KeptEMAs(c.Out, c, 4); err == nil {
		t.Error("a run with one average")
	}
}

// TestEMAWarmingUp: a power average counts the steps of the warm-up, too. Two of them are kept in each epoch.
func TestEMAWarmingUp(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.Epochs, c.StepsLimit, c.EMA, c.KeepEvery, c.RNA.Mode = 2, 3, []float64{5, 12}, 1, average.Off
	c.Schedule = schedule.Schedule{Kind: schedule.Cosine, By: schedule.ByStep, Rate: 0.05, WarmupSteps: 4}
	var want []float64
	r := trained(t, c, cpuDevice(t, 2), watch{Step: func(s *hook.State) error {
		w := numbers(t, s.Net.Params)
		if want == nil {
			want = make([]float64, len(w))
		}
		for i := range w {
			want[i] += 13 / (float64(s.Steps) + 12) * (w[i] - want[i])
		}
		return nil
	}})
	got, _ := at(t, r, filepath.Join(c.Out, "ema.safetensors"))
	near(t, "the average", got, want, 1e-6)
	if list, err := filepath.Glob(filepath.Join(c.Out, "kept", "*-ema-*")); err != nil || len(list) != 4 {
		t.Errorf("%v, %v", list, err)
	}
}

// recalibrated records the average's statistics at the end of a run, after its own hook.
type recalibrated struct {
	t    *testing.T
	file string
	want []float64
}

func (*recalibrated) Name() string { return "recalibrated" }

func (h *recalibrated) AfterEpoch(ctx context.Context, s *hook.State) error {
	if !s.LastEpoch() {
		return nil
	}
	return s.Temporarily(func() error {
		if _, err := s.Net.LoadWeights(h.file); err != nil {
			return err
		}
		err := s.Recalibrate(ctx)
		h.want = numbers(h.t, s.Net.Stats)
		return err
	})
}

// TestEMARecalibrates: the average has its own BatchNorm statistics, not those of the iterate.
func TestEMARecalibrates(t *testing.T) {
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 24, 6, 16))
	c.Epochs, c.EMA, c.RNA = 2, []float64{12}, average.Options{Mode: average.Off, Batches: 2}
	file := filepath.Join(c.Out, "ema.safetensors")
	h := &recalibrated{t: t, file: file}
	r := trained(t, c, cpuDevice(t, 2), h)
	_, got := at(t, r, file)
	near(t, "the statistics", got, h.want, 1e-5)
	_, iterate := at(t, r, filepath.Join(c.Out, "final.safetensors"))
	if slices.Equal(got, iterate) {
		t.Error("the statistics are the iterate's")
	}
}

// TestDecayEMA follows an average with a decay, which equals the iterate while the rate warms up, and resumes it.
func TestDecayEMA(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.Epochs, c.StepsLimit, c.RNA.Mode = 3, 5, average.Off
	c.Schedule = schedule.Schedule{Kind: schedule.Cosine, By: schedule.ByStep, Rate: 0.05, WarmupSteps: 4}
	c.EMADecay, c.EMAEvery = 0.75, 2
	var want []float64
	r := trained(t, c, cpuDevice(t, 2), watch{Step: func(s *hook.State) error {
		w := numbers(t, s.Net.Params)
		switch {
		case want == nil || s.Steps == 2 || s.Steps == 4:
			want = w
		case s.Steps%2 == 0:
			for i := range w {
				want[i] = 0.75*want[i] + 0.25*w[i]
			}
		}
		return nil
	}})
	got, _ := at(t, r, filepath.Join(c.Out, "ema.safetensors"))
	near(t, "the average", got, want, 1e-6)
}

// TestEMABest checks that the average can be the best, by either measure.
func TestEMABest(t *testing.T) {
	for _, holdout := range []float64{0, 0.01} {
		c := tiny(filepath.Join(t.TempDir(), "run"))
		c.Epochs, c.Holdout, c.EMA, c.RNA.Mode, c.BestBy = 3, holdout, []float64{12}, average.Off, hook.ByLoss
		c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 0.05}
		var last seen
		r := trained(t, c, cpuDevice(t, 2), &last)
		loss, kind := 1e9, network.Kind("")
		for _, rec := range r.History {
			for k, s := range map[network.Kind]*network.Score{network.SGD: rec.SGD, network.EMA: rec.EMA} {
				if holdout > 0 {
					s = rec.HeldScore(k)
				}
				if s == nil {
					t.Fatalf("epoch %d: no score of %s", rec.Epoch, k)
				}
				if s.Loss < loss {
					loss, kind = s.Loss, k
				}
			}
		}
		meta, err := r.Net.LoadWeights(filepath.Join(c.Out, "best.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		evaluate := last.Evaluate
		if holdout > 0 {
			evaluate = last.EvaluateHeld
		}
		if s, err := evaluate(t.Context()); err != nil || meta.Kind != kind || s.Loss != loss {
			t.Errorf("best is of %s, with score %+v, %v; want %s with loss %g", meta.Kind, s, err, kind, loss)
		}
	}
}
