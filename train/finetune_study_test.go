package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/average"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// task is a small set: classes of a data set, with a net trained on other classes of it.
type task struct {
	source, model  string
	before, target []int
}

// tasks are the sets of the study of fine-tuning.
var tasks = []task{
	{"cifar10", "conv6", []int{0, 2, 4, 6, 8}, []int{3, 5}},
	{"cifar10", "conv6", []int{0, 2, 4, 6, 8}, []int{1, 5, 7}},
	{"cifar10", "conv6", []int{1, 3, 5, 7, 9}, []int{0, 8}},
	{"cifar10", "conv6", []int{1, 3, 5, 7, 9}, []int{2, 4, 6}},
	{"cifar10", "resnet20", []int{0, 2, 4, 6, 8}, []int{1, 9}},
	{"cifar10", "resnet20", []int{0, 2, 4, 6, 8}, []int{3, 7}},
	{"glyphs", "lenet", []int{0, 1, 2, 3, 4, 5}, []int{6, 7, 8, 9}},
	{"glyphs", "lenet", []int{3, 4, 5, 6, 7, 8, 9}, []int{0, 1, 2}},
	{"mnist", "lenet", []int{0, 1, 2, 3, 4, 5}, []int{6, 7, 8, 9}},
	{"mnist", "lenet", []int{0, 1, 2, 3, 5, 6, 8}, []int{4, 7, 9}},
}

// sizes are the numbers of training images per class.
var sizes = []int{20, 100, 500}

// cell is a run of the study with its result.
type cell struct {
	Task    string  `json:"task"`
	Size    int     `json:"images_a_class"`
	Method  string  `json:"method"`
	Seed    uint64  `json:"seed"`
	Error   float64 `json:"error_percent"`
	Seconds float64 `json:"seconds"`
}

func (c cell) key() string { return fmt.Sprint(c.Task, "|", c.Size, "|", c.Method, "|", c.Seed) }

// tuner trains the net of a config by a method and returns the run. The config has Init, Train and Model.
type tuner func(t *testing.T, c lesson, dir string) (*Run, error)

// method is a way to fine-tune.
type method struct {
	name string
	tune tuner
}

// methods are the default and its rivals.
var methods = []method{{"default", byDefault}, {"fastai", byFastai}, {"torchvision", byTutorial}}

// TestFineTuneStudy compares the fine-tuning defaults with the settings of fastai's fine_tune and of PyTorch's tutorial
// on small sets, and prints a Markdown table. ONLINERNA_FINETUNE is the folder of results: stored results are not
// computed again. ONLINERNA_FINETUNE_MINUTES limits the time. The default must not be two points behind the best on any
// set.
func TestFineTuneStudy(t *testing.T) {
	s := newTuneStudy(t, os.Getenv("ONLINERNA_STUDY") != "choice")
	s.wantAll(methods, 1, 2, 3, 4, 5)
	s.run()
	fmt.Print(s.table())
	for _, line := range s.behind() {
		t.Error(line)
	}
}

// TestFineTuneChoice measures the variants from which the defaults were chosen, on separate seeds. It needs
// ONLINERNA_STUDY=choice.
func TestFineTuneChoice(t *testing.T) {
	s := newTuneStudy(t, os.Getenv("ONLINERNA_STUDY") == "choice")
	list := slices.Clone(methods[1:])
	for _, v := range variants {
		list = append(list, method{v.name, changed(v.change)})
	}
	s.wantAll(list, 101)
	s.run()
	fmt.Print(s.table())
}

