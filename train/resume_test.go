package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/store"
	"onlinerna/train/schedule"
)

func init() {
	nn.Register(nn.Architecture{
		Name: "test-random", Size: 16, Channels: 3, Classes: 2,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.Hardswish("act", b.BatchNorm("bn", b.Conv("conv", x, nn.Conv{Filters: 8, Kernel: 3, Pad: 1, Stride: 2}), 1))
			x = b.Add("add", x, b.StochasticDepth("depth", b.SqueezeExcite("se", x, 4, (*nn.Builder).SiLU,
				(*nn.Builder).Sigmoid), .3))
			return b.Linear("fc", b.Dropout("dropout", b.GELU("gelu", b.GlobalAvgPool("pool", x)), .3), b.Config().Classes)
		},
	})
}

// impatientRNA is the RNA hook with a context that ends when it is called after an epoch: its snapshot is taken and its
// first evaluation fails.
type impatientRNA struct {
	*average.RNA
	epoch  int
	cancel func()
}

func (h *impatientRNA) AfterEpoch(ctx context.Context, s *hook.State) error {
	if s.Epoch == h.epoch {
		h.cancel()
	}
	return h.RNA.AfterEpoch(ctx, s)
}

// stop interrupts a run at a given place.
type stop struct {
	name           string
	hook           func(cancel func()) watch
	change         func(r *Run, cancel func())
	telling, ofRNA bool
}

// stops lists places in a run of five epochs of three steps: windows at the ends of these epochs have one residual, or
// are full.
var stops = []stop{
	{name: "before the first step", change: func(_ *Run, cancel func()) { cancel() }},
	{name: "mid-epoch", telling: true, hook: atStep(11)},
	{name: "after the last step of an epoch", hook: atStep(12)},
	{name: "in the RNA hook", telling: true, ofRNA: true, change: func(r *Run, cancel func()) {
		r.hooks[0] = &impatientRNA{r.hooks[0].(*average.RNA), 4, cancel}
	}},
	{name: "in a later hook of the epoch", hook: func(cancel func()) watch {
		return watch{Epoch: func(s *hook.State) error {
			if s.Epoch == 4 {
				cancel()
				return context.Canceled
			}
			return nil
		}}
	}},
	{name: "after the hooks of an epoch", hook: func(cancel func()) watch {
		return watch{Epoch: func(s *hook.State) error {
			if s.Epoch == 4 {
				cancel()
			}
			return nil
		}}
	}},
}

func atStep(k int) func(cancel func()) watch {
	return func(cancel func()) watch {
		return watch{Step: func(s *hook.State) error {
			if s.Steps == k {
				cancel()
			}
			return nil
		}}
	}
}

