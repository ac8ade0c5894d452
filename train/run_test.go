package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// TestThreads checks that results do not depend on the number of threads, of loader workers, or on other processes.
func TestThreads(t *testing.T) {
	c := tiny("")
	var want []float64
	for _, threads := range []int{1, 2, 3} {
		c.Threads, c.Workers = threads, threads
		r := trained(t, c, cpuDevice(t, threads))
		got := numbers(t, r.Net.Params)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d threads give other weights than one", threads)
		}
	}
}

// TestDevices compares the devices after a few steps: they differ by rounding.
func TestDevices(t *testing.T) {
	c := tiny("")
	c.Epochs, c.StepsLimit, c.ValLimit, c.Batch, c.RNA.Mode = 2, 2, 1, 4, average.Off
	want := trained(t, c, reference(op.Float64))
	for _, r := range []*Run{trained(t, c, cpuDevice(t, 2)), trained(t, c, reference(op.Float32))} {
		expect := tensors(t, want.Net)
		for name, x := range tensors(t, r.Net) { // the devices' orders of elements differ
			near(t, r.Device.Name()+" "+name, x, expect[name], 1e-5)
		}
		for e := range want.History {
			got, want := r.History[e], want.History[e]
			near(t, "losses", []float64{got.Train.Loss, got.SGD.Loss}, []float64{want.Train.Loss, want.SGD.Loss}, 1e-5)
		}
	}
}

// TestAccumulation compares k batches of n with one of k·n, for a model without BatchNorm. The last step of an epoch is
// smaller.
func TestAccumulation(t *testing.T) {
	c := Spec{Data: pictures(t, 22, 0, 32), Model: "lenet", Augment: "none", Epochs: 2,
		Schedule: schedule.Schedule{Kind: schedule.Constant, Rate: 0.05}, RNA: average.Options{Mode: average.Off}}
	c.Batch, c.Accumulate = 16, 1
	want := trained(t, c, cpuDevice(t, 2))
	c.Batch, c.Accumulate = 4, 4
	got := trained(t, c, cpuDevice(t, 2))
	if w := want.pos.Steps; w != 4 || got.pos.Steps != w {
		t.Errorf("%d steps and %d accumulated, want 4", w, got.pos.Steps)
	}
	near(t, "weights", numbers(t, got.Net.Params), numbers(t, want.Net.Params), 1e-5)
	a, b := got.History[1].Train, want.History[1].Train
	near(t, "loss", []float64{a.Loss}, []float64{b.Loss}, 1e-5)
	if a.Images != 22 || b.Images != 22 {
		t.Errorf("epochs of %d and %d images", a.Images, b.Images)
	}
}

// TestStep checks one step of the optimiser against its equation.
func TestStep(t *testing.T) {
	c := tiny("")
	c.Epochs, c.StepsLimit, c.RNA.Mode, c.DecayWeightsOnly = 1, 1, average.Off, true
	c.WeightDecay = ptr(0.1)
	r := newRun(t, c, cpuDevice(t, 1))
	before := numbers(t, r.Net.Params)
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	grad, exempt := numbers(t, r.Net.Grads), map[int]bool{}
	for _, s := range r.Net.NoDecay() {
		for i := range s.Len {
			exempt[s.Off+i] = true
		}
	}
	if len(exempt) != 6+16+120+84+10 {
		t.Errorf("%d elements are exempt from weight decay, want LeNet's 236 biases", len(exempt))
	}
	for i, w := range before {
		g := grad[i]
		if !exempt[i] {
			g += 0.1 * w
		}
		before[i] = w - 0.05*g
	}
	near(t, "weights", numbers(t, r.Net.Params), before, 1e-6)
}

