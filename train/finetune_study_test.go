package train

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/network"
)

// task is a small set: classes of a data set, with a net that was trained on other classes of it.
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
	{"cifar10", "resnet20", []int{1, 3, 5, 7, 9}, []int{2, 4}},
	{"glyphs", "lenet", []int{0, 1, 2, 3, 4, 5}, []int{6, 7, 8, 9}},
	{"glyphs", "lenet", []int{3, 4, 5, 6, 7, 8, 9}, []int{0, 1, 2}},
	{"mnist", "lenet", []int{0, 1, 2, 3, 4, 5}, []int{6, 7, 8, 9}},
	{"mnist", "lenet", []int{0, 1, 2, 3, 5, 6, 8}, []int{4, 7, 9}},
}

// chosenTasks are those whose data and net ONLINERNA_FINETUNE_SETS names, all without.
func chosenTasks() []task {
	only := os.Getenv("ONLINERNA_FINETUNE_SETS")
	return slices.DeleteFunc(slices.Clone(tasks), func(k task) bool { return !strings.Contains(k.source+" "+k.model, only) })
}

// sizes are the numbers of training images a class.
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

// tuner trains the net of a config, which has Init, Train and Model, by a method and returns the run.
type tuner func(t *testing.T, c Config, dir string) (*Run, error)

// rivals of the default, which is methods[0].
var methods = []struct {
	name string
	tune tuner
}{{"default", byDefault}, {"fastai", byFastai}, {"torchvision", byTutorial}}

// TestFineTuneStudy measures the defaults of fine-tuning against those of fastai's fine_tune and of torchvision's tutorial on small sets, and
// prints a Markdown table. ONLINERNA_FINETUNE is the folder that keeps results: what is in it is not run again. ONLINERNA_FINETUNE_MINUTES
// ends it early. In no set may the default be two points behind the best.
func TestFineTuneStudy(t *testing.T) {
	dir := os.Getenv("ONLINERNA_FINETUNE")
	if dir == "" {
		t.Skip("set ONLINERNA_FINETUNE to a folder for its results to run it")
	}
	s := newTuneStudy(t, dir)
	for seed := range uint64(5) {
		for _, size := range sizes {
			for _, k := range chosenTasks() {
				for _, m := range methods {
					s.want(k, size, m.name, seed+1, m.tune)
				}
			}
		}
	}
	s.run()
	fmt.Print(s.table())
	for _, line := range s.behind() {
		t.Error(line)
	}
}

// TestFineTuneChoice measures variants of the defaults on seeds of their own, by which they were chosen.
func TestFineTuneChoice(t *testing.T) {
	dir := os.Getenv("ONLINERNA_FINETUNE_CHOICE")
	if dir == "" {
		t.Skip("set ONLINERNA_FINETUNE_CHOICE to a folder for its results to run it")
	}
	s := newTuneStudy(t, dir)
	for seed := range uint64(2) {
		for _, size := range sizes {
			for _, k := range chosenTasks() {
				for _, m := range methods[1:] {
					s.want(k, size, m.name, seed+101, m.tune)
				}
				for _, v := range variants {
					s.want(k, size, v.name, seed+101, changed(v.change))
				}
			}
		}
	}
	s.run()
	fmt.Print(s.table())
}

// variants of the defaults.
var variants = []struct {
	name   string
	change func(c *Config)
}{
	{"0.03, head × 3", func(c *Config) { rates(c, 0.03, 3) }},
	{"0.03, head × 3, warm-up", func(c *Config) {
		rates(c, 0.03, 3)
		c.Schedule.Warmup = 1
	}},
	{"0.01, head × 10", func(c *Config) { rates(c, 0.01, 10) }},
	{"0.02, head × 5", func(c *Config) { rates(c, 0.02, 5) }},
	{"0.03, head × 3, BatchNorm frozen", func(c *Config) {
		rates(c, 0.03, 3)
		if c.Model != "lenet" {
			c.Freeze = []string{"*bn*"}
		}
	}},
	{"0.03, head × 3, half the epochs", func(c *Config) {
		rates(c, 0.03, 3)
		c.Epochs = tunedEpochs(c) / 2
	}},
}

