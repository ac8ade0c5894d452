package train

import (
	"image"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// targeted makes a set of gray images of a task, whose left and right halves have a brightness each: for MultiLabel the
// classes are those halves that are bright, for Regression the numbers are the brightnesses, on a scale of hundreds.
func targeted(t *testing.T, task data.Task, n int, seed uint64) data.Dataset {
	t.Helper()
	var images []image.Image
	var rows [][]float64
	for i := range n {
		m := image.NewGray(image.Rect(0, 0, 16, 16))
		row := make([]float64, 2)
		for half := range 2 {
			v := uint8((uint64(i)*uint64(37+60*half) + seed*11 + uint64(half*50)) % 256)
			for p := range 128 {
				m.SetGray(half*8+p%8, p/8, color.Gray{v})
			}
			if row[half] = float64(v)*10 - 500; task == data.MultiLabel {
				row[half] = float64(v / 128)
			}
		}
		images, rows = append(images, m), append(rows, row)
	}
	set, err := data.FromTargets(task, []string{"left", "right"}, images, rows)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func taskSpec(task data.Task, out string) Spec {
	c := Spec{Model: "conv6", Task: task, Batch: 12, Epochs: 3, Out: out, Holdout: .2, Optimizer: "adamw", Seed: 5}
	c.RNA = average.Options{Mode: average.Offline, Window: 2}
	c.Mixup = .2
	return c
}

// A net learns each task. Weights name their task and outputs, a multi-label net's thresholds are those of the held-out
// images, and a resumed run has the bits of one that did not stop.
func TestTasks(t *testing.T) {
	for _, task := range []data.Task{data.MultiLabel, data.Regression} {
		t.Run(string(task), func(t *testing.T) {
			set, val := targeted(t, task, 120, 0), targeted(t, task, 30, 1)
			start := func(out string) *Run {
				r, err := New(taskSpec(task, out), Deps{Device: cpuDevice(t, 2), Train: set, Val: val})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { r.Close() })
				return r
			}
			out := filepath.Join(t.TempDir(), "whole")
			whole := start(out)
			if err := whole.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			first, last := whole.History[0].SGD, whole.History[2].SGD
			if last.Task != task || !(last.Loss < first.Loss) || !(last.Deviation > 0) || last.Images != 30 {
				t.Errorf("%+v after %+v", last, first)
			}
			if task == data.Regression && !(last.RMSE > 10*math.Sqrt(last.Loss) && last.MAE > 0 && last.R2 < 1) {
				t.Errorf("not in units of the numbers: %+v", last)
			}
			meta, err := network.ReadMeta(filepath.Join(out, "final.safetensors"))
			if err != nil || meta.Task != task {
				t.Fatalf("%+v, %v", meta.Meaning, err)
			}
			if task == data.MultiLabel {
				whole.Net.Meaning = network.Meaning{Task: task}
				o := whole.Net.NewCollector(whole.in.held.Dataset())
				if _, err := whole.Net.Tally(t.Context(), whole.in.held, func(b *data.Batch, z []float32) error {
					o.Add(b, z)
					return nil
				}, nil); err != nil || !slices.Equal(o.Thresholds(), meta.Thresholds) {
					t.Errorf("thresholds %v, want %v; %v", meta.Thresholds, o.Thresholds(), err)
				}
			} else if len(meta.Scale) != 2 || math.Abs(meta.Offset[0]-775) > 100 {
				t.Errorf("%+v", meta.Meaning)
			}
			half := filepath.Join(t.TempDir(), "half")
			part := start(half)
			if err := part.TrainTo(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			part.Close()
			again, err := Resume(half, Deps{Device: cpuDevice(t, 2), Train: set, Val: val}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if err := again.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(numbers(t, again.Net.Params), numbers(t, whole.Net.Params)) {
				t.Error("a resumed run has other bits")
			}
			for e, rec := range whole.History {
				if got := again.History[e].SGD; *got != *rec.SGD {
					t.Errorf("epoch %d: %+v, want %+v", e+1, got, rec.SGD)
				}
			}
			other, err := network.ReadMeta(filepath.Join(half, "best.safetensors"))
			best, err2 := network.ReadMeta(filepath.Join(out, "best.safetensors"))
			if err != nil || err2 != nil || !slices.Equal(other.Thresholds, best.Thresholds) ||
				!slices.Equal(other.Scale, best.Scale) {
				t.Errorf("%+v, want %+v; %v, %v", other.Meaning, best.Meaning, err, err2)
			}
		})
	}
}

// Ranks train each task as one process does.
func TestTasksTogether(t *testing.T) {
	for _, task := range []data.Task{data.MultiLabel, data.Regression} {
		c := taskSpec(task, "")
		c.Epochs, c.RNA.Mode, c.Accumulate, c.Holdout, c.Model = 2, average.Off, 2, 0, "lenet"
		set, val := targeted(t, task, 60, 0), targeted(t, task, 31, 1)
		run := func(g *ranks.Group, c Spec, dev device.Device) (o outcome) {
			r, err := New(c, Deps{Device: dev, Ranks: g, Train: set, Val: val})
			if err != nil {
				return outcome{err: err}
			}
			defer r.Close()
			o.err = r.Train(t.Context())
			o.history, o.params = r.History, numbers(t, r.Net.Params)
			return o
		}
		dev, _ := reference64()
		want := run(nil, c, dev)
		if want.err != nil {
			t.Fatal(want.err)
		}
		c.Accumulate = 1
		for rank, got := range together(t, 2, c, reference64, run) {
			if got.err != nil {
				t.Fatal(got.err)
			}
			if d := apart(got.params, want.params); got.err != nil || d > 1e-12 {
				t.Errorf("%s, rank %d: parameters differ by %g, %v", task, rank, d, got.err)
			}
			a, b := got.history[1].SGD, want.history[1].SGD
			if math.Abs(a.Error()-b.Error()) > 1e-6*math.Abs(b.Error()) || math.Abs(a.Loss-b.Loss) > 1e-9 || a.Images != 31 {
				t.Errorf("%s, rank %d: %+v, want %+v", task, rank, a, b)
			}
		}
	}
}

// The default rate of SGD for numbers is a tenth of that for classes; other optimisers keep theirs.
func TestTaskRate(t *testing.T) {
	for _, c := range []struct {
		task      data.Task
		optimiser string
		want      float64
	}{{data.MultiLabel, "sgd", .05}, {data.Regression, "sgd", .005}, {data.Regression, "adamw", .001}} {
		spec := taskSpec(c.task, "")
		spec.Optimizer = c.optimiser
		r, err := New(spec, Deps{Device: cpuDevice(t, 2), Train: targeted(t, c.task, 20, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Resolved.Schedule.Rate; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s, %s: rate %g, want %g", c.task, c.optimiser, got, c.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Options that do not go with a task are errors of one line.
func TestTaskMistakes(t *testing.T) {
	constant, err := data.FromTargets(data.Regression, []string{"x"}, []image.Image{image.NewGray(image.Rect(0, 0, 16, 16))},
		[][]float64{{3}})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpuDevice(t, 2)
	for name, c := range map[string]struct {
		task   data.Task
		change func(c *Spec, d *Deps)
		want   string
	}{
		"loss":      {data.MultiLabel, func(c *Spec, _ *Deps) { c.Loss = CrossEntropy }, "use one of [bce asl]"},
		"mse":       {data.MultiLabel, func(c *Spec, _ *Deps) { c.Loss = MSE }, "loss mse is not for the task multi-label"},
		"bce":       {data.Regression, func(c *Spec, _ *Deps) { c.Loss = BCE }, "use one of [mse huber]"},
		"sampler":   {data.MultiLabel, func(c *Spec, _ *Deps) { c.Sampler = Balanced }, "sampler balanced is for images of one class"},
		"smoothing": {data.Regression, func(c *Spec, _ *Deps) { c.LabelSmoothing = .1 }, "label-smoothing is for images of one"},
		"weights":   {data.MultiLabel, func(c *Spec, _ *Deps) { c.ClassWeights = ClassWeights{"auto"} }, "class weights are for"},
		"task":      {data.MultiLabel, func(c *Spec, _ *Deps) { c.Task = data.Regression }, "Deps.Train is for the task multi-label"},
		"constant": {data.Regression, func(c *Spec, d *Deps) { d.Train, d.Val, c.Holdout = constant, nil, 0 },
			"the numbers x of the training images have the standard deviation 0"},
	} {
		spec, deps := taskSpec(c.task, ""), Deps{Device: dev, Train: targeted(t, c.task, 20, 0)}
		c.change(&spec, &deps)
		if _, err := New(spec, deps); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Weights for another task start a net with a fresh last layer, also one of equal size.
func TestInitFromOtherTask(t *testing.T) {
	dev := cpuDevice(t, 1)
	files := map[data.Task]string{}
	tasks := []data.Task{data.Classification, data.MultiLabel, data.Regression}
	open := func(task data.Task, init string) *Run {
		c := taskSpec(task, filepath.Join(t.TempDir(), "run"))
		c.Epochs, c.NumClasses, c.Holdout, c.RNA.Mode, c.Init = 1, 10, 0, average.Off, init
		c.StepsLimit, c.ValLimit = 2, 1
		d := Deps{Device: dev}
		if task == data.Classification {
			c.Task = ""
		} else {
			d.Train = targeted(t, task, 20, 0)
		}
		r, err := New(c, d)
		if err != nil {
			t.Fatalf("%s from %q: %v", task, init, err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	for _, task := range tasks {
		r := open(task, "")
		if err := r.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		files[task] = filepath.Join(r.Resolved.Out, "final.safetensors")
	}
	for _, from := range tasks {
		for _, to := range tasks {
			notes := strings.Join(open(to, files[from]).Resolved.Notes, "\n")
			if fresh := strings.Contains(notes, "starts fresh with 10 outputs"); fresh != (from != to) {
				t.Errorf("%s from %s: %s", to, from, notes)
			}
		}
	}
}