func diverged(t *testing.T, err error, dir, what string) *DivergedError {
	t.Helper()
	var d *DivergedError
	if !errors.As(err, &d) {
		t.Fatalf("error %v, want a DivergedError", err)
	}
	if !strings.Contains(d.What, what) || filepath.Dir(d.Checkpoint) != filepath.Join(dir, checkpointDir) ||
		!strings.Contains(err.Error(), d.Checkpoint) || !strings.Contains(err.Error(), fmt.Sprintf("step %d", d.Step)) {
		t.Errorf("error %q (%+v), want one about %q", err, d, what)
	}
	return d
}

func TestDivergence(t *testing.T) {
	dev := cpuDevice(t, 2)
	t.Run("rate", func(t *testing.T) {
		c := tiny(filepath.Join(t.TempDir(), "run"))
		c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 1e6}
		r := newRun(t, c, dev)
		d := diverged(t, r.Train(t.Context()), c.Out, "")
		if d.Epoch < 1 || d.Step < 1 || d.Rate != 1e6 {
			t.Errorf("%+v", d)
		}
	})
	// Weights become NaN after the last step of an epoch: its loss was still finite.
	spoil := func(step int, then func()) watch {
		return watch{Step: func(s *hook.State) error {
			if s.Steps == step {
				defer then()
				return s.Net.Params.WriteAt64([]float64{math.NaN()}, 17)
			}
			return nil
		}}
	}
	good := func(t *testing.T, dir string, steps int) {
		t.Helper()
		r, err := Resume(dir, Deps{Device: dev}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if ok, err := r.Net.Finite(); err != nil || !ok || r.pos.Steps != steps {
			t.Errorf("the checkpoint is at step %d, finite: %v, %v", r.pos.Steps, ok, err)
		}
		if err := r.Train(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Run("weights", func(t *testing.T) {
		c := tiny(filepath.Join(t.TempDir(), "run"))
		r := newRun(t, c, dev, spoil(6, func() {}))
		if d := diverged(t, r.Train(t.Context()), c.Out, "a weight is not finite"); d.Epoch != 2 || d.Step != 6 {
			t.Errorf("%+v", d)
		}
		r.Close()
		good(t, c.Out, 3)
	})
	t.Run("momentum", func(t *testing.T) {
		c := tiny(filepath.Join(t.TempDir(), "run"))
		var r *Run
		r = newRun(t, c, dev, watch{Step: func(s *hook.State) error {
			if s.Steps == 6 {
				return r.engine.update.State[0].WriteAt64([]float64{math.Inf(1)}, 17)
			}
			return nil
		}})
		diverged(t, r.Train(t.Context()), c.Out, "not finite")
		r.Close()
		good(t, c.Out, 3)
	})
	t.Run("weights while being interrupted", func(t *testing.T) {
		c := tiny(filepath.Join(t.TempDir(), "run"))
		ctx, cancel := context.WithCancel(t.Context())
		r := newRun(t, c, dev, spoil(5, cancel))
		diverged(t, r.Train(ctx), c.Out, "a weight is not finite")
		r.Close()
		good(t, c.Out, 3)
	})
	t.Run("validation loss", func(t *testing.T) {
		c := tiny(filepath.Join(t.TempDir(), "run"))
		r := newRun(t, c, dev, watch{Step: func(s *hook.State) error {
			if s.Steps == 6 {
				return s.Net.Params.Fill(1e30)
			}
			return nil
		}})
		diverged(t, r.Train(t.Context()), c.Out, "the validation loss is NaN")
		r.Close()
		good(t, c.Out, 3)
	})
	t.Run("no folder", func(t *testing.T) {
		r := newRun(t, tiny(""), dev, spoil(2, func() {}))
		var d *DivergedError
		if err := r.Train(t.Context()); !errors.As(err, &d) || d.Checkpoint != "" ||
			!strings.Contains(err.Error(), "no checkpoint") {
			t.Errorf("error %v", err)
		}
	})
}

// TestZeroConfig checks that the zero Spec trains LeNet on the glyphs.
func TestZeroConfig(t *testing.T) {
	r := newRun(t, Spec{}, cpuDevice(t, 1))
	train, val := r.Images()
	if c := r.Resolved; c.Model != "lenet" || c.Epochs != 16 || c.Out != "" || train != 8000 || val != 4000 ||
		len(c.Classes) != 10 {
		t.Errorf("%d and %d images, %+v", train, val, c)
	}
	if err := r.Save(); err == nil {
		t.Error("a run without a folder saves its state")
	}
}

// TestOut checks that a run writes to its own folder or not at all.
func TestOut(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), []byte("x"))
	dev := cpuDevice(t, 1)
	for _, out := range []string{filepath.Join(dir, "file"), filepath.Join(dir, "file", "run")} {
		r := newRun(t, tiny(out), dev)
		if err := r.Train(t.Context()); err == nil || !strings.Contains(err.Error(), out) ||
			!strings.Contains(err.Error(), "folder") {
			t.Errorf("error %v does not name %s", err, out)
		}
	}
	for _, there := range []string{"config.json", "metrics.jsonl", "checkpoint/000007/manifest.json", "best.safetensors",
		"final.safetensors", "rna.safetensors"} {
		out := filepath.Join(t.TempDir(), "run")
		put(t, filepath.Join(out, filepath.FromSlash(there)), []byte("precious"))
		r := newRun(t, tiny(out), dev)
		if err := r.Train(t.Context()); err == nil || !strings.Contains(err.Error(), out) ||
			!strings.Contains(err.Error(), "already") {
			t.Errorf("%s: error %v", there, err)
		}
		if b, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(there))); err != nil || string(b) != "precious" {
			t.Errorf("%s: now %q, %v", there, b, err)
		}
		if got := traintest.Files(t, out); len(got) != 1 {
			t.Errorf("%s: the folder now holds %v", there, got)
		}
	}
	// An existing folder with other files is accepted, and its contents stay.
	out := t.TempDir()
	put(t, filepath.Join(out, "notes.txt"), []byte("mine"))
	c := tiny(out)
	c.Epochs = 1
	trained(t, c, dev)
	want := []string{"best.safetensors", "checkpoint/best.safetensors", "checkpoint/config.json",
		"checkpoint/momentum.safetensors", "checkpoint/state.json", "checkpoint/weights.safetensors",
		"config.json", "final.safetensors", "metrics.jsonl", "notes.txt"}
	if got := filesOf(t, out); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// TestNoValidation trains without images to compare weights on.