// TestResume stops and resumes runs: all their files must equal those of an uninterrupted run.
func TestResume(t *testing.T) {
	t.Parallel()
	images, more, few := pictures(t, 20, 6, 16), pictures(t, 25, 6, 16), pictures(t, 35, 6, 16)
	for i := 5; i < 35; i += 2 {
		if err := os.Remove(filepath.Join(few, "train", "striped", fmt.Sprintf("%03d.png", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		few  bool // only the most informative stops
		make func(out string) Spec
	}{
		{"offline", false, tiny},
		{"accumulation, nesterov", false, func(out string) Spec {
			c := tiny(out)
			c.Batch, c.StepsLimit, c.Accumulate, c.Nesterov, c.DecayWeightsOnly, c.LabelSmoothing = 4, 8, 3, true, true, 0.1
			return c
		}},
		{"adamw, accumulation", false, func(out string) Spec {
			c := tiny(out)
			c.Optimizer, c.Schedule.Rate, c.Batch, c.StepsLimit, c.Accumulate = "adamw", 1e-3, 4, 8, 3
			return c
		}},
		{"adamw, online, state reset", true, func(out string) Spec {
			c := tiny(out)
			c.Optimizer, c.Schedule.Rate, c.RNA.Mode = "adamw", 1e-3, average.Online
			return c
		}},
		{"lars", true, func(out string) Spec {
			c := tiny(out)
			c.Optimizer, c.Schedule.Rate, c.Nesterov, c.DecayWeightsOnly = "lars", 1, true, true
			return c
		}},
		{"lamb", true, func(out string) Spec {
			c := tiny(out)
			c.Optimizer, c.Schedule.Rate, c.DecayWeightsOnly = "lamb", 1e-2, true
			return c
		}},
		{"schedule-free SGD, averages of its iterates", false, func(out string) Spec {
			c := tinyColour(out, images)
			c.Optimizer, c.Schedule.Rate, c.Schedule.Warmup, c.EMA, c.RNA.PerEpoch = "schedule-free-sgd", .5, 1.5, []float64{12}, 2
			return c
		}},
		{"muon", true, func(out string) Spec {
			c := tinyColour(out, images)
			c.Optimizer, c.Schedule.Rate = "muon", 1e-3
			return c
		}},
		{"schedule-free AdamW, online", true, func(out string) Spec {
			c := tiny(out)
			c.Optimizer, c.Schedule.Rate, c.RNA.Mode = "schedule-free-adamw", 1e-3, average.Online
			return c
		}},
		{"online, momentum reset", false, func(out string) Spec {
			c := tiny(out)
			c.RNA.Mode = average.Online
			return c
		}},
		{"online every 2, momentum kept", false, func(out string) Spec {
			c := tiny(out)
			c.RNA.Mode, c.RNA.Momentum, c.RNA.Every = average.Online, average.Keep, 2
			return c
		}},
		{"BatchNorm", true, func(out string) Spec { return tinyColour(out, images) }},
		{"BatchNorm combined", true, func(out string) Spec {
			c := tinyColour(out, images)
			c.RNA.Stats = average.Combine
			return c
		}},
		{"BatchNorm, held-out images", true, func(out string) Spec {
			c := tinyColour(out, more)
			c.Holdout = 0.2
			return c
		}},
		{"lambda by held-out loss", true, func(out string) Spec {
			c := tinyColour(out, more)
			c.Holdout, c.EMA, c.RNA.Mode, c.RNA.Search = 0.2, []float64{12}, average.Online, true
			return c
		}},
		{"tau, accepted by held-out loss", true, func(out string) Spec {
			c := tinyColour(out, more)
			c.Holdout, c.RNA.Mode, c.RNA.Accept, c.RNA.Tau = 0.2, average.Online, true, ptr(0.5)
			return c
		}},
		{"snapshots within epochs", false, func(out string) Spec {
			c := tiny(out)
			c.RNA.Mode, c.RNA.PerEpoch, c.RNA.Window = average.Online, 2, 4
			return c
		}},
		{"means over segments", false, func(out string) Spec {
			c := tiny(out)
			c.RNA.PerEpoch, c.RNA.SegmentMeans = 2, true
			return c
		}},
		{"mean gradients, accumulation", false, func(out string) Spec {
			c := tiny(out)
			c.Batch, c.StepsLimit, c.Accumulate = 4, 8, 3
			c.RNA.Mode, c.RNA.SegmentMeans, c.RNA.Residual = average.Online, true, average.Gradients
			return c
		}},
		{"random layers", true, func(out string) Spec {
			c := tinyColour(out, images)
			c.Model, c.ImageSize = "test-random", 16
			return c
		}},
		{"schedule by step, EMA with a decay, mixing", true, func(out string) Spec {
			c := tinyColour(out, images)
			c.Schedule = schedule.Schedule{Kind: schedule.Cosine, Rate: 0.05, By: "step", Warmup: 1.5}
			c.EMADecay, c.EMAEvery, c.Mixup, c.Cutmix, c.LabelSmoothing, c.ClipGrad = 0.9, 2, 0.2, 1, 0.1, 0.5
			return c
		}},
		{"one-cycle, bce, augmentation, sizes that grow", true, func(out string) Spec {
			c := tinyColour(out, images)
			c.Schedule = schedule.Schedule{Kind: schedule.OneCycle, Rate: 0.05, WarmupSteps: 4}
			c.Loss, c.Mixup, c.AutoAugment, c.RandomErase, c.RepeatAugment = "bce", 0.2, "ta_wide", 0.5, 2
			c.TrainSize, c.TrainFrom, c.TrainRamp = 16, 8, [2]int{1, 4}
			return c
		}},
		{"focal loss, class weights, balanced", true, func(out string) Spec {
			c := tinyColour(out, few)
			c.Loss, c.ClassWeights, c.Sampler, c.RepeatAugment = Focal, ClassWeights{"effective"}, Balanced, 2
			return c
		}},
		{"RNA off, power averages", false, func(out string) Spec {
			c := tiny(out)
			c.RNA.Mode, c.EMA, c.KeepEvery = average.Off, []float64{5, 12}, 2
			return c
		}},
	} {
		if testing.Short() && c.name != "offline" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dev := cpuDevice(t, 2)
			whole := filepath.Join(t.TempDir(), "whole")
			want := trained(t, c.make(whole), dev)
			for _, s := range stops {
				if s.ofRNA && want.Resolved.RNA.Mode == average.Off || c.few && !s.telling {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					out := filepath.Join(t.TempDir(), "parts")
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					var hooks []hook.Hook
					if s.hook != nil {
						hooks = append(hooks, s.hook(cancel))
					}
					first := newRun(t, c.make(out), dev, hooks...)
					if s.change != nil {
						s.change(first, cancel)
					}
					if err := first.Train(ctx); !errors.Is(err, ErrInterrupted) {
						t.Fatalf("stopped with %v", err)
					}
					first.Close()
					second, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, nil)
					if err != nil {
						t.Fatal(err)
					}
					defer second.Close()
					if err := second.Train(context.Background()); err != nil {
						t.Fatal(err)
					}
					if len(second.History) != len(want.History) {
						t.Errorf("history of %d epochs, want %d", len(second.History), len(want.History))
					}
					sameFolders(t, out, whole)
				})
			}
		})
	}
}

