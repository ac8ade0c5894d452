package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// lazyDevice is the CPU as a pipeline: it computes only when somebody waits for the result.
func lazyDevice(t testing.TB) device.Device { return devicetest.Lazy(cpuDevice(t, 2)) }

// late is a hook that does not need the weights of its step.
type late struct {
	watch
}

func (late) Async() bool { return true }

// TestPipeline compares runs whose steps are issued ahead with runs that wait for each step: they leave the same files.
func TestPipeline(t *testing.T) {
	images := pictures(t, 20, 6, 16)
	for name, change := range map[string]func(c *Spec){
		"offline": func(*Spec) {},
		"accumulation": func(c *Spec) {
			c.Batch, c.StepsLimit, c.Accumulate, c.Nesterov, c.DecayWeightsOnly = 4, 8, 3, true, true
		},
		"BatchNorm": func(c *Spec) { *c = tinyColour("", images) },
		"online":    func(c *Spec) { c.RNA.Mode, c.EMA = average.Online, []float64{12} },
		"segments": func(c *Spec) {
			c.RNA.PerEpoch, c.RNA.SegmentMeans, c.RNA.Residual = 2, true, average.Gradients
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := tiny("")
			change(&c)
			dir := t.TempDir()
			c.Out = filepath.Join(dir, "plain")
			trained(t, c, cpuDevice(t, 2))
			c.Out = filepath.Join(dir, "ahead")
			if r := trained(t, c, lazyDevice(t)); r.Net.Ahead() != 1 {
				t.Errorf("%d steps are issued ahead", r.Net.Ahead())
			}
			sameFolders(t, c.Out, filepath.Join(dir, "plain"))
		})
	}
}

// TestPipelineIsAhead checks that a hook runs late only if it allows that.
func TestPipelineIsAhead(t *testing.T) {
	for _, may := range []bool{true, false} {
		ahead := 0
		w := watch{Step: func(s *hook.State) error {
			if s.Steps != s.Step.Step || s.Batch != (s.Steps-1)%3+1 {
				t.Errorf("step %d: the state is that after %d steps, %d batches", s.Step.Step, s.Steps, s.Batch)
			}
			ahead += s.Net.StatsBatches - s.Steps
			return nil
		}}
		var h hook.Hook = w
		want := 0
		if may {
			h, want = late{w}, 5*2 // all but the last step of each epoch
		}
		c := tiny("")
		c.EMA = []float64{12} // a queued hook
		trained(t, c, lazyDevice(t), h)
		if ahead != want {
			t.Errorf("late %v: a step was issued ahead %d times, want %d", may, ahead, want)
		}
	}
}

// TestPipelineStops interrupts runs, and makes a hook fail: the resumed run leaves the same files as a whole run.
func TestPipelineStops(t *testing.T) {
	images := pictures(t, 20, 6, 16)
	averaged := tiny("")
	averaged.EMA = []float64{12}
	for name, c := range map[string]Spec{"power average": averaged, "BatchNorm": tinyColour("", images)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.Out = filepath.Join(dir, "whole")
			trained(t, c, cpuDevice(t, 2))
			resume := func(of string) {
				t.Helper()
				r, err := Resume(filepath.Join(dir, of), Deps{Device: lazyDevice(t)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				if err := r.Train(context.Background()); err != nil {
					t.Fatal(err)
				}
				sameFolders(t, filepath.Join(dir, of), filepath.Join(dir, "whole"))
			}

			c.Out = filepath.Join(dir, "interrupted")
			ctx, cancel := context.WithCancel(context.Background())
			r := newRun(t, c, lazyDevice(t), late{atStep(10)(cancel)})
			err := r.Train(ctx)
			if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), fmt.Sprintf("after step %d,", r.pos.Steps)) ||
				r.pos.Steps != 11 {
				t.Fatalf("stopped after %d steps with %v, want 11", r.pos.Steps, err)
			}
			r.Close()
			resume("interrupted")

			c.Out = filepath.Join(dir, "failed")
			failed := errors.New("once")
			r = newRun(t, c, lazyDevice(t), late{watch{Step: func(s *hook.State) error {
				if s.Steps == 10 {
					return failed
				}
				return nil
			}}})
			if err := r.Train(context.Background()); !errors.Is(err, failed) || r.pos.Steps != 11 {
				t.Errorf("after step %d: %v", r.pos.Steps, err)
			}
			if err := r.Train(context.Background()); err != nil { // issued steps are part of its position
				t.Error(err)
			}
			r.Close()
			sameFolders(t, c.Out, filepath.Join(dir, "whole"))
		})
	}
}

// TestPipelineFailures checks that errors name the step in which they occur, as on a synchronous device, and that
// weights beyond that step are not kept.
func TestPipelineFailures(t *testing.T) {
	t.Run("loss", func(t *testing.T) {
		var at [2]*DivergedError
		for i, dev := range []device.Device{cpuDevice(t, 2), lazyDevice(t)} {
			c := tiny(filepath.Join(t.TempDir(), "run"))
			c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 1e6}
			r := newRun(t, c, dev)
			at[i] = diverged(t, r.Train(t.Context()), c.Out, "")
			if i == 0 {
				continue
			}
			if err := r.Save(); err == nil {
				t.Error("weights beyond the step are saved")
			}
			if err := r.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "resume") {
				t.Errorf("the run goes on: %v", err)
			}
		}
		if at[0].Epoch != at[1].Epoch || at[0].Step != at[1].Step || at[0].What != at[1].What {
			t.Errorf("%+v, want %+v", at[1], at[0])
		}
	})
	t.Run("images", func(t *testing.T) {
		c := tinyColour("", pictures(t, 20, 6, 16))
		for i := range 6 {
			put(t, filepath.Join(c.Data, "train", "plain", fmt.Sprintf("%03d.png", 2*i+8)), []byte("no image"))
		}
		few := data.MaxBad(.25)
		c.MaxBad, c.Batch, c.Shuffle = &few, 2, new(bool)
		var steps [2]int
		for i, dev := range []device.Device{cpuDevice(t, 2), lazyDevice(t)} {
			r := newRun(t, c, dev)
			if err := r.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("%v", err)
			}
			steps[i] = r.pos.Steps
			if err := r.broken; err != nil {
				t.Errorf("the weights are taken for those of no step: %v", err)
			}
		}
		if steps[0] == 0 || steps[0] != steps[1] {
			t.Errorf("failed after %d and %d steps", steps[0], steps[1])
		}
	})
}