func TestNoValidation(t *testing.T) {
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 20, 0, 16))
	c.Epochs, c.RNA.Averages = 4, []int{2, 5}
	r := newRun(t, c, cpuDevice(t, 2))
	var said []string
	r.Log = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "no validation images") }) {
		t.Errorf("the log says %q", said)
	}
	last := r.History[3]
	if last.SGD != nil || last.Averages != nil || last.RNA == nil || last.RNA.Status != "ok" || last.RNA.Score != nil {
		t.Errorf("record %+v", last)
	}
	got := filesOf(t, c.Out)
	if !slices.Contains(got, "rna.safetensors") || !slices.Contains(got, "final.safetensors") ||
		slices.Contains(got, "best.safetensors") || slices.Contains(got, "average-5.safetensors") {
		t.Errorf("files %v", got)
	}
	meta, err := r.Net.LoadWeights(filepath.Join(c.Out, "average-2.safetensors"))
	if err != nil || meta.Kind != network.Average || meta.Snapshots != 2 || meta.Epoch != 4 {
		t.Errorf("the average: %+v, %v", meta, err)
	}
}

// TestShortRun expects the message that there is nothing to extrapolate.
func TestShortRun(t *testing.T) {
	c := tiny("")
	c.Epochs = 3
	r := newRun(t, c, cpuDevice(t, 2))
	said := ""
	r.Log = func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "no extrapolation") || !strings.Contains(said, "epoch 4") || r.History[2].RNA != nil {
		t.Errorf("the log says %q, the record %+v", said, r.History[2].RNA)
	}
}