// rates sets the rate, for steps of 32 images, and the head's by it.
func rates(c *Config, rate, head float64) {
	c.Schedule.Rate = rate * float64(resolvedAs(c).Batch) / 32
	c.HeadRate = head * c.Schedule.Rate
	c.Schedule.Kind, c.Schedule.By = Cosine, ByStep
}

// resolvedAs is c with its defaults.
func resolvedAs(c *Config) Config {
	d := *c
	p, err := data.ProfileOf(c.Train)
	if err == nil {
		err = d.Resolve(c.Train, p)
	}
	if err != nil {
		panic(err)
	}
	return d
}

func tunedEpochs(c *Config) int { return resolvedAs(c).Epochs }

func changed(change func(*Config)) tuner {
	return func(t *testing.T, c Config, _ string) (*Run, error) {
		change(&c)
		return tune(t, c)
	}
}

func byDefault(t *testing.T, c Config, _ string) (*Run, error) { return tune(t, c) }

// byTutorial has the settings of PyTorch's tutorial on transfer learning.
func byTutorial(t *testing.T, c Config, _ string) (*Run, error) {
	c.Batch, c.Epochs, c.WeightDecay = 4, 25, ptr(0)
	c.Schedule = Schedule{Kind: Step, Rate: 0.001, StepEvery: 7, Gamma: 0.1}
	return tune(t, c)
}

// byFastai has the settings of fastai's fine_tune: an epoch of the head and BatchNorm, then all layers, by one cycle each, with Adam. The number of
// epochs, which it leaves to the user, is that of the default.
func byFastai(t *testing.T, c Config, dir string) (*Run, error) {
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
	first.Schedule = Schedule{Kind: OneCycle, Rate: base / 10, Warmup: 0.99}
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
	c.Schedule = Schedule{Kind: OneCycle, Rate: base / 2, Warmup: 0.3 * float64(epochs), WarmupFrom: 0.2}
	return tune(t, c)
}

// tune is a run that is over, on one thread.
func tune(t *testing.T, c Config) (*Run, error) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	c.RNA.Mode, c.Threads, c.Workers = Off, 1, 1
	r, err := New(c, dev)
	if err != nil {
		return nil, err
	}
	if err = r.Train(context.Background()); err != nil {
		r.Close()
	}
	return r, err
}

// tuneStudy runs cells and keeps their results in a file.
type tuneStudy struct {
	t     *testing.T
	dir   string
	until time.Time
	todo  []func()
	mu    sync.Mutex
	done  []cell
	had   map[string]bool
	order []string // of tasks
	names []string // of methods
	sets  map[string]*album
	from  map[string]string // weights by task
}

