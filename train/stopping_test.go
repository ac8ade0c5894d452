package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// still is a run whose weights do not move, so that no epoch is better than the first.
func still(out string) Spec {
	c := tiny(out)
	c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 1e-30}
	c.Epochs, c.Patience, c.CheckpointEvery = 9, 3, 4
	return c
}

// A run without better weights ends, with the files of a last epoch; an interruption changes nothing, and a second end
// neither. More patience goes on.
func TestPatience(t *testing.T) {
	dir := t.TempDir()
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	r := trained(t, still(whole), cpuDevice(t, 2))
	if n := len(r.History); n != 4 || r.judge.best.Epoch != 1 {
		t.Fatalf("%d epochs, the best %+v", n, r.judge.best)
	}
	if state, _, err := ReadState(whole, r.Resolved.Spec, r.History); state != Running || err != nil {
		t.Errorf("state %s of an open run, %v", state, err)
	}
	r.Close()
	if state, _, err := ReadState(whole, r.Resolved.Spec, r.History); state != Done || err != nil {
		t.Errorf("state %s, %v", state, err)
	}
	if _, err := os.Stat(filepath.Join(whole, "average-2.safetensors")); err != nil {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	first := newRun(t, still(parts), cpuDevice(t, 2), watch{Epoch: func(s *hook.State) error {
		if s.Epoch == 3 {
			cancel()
		}
		return nil
	}})
	if err := first.Train(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	first.Close()
	again := func(adjust func(*Spec)) *Run {
		t.Helper()
		r, err := Resume(parts, Deps{Device: cpuDevice(t, 2)}, adjust)
		if err == nil {
			err = r.Train(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		return r
	}
	for range 2 {
		again(nil)
		sameFolders(t, parts, whole)
	}
	if r := again(func(c *Spec) { c.Patience = 5 }); len(r.History) != 6 {
		t.Errorf("%d epochs with more patience, want 6", len(r.History))
	}
	if _, err := New(still(whole), Deps{Device: cpuDevice(t, 2)}); err != nil {
		t.Error(err)
	}
}

// A run ends after the first epoch by which the best is so many epochs old, of any weights, and not before.
func TestPatienceCounts(t *testing.T) {
	c := tiny("")
	c.Epochs, c.Schedule = 12, schedule.Schedule{Kind: schedule.Constant, Rate: .3}
	all := trained(t, c, cpuDevice(t, 2)).History
	kinds := map[network.Kind]bool{}
	for _, patience := range []int{1, 2, 3} {
		want := 0
		for want < c.Epochs && (want == 0 || want-all[want-1].Best.Epoch < patience) {
			want++
			kinds[all[want-1].Best.Kind] = true
		}
		c.Patience = patience
		if n := len(trained(t, c, cpuDevice(t, 2)).History); n != want {
			t.Errorf("patience %d: %d epochs, want %d", patience, n, want)
		}
	}
	if !kinds[network.Average] && !kinds[network.RNA] {
		t.Errorf("the best weights are %v", kinds)
	}
	c.Data, c.Model, c.ImageSize, c.ValLimit = pictures(t, 8, 0, 16), "resnet20", 16, 0
	if _, err := New(c, Deps{Device: cpuDevice(t, 2)}); err == nil || !strings.Contains(err.Error(), "patience goes by") {
		t.Errorf("without images to judge by: %v", err)
	}
}

// The epochs fit the time that they take, the schedule falls to its end over them, and a resumed run keeps to the rest.
func TestTimeBudget(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	c := tiny(out)
	c.Epochs, c.StepsLimit, c.RNA.Mode, c.TimeBudget = 100, 2, average.Off, 2*time.Second
	c.Schedule = schedule.Schedule{Kind: schedule.Linear, Rate: .01}
	slow := watch{Step: func(*hook.State) error { time.Sleep(120 * time.Millisecond); return nil }}
	start := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	stops := slow
	stops.Epoch = func(s *hook.State) error {
		if s.Epoch == 3 {
			cancel()
		}
		return nil
	}
	r := newRun(t, c, cpuDevice(t, 2), stops)
	if err := r.Train(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	r.Close()
	spent := r.pos.Clock.Spent
	if took := time.Since(start).Seconds(); spent <= .72 || spent > took {
		t.Errorf("%g s counted, the run took %g", spent, took)
	}
	second, err := Resume(out, Deps{Device: cpuDevice(t, 2), Hooks: []hook.Hook{slow}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := second.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := len(second.History)
	if n < 4 || n > 8 || second.Resolved.Epochs != n || second.pos.Clock.Spent > 3 {
		t.Errorf("%d epochs of 0.24 s or more in two seconds, %g s spent", n, second.pos.Clock.Spent)
	}
	if rate := second.History[n-1].Rate; math.Abs(rate-.0001) > 1e-9 {
		t.Errorf("the last rate is %g", rate)
	}
	if written, err := ReadSpec(out); err != nil || written.Epochs != n || written.TimeBudget != 2*time.Second {
		t.Errorf("%d epochs recorded, want %d, %v", written.Epochs, n, err)
	}
}

// TestEpochsWithin fits epochs to a time, with room for jitter.
func TestEpochsWithin(t *testing.T) {
	for _, c := range []struct {
		planned, done int
		left, pace    float64
		want          int
	}{
		{100, 1, 50, 10, 6},
		{6, 2, 39, 10, 6},    // as good as 4 epochs
		{6, 2, 37, 10, 5},    // 4 would take too long
		{30, 2, 309, 10, 30}, // two more do not matter
		{30, 2, 310, 10, 33}, // three do
		{6, 2, 51, 10, 7},    // one more fits
		{6, 5, 8, 10, 6},     // the last epoch is not lost
		{6, 5, 7, 10, 5},     // but not at any price
		{6, 5, -50, 10, 5},   // the time is over
		{6, 1, 1e30, 1, math.MaxInt32 + 1},
	} {
		s := Spec{Epochs: c.planned}
		if got := s.epochsWithin(c.done, c.left, c.pace); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