// TestBadImages trains with an unreadable image.
func TestBadImages(t *testing.T) {
	c := tinyColour("", pictures(t, 20, 6, 16))
	bad := filepath.Join(c.Data, "train", "plain", "004.png")
	put(t, bad, []byte("no image"))
	c.Epochs = 2
	c.MaxBad = new(data.MaxBad) // none
	err := newRun(t, c, cpuDevice(t, 1)).Train(t.Context())
	if err == nil || !strings.Contains(err.Error(), bad) || strings.Count(err.Error(), "epoch") != 1 {
		t.Errorf("error %v does not name %s, or the epoch once", err, bad)
	}
	c.MaxBad = nil // one of twenty is allowed
	r := newRun(t, c, cpuDevice(t, 1))
	said := ""
	r.Log = func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rec := r.History[0]; rec.Bad != 1 || rec.Train.Images != 20 || strings.Count(said, bad) != 1 ||
		!strings.Contains(said, "unreadable image, replaced by another: "+bad) {
		t.Errorf("record %+v, log %q", rec, said)
	}
	// No evaluation image is readable: there must be no score.
	for _, name := range filesOf(t, filepath.Join(c.Data, "val")) {
		put(t, filepath.Join(c.Data, "val", name), []byte("no image"))
	}
	all := data.AllBad
	c.MaxBad = &all
	if err := newRun(t, c, cpuDevice(t, 1)).Train(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no image could be evaluated") {
		t.Errorf("error %v", err)
	}
}

type named string

func (n named) Name() string { return string(n) }

func TestHooks(t *testing.T) {
	for _, hooks := range [][]hook.Hook{{named("rna")}, {named("a"), named("a")}} {
		if _, err := New(tiny(""), Deps{Device: cpuDevice(t, 1), Hooks: hooks}); err == nil ||
			!strings.Contains(err.Error(), "two hooks are named") {
			t.Errorf("hooks %v: error %v", hooks, err)
		}
	}
	for _, w := range []watch{
		{Step: func(*hook.State) error { return fs.ErrInvalid }},
		{Epoch: func(*hook.State) error { return fs.ErrInvalid }},
	} {
		r := newRun(t, tiny(""), cpuDevice(t, 1), w)
		if err := r.Train(t.Context()); !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), "epoch 1") ||
			!strings.Contains(err.Error(), ": watch: ") {
			t.Errorf("error %v does not name the hook", err)
		}
	}
}

// TestWinogradOfDevice checks that a run records its device's convolution algorithm, whatever its config says, so that
// it resumes on such a device.
func TestWinogradOfDevice(t *testing.T) {
	for _, direct := range []bool{false, true} {
		dev, err := cpu.New(cpu.Options{Threads: 1, Direct: direct})
		if err != nil {
			t.Fatal(err)
		}
		c := tiny("")
		c.Winograd = &direct
		if r := newRun(t, c, dev); *r.Resolved.Winograd != dev.Winograd() {
			t.Errorf("direct %v: Winograd's algorithm is recorded as %v, the device says %v", direct, *r.Resolved.Winograd,
				dev.Winograd())
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

func scoreOf(r *hook.RNARecord) *network.Score {
	if r == nil {
		return nil
	}
	return r.Score
}

// A run records how its device multiplies float32, unless it is directly and not asked for. It takes the default on any
// device, and anything else only on one that does so.
func TestFloat32OfDevice(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1, Float32: cpu.Direct})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for way, want := range map[string]string{"": "", cpu.BF16x6: "", cpu.Direct: cpu.Direct} {
		c := tiny("")
		c.Float32 = way
		if r := newRun(t, c, dev); r.Resolved.Float32 != want {
			t.Errorf("%q is recorded as %q, want %q", way, r.Resolved.Float32, want)
		}
	}
	c := tiny("")
	c.Float32 = cpu.BF16x3
	if r, err := New(c, Deps{Device: dev}); err == nil || !strings.Contains(err.Error(), "float32 bf16x3") {
		t.Errorf("bf16x3 on a device that multiplies directly: %v", err)
		if r != nil {
			r.Close()
		}
	}
}
