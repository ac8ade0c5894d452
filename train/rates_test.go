package train

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// TestSweepRates: at one constant rate a sweep makes the steps of training, bit for bit, over several epochs and with
// accumulated batches.
func TestSweepRates(t *testing.T) {
	dev := cpuDevice(t, 2)
	set := pictures(t, 26, 4, 16)
	for _, accumulate := range []int{1, 2} {
		c := tinyColour("", set)
		c.Batch, c.Accumulate, c.Epochs, c.StepsLimit = 4, accumulate, 3, 6 // whole steps
		c.Init, c.RNA.Mode = "", average.Off
		c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 0.05}
		var want []float64
		trained(t, c, dev, &watch{Step: func(s *hook.State) error { want = append(want, s.Step.Loss); return nil }})
		got, rates := []float64{}, make([]float64, len(want))
		for i := range rates {
			rates[i] = 0.05
		}
		r := newRun(t, c, dev)
		if err := r.SweepRates(context.Background(), rates,
			func(l float64) bool { got = append(got, l); return true }); err != nil {
			t.Fatal(err)
		}
		if len(want) != 18/accumulate || !slices.Equal(got, want) {
			t.Errorf("%d batches a step: losses %v, want %v", accumulate, got, want)
		}
		if err := r.Train(context.Background()); err == nil || !strings.Contains(err.Error(), "swept") {
			t.Errorf("trained after a sweep: %v", err)
		}
	}
}

// TestSweepEnds: false and the context end a sweep; an epoch's incomplete step is skipped; other rates give other
// losses.
func TestSweepEnds(t *testing.T) {
	dev := cpuDevice(t, 1)
	c := tinyColour("", pictures(t, 10, 4, 16))
	c.Batch = 4
	rates := []float64{0.01, 0.1, 0.1, 0.1, 0.1}
	n := 0
	if err := newRun(t, c, dev).SweepRates(context.Background(), rates, func(float64) bool { n++; return n < 3 }); err != nil ||
		n != 3 {
		t.Errorf("%d steps, %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n = 0
	err := newRun(t, c, dev).SweepRates(ctx, rates, func(float64) bool { n++; cancel(); return true })
	if !errors.Is(err, context.Canceled) || n > 2 {
		t.Errorf("%d steps, %v", n, err)
	}
	losses := func(rates ...float64) (list []float64) {
		if err := newRun(t, c, dev).SweepRates(context.Background(), rates,
			func(l float64) bool { list = append(list, l); return true }); err != nil {
			t.Fatal(err)
		}
		return list
	}
	a, b := losses(0.01, 0.01, 0.01), losses(0.01, 0.5, 0.01)
	if !slices.Equal(a[:2], b[:2]) || a[2] == b[2] || len(a) != 3 {
		t.Errorf("losses %v and %v", a, b)
	}
}
