//go:build gpu && cgo

package net

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// smallRun is a run of LeNet on a few glyphs.
func smallRun(out string) train.Spec {
	return train.Spec{Batch: 8, Epochs: 4, StepsLimit: 6, ValLimit: 2, Seed: 3, Out: out,
		Schedule: schedule.Schedule{Kind: schedule.Linear, Rate: .05},
		RNA:      average.Options{Window: 2, Averages: []int{2}}}
}

// atStep is a hook that calls f after a step; it may be called late.
type atStep struct {
	step int
	f    func()
}

func (atStep) Name() string { return "at step" }
func (atStep) Async() bool  { return true }
func (h atStep) AfterStep(_ context.Context, s *hook.State) error {
	if s.Step.Step == h.step {
		h.f()
	}
	return nil
}

// onNet calls f with a device and closes it. Errors of closing a lost device are ignored.
func onNet(t *testing.T, f func(dev device.Device)) {
	t.Helper()
	dev, err := openNet(Options{})()
	check(t, err)
	f(dev)
	_ = dev.Close()
}

// trained trains a run to its end.
func trained(t *testing.T, start func(dev device.Device) (*train.Run, error)) {
	t.Helper()
	onNet(t, func(dev device.Device) {
		r, err := start(dev)
		check(t, err)
		check(t, r.Train(t.Context()))
		check(t, r.Close())
	})
}

// resumed resumes the run in a folder and trains to its end.
func resumed(t *testing.T, dir string) {
	t.Helper()
	trained(t, func(dev device.Device) (*train.Run, error) { return train.Resume(dir, train.Deps{Device: dev}, nil) })
}

// sameWeights checks that two runs ended with the same bits and list the same steps and epochs.
func sameWeights(t *testing.T, got, want string) {
	t.Helper()
	in := func(run, name string) []byte {
		dir := run
		if name == "momentum.safetensors" {
			var err error
			dir, err = train.Checkpoint(run)
			check(t, err)
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		check(t, err)
		return b
	}
	for _, name := range []string{"final.safetensors", "rna.safetensors", "momentum.safetensors"} {
		a, b := in(got, name), in(want, name)
		if !slices.Equal(a, b) {
			t.Errorf("%s differs", name)
		}
	}
	steps := func(dir string) (list []string) {
		b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
		check(t, err)
		for _, line := range strings.Split(string(b), "\n") {
			list = append(list, line[:max(0, strings.Index(line+`"train"`, `"train"`))]) // times follow
		}
		return list
	}
	if a, b := steps(got), steps(want); !slices.Equal(a, b) || len(a) != 4*6+4+1 {
		t.Errorf("%d lines of metrics\n%s\nwant %d\n%s", len(a), strings.Join(a, "\n"), len(b), strings.Join(b, "\n"))
	}
}

// An interrupted run, or one whose card was lost, resumes from its files and ends with the same bits.
func TestFaultOfRun(t *testing.T) {
	fault(t, "")
	gputest.NeedDNN(t)
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	if !sim.Apart(t) {
		trained(t, func(dev device.Device) (*train.Run, error) {
			return train.New(smallRun(whole), train.Deps{Device: dev})
		})
	}

	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := smallRun(filepath.Join(dir, "parts"))
		onNet(t, func(dev device.Device) {
			r, err := train.New(c, train.Deps{Device: dev, Hooks: []hook.Hook{atStep{8, cancel}}})
			check(t, err)
			if err := r.Train(ctx); !errors.Is(err, train.ErrInterrupted) ||
				!strings.Contains(err.Error(), "epoch 2 after step 9") {
				t.Errorf("%v; want one interrupted after the step that was under way", err)
			}
			check(t, r.Close())
		})
		resumed(t, c.Out)
		sameWeights(t, c.Out, whole)
	})
	for _, plan := range []string{"cuGraphLaunch@1=719,later", "cuEventSynchronize@3=719,sticky",
		"cuMemcpyHtoDAsync_v2@2=999,sticky"} {
		t.Run(plan, func(t *testing.T) {
			c := smallRun(filepath.Join(t.TempDir(), "lost"))
			gputest.Alone(t, c.Out, func(out string) {
				c.Out = out
				dev, err := openNet(Options{})()
				check(t, err)
				r, err := train.New(c, train.Deps{Device: dev,
					Hooks: []hook.Hook{atStep{14, func() { check(t, sim.Fault(plan)) }}}})
				check(t, err)
				var failed *train.FailedError
				if err := r.Train(t.Context()); !errors.As(err, &failed) || !errors.Is(err, driver.ErrLost) ||
					failed.Epoch != 3 || failed.Step < 15 || failed.Step > 17 {
					t.Errorf("%v", err)
				}
				check(t, sim.Fault(""))
				if err := r.Train(t.Context()); err == nil {
					t.Error("the run goes on with a lost card")
				}
				if err := r.Save(); err == nil {
					t.Error("weights of a lost card are saved")
				}
				_, _ = r.Close(), dev.Close()
			})
			resumed(t, c.Out)
			sameWeights(t, c.Out, whole)
		})
	}
}

// The loss is read a step late, yet the error names the right step and the state before it is kept.
func TestNetDivergence(t *testing.T) {
	gputest.NeedDNN(t)
	c := smallRun(filepath.Join(t.TempDir(), "run"))
	c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 1e5}
	var want, got *train.DivergedError
	onNet(t, func(dev device.Device) { // the hook waits for each step
		r, err := train.New(c, train.Deps{Device: dev, Hooks: []hook.Hook{watching{}}})
		check(t, err)
		if err := r.Train(t.Context()); !errors.As(err, &want) {
			t.Errorf("%v", err)
		}
		check(t, r.Close())
	})
	c.Out += "-late"
	onNet(t, func(dev device.Device) {
		r, err := train.New(c, train.Deps{Device: dev})
		check(t, err)
		if err := r.Train(t.Context()); !errors.As(err, &got) || got.Checkpoint == "" {
			t.Errorf("%v", err)
		}
		if err := r.Save(); err == nil {
			t.Error("weights that are not finite are saved")
		}
		check(t, r.Close())
	})
	if want == nil || got == nil || got.Epoch != want.Epoch || got.Step != want.Step || got.What != want.What {
		t.Errorf("%v; want %v", got, want)
	}
	onNet(t, func(dev device.Device) { // the saved state is from before the first step
		r, err := train.Resume(c.Out, train.Deps{Device: dev}, nil)
		check(t, err)
		if ok, err := r.Net.Params.Finite(); err != nil || !ok {
			t.Errorf("the checkpoint's weights are finite: %v, %v", ok, err)
		}
		check(t, r.Close())
	})
}

// watching is a hook that may look at the weights after each step.
type watching struct{}

func (watching) Name() string                                 { return "watching" }
func (watching) AfterStep(context.Context, *hook.State) error { return nil }