// TestResumeSameRun continues a stopped run in memory.
func TestResumeSameRun(t *testing.T) {
	dev := cpuDevice(t, 2)
	dir := t.TempDir()
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	trained(t, tiny(whole), dev)
	ctx, cancel := context.WithCancelCause(context.Background())
	r := newRun(t, tiny(parts), dev, watch{Step: func(s *hook.State) error {
		if s.Steps == 7 {
			cancel(errors.New("enough"))
		}
		return nil
	}})
	err := r.Train(ctx)
	if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "epoch 3 after step 7") {
		t.Fatalf("stopped with %v", err)
	}
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	sameFolders(t, parts, whole)
}

// TestCancelledAtTheEnd checks that a run whose context ends after its last epoch simply ends.
func TestCancelledAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := newRun(t, tiny(""), cpuDevice(t, 1), watch{Epoch: func(s *hook.State) error {
		if s.LastEpoch() {
			cancel()
		}
		return nil
	}})
	if err := r.Train(ctx); err != nil {
		t.Error(err)
	}
}

func stopped(t *testing.T, c Spec, step int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := newRun(t, c, cpuDevice(t, 1), atStep(step)(cancel))
	if err := r.Train(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestResumeErrors checks that errors about a checkpoint name the file.
func TestResumeErrors(t *testing.T) {
	dev := cpuDevice(t, 1)
	source := filepath.Join(t.TempDir(), "run")
	stopped(t, tiny(source), 11)
	edit := func(name, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := inRun(t, dir, name)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(b), old) {
				t.Fatalf("%s does not contain %q: %s", name, old, b)
			}
			put(t, path, []byte(strings.Replace(string(b), old, new, 1)))
		}
	}
	cut := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := inRun(t, dir, name)
			st, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, st.Size()/2)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(inRun(t, dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Checksums detect damage (TestDamagedCheckpoint): here they match the wrong contents.
	reseal := func(t *testing.T, dir string) {
		newest, err := Checkpoint(dir)
		if err != nil {
			return
		}
		m, err := store.Read(newest)
		if err != nil {
			t.Fatal(err)
		}
		moved := t.TempDir()
		if err := os.CopyFS(filepath.Join(moved, "x"), os.DirFS(newest)); err != nil {
			t.Fatal(err)
		}
		_, err = store.Write(filepath.Join(dir, checkpointDir), 1, *m, func(tmp string) error {
			return errors.Join(os.Remove(tmp), os.Remove(filepath.Join(moved, "x", "manifest.json")),
				os.CopyFS(tmp, os.DirFS(filepath.Join(moved, "x"))))
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	state, conf := checkpointDir+"/state.json", checkpointDir+"/config.json"
	for _, c := range []struct {
		name, file, message string
		harm                func(t *testing.T, dir string)
	}{
		{"no checkpoint", "", "nothing to resume", remove(checkpointDir)},
		{"no state", state, "", remove(state)},
		{"state cut short", state, "", cut(state)},
		{"another version", state, "version 99", edit(state, `"version": 1`, `"version": 99`)},
		{"position outside", state, "epoch 4, batch 77", edit(state, `"batch": 2`, `"batch": 77`)},
		{"other data", state, "epochs have 25 images", edit(state, `"images": 24,`, `"images": 25,`)},
		{"no state of a hook", state, "hook rna", edit(state, `"rna": {`, `"rnb": {`)},
		{"data elsewhere", "", "no-such-photos: no such file or directory: the run was started in a folder that has it",
			edit(conf, `"data": "glyphs"`, `"data": "no-such-photos"`)},
		{"another window", state, "rna: ", edit(conf, `"rna_window": 2`, `"rna_window": 3`)},
		{"weights cut short", checkpointDir + "/weights.safetensors", "cut short",
			cut(checkpointDir + "/weights.safetensors")},
		{"no momentum", checkpointDir + "/momentum.safetensors", "", remove(checkpointDir + "/momentum.safetensors")},
		{"window cut short", checkpointDir + "/rna-001.safetensors", "", cut(checkpointDir + "/rna-001.safetensors")},
		{"another model", checkpointDir + "/weights.safetensors", "do not fit", edit(conf, `"num_classes": 10`,
			`"num_classes": 11`)},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
		c.harm(t, dir)
		reseal(t, dir)
		r, err := Resume(dir, Deps{Device: dev}, nil)
		if err == nil {
			r.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !strings.Contains(filepath.ToSlash(err.Error()), c.file[strings.LastIndex(c.file, "/")+1:]) ||
			!strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: error %q does not name %s or say %q", c.name, err, c.file, c.message)
		}
	}
}

// TestResumeWithoutInit resumes a run whose initial weights were deleted.
func TestResumeWithoutInit(t *testing.T) {
	dir := t.TempDir()
	first := tiny(filepath.Join(dir, "first"))
	first.Epochs = 1
	trained(t, first, cpuDevice(t, 1))
	c := tiny(filepath.Join(dir, "second"))
	c.Init = filepath.Join(first.Out, "final.safetensors")
	stopped(t, c, 4)
	if err := os.Remove(c.Init); err != nil {
		t.Fatal(err)
	}
	r, err := Resume(c.Out, Deps{Device: cpuDevice(t, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// TestSmokeTraining trains, stops, resumes and compares, on both devices of the default build.
func TestSmokeTraining(t *testing.T) {
	dir := t.TempDir()
	c := tiny(filepath.Join(dir, "run"))
	c.Epochs = 4
	stopped(t, c, 7)
	r, err := Resume(c.Out, Deps{Device: cpuDevice(t, 2)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	h := r.History
	if len(h) != 4 || h[3].SGD == nil || h[3].RNA == nil || h[3].RNA.Score == nil {
		t.Fatalf("history %+v", h)
	}
	c.Out = filepath.Join(dir, "whole")
	trained(t, c, cpuDevice(t, 2))
	sameFolders(t, r.Resolved.Out, c.Out)
	c.Out, c.Epochs, c.StepsLimit = "", 1, 1
	trained(t, c, reference(op.Float32))
}