func newTuneStudy(t *testing.T, dir string) *tuneStudy {
	s := &tuneStudy{t: t, dir: dir, had: map[string]bool{}, sets: map[string]*album{}, from: map[string]string{}, until: time.Now().Add(1e6 * time.Hour)}
	if m := os.Getenv("ONLINERNA_FINETUNE_MINUTES"); m != "" {
		d, err := time.ParseDuration(m + "m")
		if err != nil {
			t.Fatal(err)
		}
		s.until = time.Now().Add(d)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(s.file())
	if os.IsNotExist(err) {
		return s
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c cell
		if json.Unmarshal(lines.Bytes(), &c) == nil { // the last line may be torn
			s.done, s.had[c.key()] = append(s.done, c), true
		}
	}
	return s
}

func (s *tuneStudy) file() string { return filepath.Join(s.dir, "cells.jsonl") }

// want puts a run on the list, unless its result is there.
func (s *tuneStudy) want(k task, size int, method string, seed uint64, by tuner) {
	c := cell{Task: k.name(s.album(k.source)), Size: size, Method: method, Seed: seed}
	if !slices.Contains(s.order, c.Task) {
		s.order = append(s.order, c.Task)
	}
	if !slices.Contains(s.names, method) {
		s.names = append(s.names, method)
	}
	if s.had[c.key()] {
		return
	}
	s.todo = append(s.todo, func() {
		start := time.Now()
		train, test := s.album(k.source).divide(k.target, size, seed)
		run, err := by(s.t, Config{Model: k.model, Train: train, Data: k.source, Seed: seed, Init: s.weights(k)}, s.dir)
		if diverged := (*DivergedError)(nil); errors.As(err, &diverged) {
			c.Error = 100 - 100/float64(len(k.target)) // as a guess
		} else if err != nil {
			s.t.Fatal(err)
		} else {
			c.Error = errorOn(s.t, run, test)
			run.Close()
		}
		c.Seconds = time.Since(start).Seconds()
		s.keep(c)
	})
}

// keep writes a result down.
func (s *tuneStudy) keep(c cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, c)
	b, err := json.Marshal(c)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(s.file(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		s.t.Fatal(err)
	}
}

// run does what is on the list, in its order, until the time is over.
func (s *tuneStudy) run() {
	for i, do := range s.todo {
		if time.Now().After(s.until) {
			s.t.Logf("the time is over: %d runs are left", len(s.todo)-i)
			return
		}
		do()
	}
}

// weights trains a net on the classes that come before a task's, or finds it in the folder.
func (s *tuneStudy) weights(k task) string {
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%s-%s.safetensors", k.source, k.model, strings.Trim(strings.ReplaceAll(fmt.Sprint(k.before), " ", ""), "[]")))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	train, test := s.album(k.source).divide(k.before, 1<<20, 1)
	run, err := tune(s.t, Config{Model: k.model, Train: train, Data: k.source, Seed: 1, Epochs: 15})
	if err != nil {
		s.t.Fatal(err)
	}
	defer run.Close()
	s.t.Logf("%s: error %.1f %% on classes %v", path, errorOn(s.t, run, test), k.before)
	if err := run.Net.SaveWeights(path, run.Net.Params, run.Net.Stats, run.Meta(network.SGD)); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// errorOn is the error of a run's net on a set, in percent.
func errorOn(t *testing.T, r *Run, set data.Dataset) float64 {
	p, err := data.ProfileOf(set)
	if err != nil {
		t.Fatal(err)
	}
	batch := r.Config.Batch
	r.Config.Batch = 100
	l, err := r.evalLoader(set, p)
	r.Config.Batch = batch
	if err != nil {
		t.Fatal(err)
	}
	score, err := r.Net.Score(context.Background(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return score.Error()
}

// row is the results of a set and a size by method.
func (s *tuneStudy) row(task string, size int) map[string][]float64 {
	by := map[string][]float64{}
	done := slices.Clone(s.done)
	slices.SortStableFunc(done, func(a, b cell) int { return cmp.Compare(a.Seed, b.Seed) })
	for _, c := range done {
		if c.Task == task && c.Size == size && slices.Contains(s.names, c.Method) {
			by[c.Method] = append(by[c.Method], c.Error)
		}
	}
	return by
}

// table shows the errors, with their spread over seeds.
func (s *tuneStudy) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| set | images a class | seeds | %s |\n|-|-|-%s|\n", strings.Join(s.names, " | "), strings.Repeat("|-", len(s.names)))
	sums, rows, seconds := make([]float64, len(s.names)), 0, 0.
	for _, c := range s.done {
		seconds += c.Seconds
	}
	for _, task := range s.order {
		for _, size := range sizes {
			by := s.row(task, size)
			seeds := math.MaxInt
			for _, m := range s.names {
				seeds = min(seeds, len(by[m]))
			}
			if seeds == 0 {
				continue
			}
			rows++
			fmt.Fprintf(&b, "| %s | %d | %d", task, size, seeds)
			for i, m := range s.names {
				fmt.Fprintf(&b, " | %s", spread("%.1f", by[m][:seeds]))
				sums[i] += averaged(by[m][:seeds])
			}
			b.WriteString(" |\n")
		}
	}
	b.WriteString("| mean | | ")
	for _, x := range sums {
		fmt.Fprintf(&b, " | %.2f", x/float64(max(1, rows)))
	}
	fmt.Fprintf(&b, " |\n\n%d runs, %.0f s\n", len(s.done), seconds)
	return b.String()
}

// behind lists where the default is more than two points worse than the best.
func (s *tuneStudy) behind() (list []string) {
	for _, task := range s.order {
		for _, size := range sizes {
			by := s.row(task, size)
			for _, m := range s.names[1:] {
				n := min(len(by[m]), len(by[s.names[0]]))
				if n == 0 {
					continue
				}
				if d := averaged(by[s.names[0]][:n]) - averaged(by[m][:n]); d > 2 {
					list = append(list, fmt.Sprintf("%s, %d images a class: the default is %.1f points worse than %s", task, size, d, m))
				}
			}
		}
	}
	return list
}