// TestFineTuneQuick runs the study in miniature: a finished cell is not run again.
func TestFineTuneQuick(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ONLINERNA_FINETUNE", dir)
	for range 2 {
		s := newTuneStudy(t, true)
		s.pretrain = 1
		s.want(tasks[7], 4, methods[0], 1)
		s.want(tasks[7], 4, methods[1], 1)
		s.want(tasks[7], 4, methods[2], 1)
		s.run()
		if len(s.done) != 3 || !strings.Contains(s.row("glyphs, lenet: circle, triangle, square", 4), " | 1 | ") {
			t.Fatalf("%+v\n%s", s.done, s.row("glyphs, lenet: circle, triangle, square", 4))
		}
		for _, c := range s.done {
			if !(c.Error > 1 && c.Error < 90) {
				t.Errorf("%+v", c)
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "cells.jsonl"))
	if err != nil || strings.Count(string(b), "\n") != 3 {
		t.Errorf("%s, %v", b, err)
	}
}

// variants of the defaults.
var variants = []struct {
	name   string
	change func(c *lesson)
}{
	{"0.003, head × 10", func(c *lesson) { rates(c, 0.003, 10) }},
	{"0.01, head × 10", func(c *lesson) { rates(c, 0.01, 10) }},
	{"0.02, head × 5", func(c *lesson) { rates(c, 0.02, 5) }},
	{"0.03, head × 3", func(c *lesson) { rates(c, 0.03, 3) }},
	{"0.1, head × 1", func(c *lesson) { rates(c, 0.1, 1) }},
	{"0.03, head × 3, warm-up", func(c *lesson) {
		rates(c, 0.03, 3)
		c.Schedule.Warmup = 1
	}},
	{"0.03, head × 3, BatchNorm frozen", func(c *lesson) {
		rates(c, 0.03, 3)
		if c.Model != "lenet" {
			c.Freeze = []string{"*bn*"}
		}
	}},
	{"0.03, head × 3, half the epochs", func(c *lesson) {
		rates(c, 0.03, 3)
		c.Epochs = tunedEpochs(c) / 2
	}},
}

// rates sets the learning rate for steps of 32 images, and the head's rate from it.
func rates(c *lesson, rate, head float64) {
	c.Schedule.Rate = rate * float64(resolvedAs(c).Batch) / 32
	c.HeadRate = head * c.Schedule.Rate
	c.Schedule.Kind, c.Schedule.By = schedule.Cosine, schedule.ByStep
}

// lesson is a run on the test's images.
type lesson struct {
	Spec
	Train data.Dataset
}

// resolvedAs returns c with its defaults.
func resolvedAs(c *lesson) lesson {
	d := *c
	p, err := data.ProfileOf(c.Train)
	if err == nil {
		err = resolveSpec(&d.Spec, c.Train, p)
	}
	if err != nil {
		panic(err)
	}
	return d
}

func tunedEpochs(c *lesson) int { return resolvedAs(c).Epochs }

func changed(change func(*lesson)) tuner {
	return func(t *testing.T, c lesson, _ string) (*Run, error) {
		change(&c)
		return tune(t, c)
	}
}

func byDefault(t *testing.T, c lesson, _ string) (*Run, error) { return tune(t, c) }

// byTutorial has the settings of PyTorch's tutorial on transfer learning.
func byTutorial(t *testing.T, c lesson, _ string) (*Run, error) {
	c.Batch, c.Epochs, c.WeightDecay = 4, 25, ptr(0)
	c.Schedule = schedule.Schedule{Kind: schedule.Step, Rate: 0.001, StepEvery: 7, Gamma: 0.1}
	return tune(t, c)
}

// byFastai has the settings of fastai's fine_tune: one epoch of the head and BatchNorm, then all layers, each by one
// cycle with Adam. It takes the default's number of epochs, which fine_tune leaves to the user.
func byFastai(t *testing.T, c lesson, dir string) (*Run, error) {
	const base = 2e-3
	epochs, layers := tunedEpochs(&c), 7
	c.Batch = min(64, c.Train.Len())
	c.Optimizer, c.Beta2, c.Eps, c.WeightDecay, c.DecayWeightsOnly = "adamw", ptr(.99), ptr(1e-5), ptr(1e-2), true
	first := c
	first.Epochs, first.Freeze, first.HeadRate = 1, []string{"*conv*"}, base
	if c.Model == "lenet" {
		first.Freeze, layers = []string{"!fc3.*"}, 5
	} else if c.Model == "resnet20" {
		layers = 11
	}
	first.Schedule = schedule.Schedule{Kind: schedule.OneCycle, Rate: base / 10, Warmup: 0.99}
	r, err := tune(t, first)
	if err != nil {
		return nil, err
	}
	between := filepath.Join(dir, fmt.Sprintf("between-%d.safetensors", time.Now().UnixNano()))
	defer os.Remove(between)
	err = r.Net.SaveWeights(between, r.Net.Params, r.Net.Stats, r.Meta(network.SGD))
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	c.Init, c.Epochs, c.LayerDecay = between, epochs, math.Pow(100, -1/float64(layers-1))
	c.HeadRate = base / 2
	c.Schedule = schedule.Schedule{Kind: schedule.OneCycle, Rate: base / 2, Warmup: 0.3 * float64(epochs),
		WarmupFrom: ptr(0.2)}
	return tune(t, c)
}

// tune returns a finished run, on one thread.
func tune(t *testing.T, c lesson) (*Run, error) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	c.RNA.Mode, c.Threads, c.Workers = average.Off, 1, 1
	r, err := New(c.Spec, Deps{Device: dev, Train: c.Train})
	if err != nil {
		return nil, err
	}
	if err = r.Train(context.Background()); err != nil {
		r.Close()
	}
	return r, err
}
