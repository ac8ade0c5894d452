package config

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/data/imaging"
)

// fakeSet is a dataset without images.
type fakeSet struct{ classes, channels int }

func (s fakeSet) Len() int          { return 100 }
func (s fakeSet) Classes() []string { return strings.Fields(strings.Repeat("x ", s.classes)) }
func (s fakeSet) Channels() int     { return s.channels }
func (s fakeSet) Label(int) int     { return 0 }
func (s fakeSet) Name(int) string   { return "x" }
func (s fakeSet) Read(int, data.Region, *data.Scratch) (*imaging.Image, error) {
	panic("no images here")
}

func colour(name string) data.Profile {
	return data.Profile{Name: name, Size: 32, Mean: []float64{.5, .5, .5}, Std: []float64{.25, .25, .25}}
}

func ptr(x float64) *float64 { return &x }

func TestResolveDefaults(t *testing.T) {
	for _, c := range []struct {
		profile  string
		epochs   int
		model    string
		batch    int
		acc      int
		schedule Schedule
		window   int
		averages []int
	}{
		{"glyphs", 0, "lenet", 128, 1, Schedule{Kind: Hold, Rate: 0.05, Final: ptr(0.0005), HoldFor: 13, Epochs: 16}, 5, []int{5, 10}},
		{"glyphs", 1, "lenet", 128, 1, Schedule{Kind: Hold, Rate: 0.05, Final: ptr(0.0005), HoldFor: 1, Epochs: 1}, 5, []int{5, 10}},
		{"mnist", 10, "lenet", 128, 1, Schedule{Kind: Hold, Rate: 0.05, Final: ptr(0.0005), HoldFor: 8, Epochs: 10}, 5, []int{5}},
		{"cifar", 0, "resnet20", 128, 1, Schedule{Kind: Hold, Rate: 0.1, Final: ptr(0.001), HoldFor: 25, Epochs: 30}, 10, []int{5}},
		{"cifar", 4, "resnet20", 128, 1, Schedule{Kind: Hold, Rate: 0.1, Final: ptr(0.001), HoldFor: 3, Epochs: 4}, 3, []int{5}},
		{"imagenet", 0, "resnet50", 32, 8, Schedule{Kind: Linear, Rate: 0.1, Final: ptr(0.001), Epochs: 90}, 10, []int{10}},
	} {
		cfg := Config{Epochs: c.epochs}
		if err := cfg.Resolve(fakeSet{10, 3}, colour(c.profile)); err != nil {
			t.Errorf("%s: %v", c.profile, err)
			continue
		}
		if cfg.Model != c.model || cfg.Batch != c.batch || cfg.Accumulate != c.acc || !reflect.DeepEqual(cfg.Schedule, c.schedule) ||
			cfg.RNA.Window != c.window || !reflect.DeepEqual(cfg.RNA.Averages, c.averages) {
			t.Errorf("%s: resolved to %+v", c.profile, cfg)
		}
		if *cfg.Momentum != 0.9 || cfg.NumClasses != 10 || cfg.ImageSize != 32 || cfg.RNA.Mode != Offline || *cfg.RNA.Lambda != 1e-9 || *cfg.RNA.Beta != 1 || cfg.RNA.Start != 2 {
			t.Errorf("%s: resolved to %+v", c.profile, cfg)
		}
		again := cfg
		if err := again.Resolve(fakeSet{10, 3}, colour(c.profile)); err != nil || !reflect.DeepEqual(again, cfg) {
			t.Errorf("%s: resolving twice gives %+v, %v", c.profile, again, err)
		}
	}
}

// TestResolveKeeps checks that what is set stays, also where zero means something.
func TestResolveKeeps(t *testing.T) {
	cfg := Config{Batch: 16, Momentum: ptr(0), WeightDecay: ptr(0), MaxBad: new(data.MaxBad),
		Schedule: Schedule{Kind: Cosine, Warmup: 2},
		RNA:      RNA{Lambda: ptr(0), Beta: ptr(0), Averages: []int{}}}
	if err := cfg.Resolve(fakeSet{10, 3}, colour("imagenet")); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []ScheduleKind{Linear, Hold} {
		zero := Config{Epochs: 8, Schedule: Schedule{Kind: kind, Final: ptr(0)}}
		if err := zero.Resolve(fakeSet{10, 3}, colour("imagenet")); err != nil || zero.Schedule.At(7) != 0 || zero.Schedule.At(0) == 0 {
			t.Errorf("%s to 0: %v at the end, %v", kind, zero.Schedule.At(7), err)
		}
	}
	if cfg.Accumulate != 1 || *cfg.Momentum != 0 || *cfg.WeightDecay != 0 || *cfg.MaxBad != 0 || *cfg.RNA.Lambda != 0 || *cfg.RNA.Beta != 0 || len(cfg.RNA.Averages) != 0 {
		t.Errorf("resolved to %+v", cfg)
	}
	if s := cfg.Schedule; s.Final != nil || s.WarmupFrom != 0.01 || s.Rate != 0.1 {
		t.Errorf("schedule resolved to %+v", s)
	}
	dir := t.TempDir()
	if err := cfg.Write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, cfg) {
		t.Errorf("written and read again:\n%+v\nwas\n%+v", read, cfg)
	}
}

func TestResolveErrors(t *testing.T) {
	for message, change := range map[string]func(*Config){
		"unknown model":                func(c *Config) { c.Model = "resnet19" },
		"batch -1":                     func(c *Config) { c.Batch = -1 },
		"accumulate -1":                func(c *Config) { c.Accumulate = -1 },
		"epochs -1":                    func(c *Config) { c.Epochs = -1 },
		"num-classes 9":                func(c *Config) { c.NumClasses = 9 },
		"image size -1":                func(c *Config) { c.ImageSize = -1 },
		"3 channels":                   func(c *Config) { c.Mean = []float64{0.5} },
		"std [1 0 1]":                  func(c *Config) { c.Std = []float64{1, 0, 1} },
		"std positive":                 func(c *Config) { c.Mean = []float64{1, math.NaN(), 1} },
		"momentum 1":                   func(c *Config) { c.Momentum = ptr(1) },
		"momentum NaN":                 func(c *Config) { c.Momentum = ptr(math.NaN()) },
		"unknown optimizer":            func(c *Config) { c.Optimizer = "adam" },
		"sgd does not take beta1":      func(c *Config) { c.Beta1 = ptr(.9) },
		"adamw does not take momentum": func(c *Config) { c.Optimizer, c.Momentum = "adamw", ptr(.9) },
		"adamw does not take nesterov": func(c *Config) { c.Optimizer, c.Nesterov = "adamw", true },
		"beta2 1:":                     func(c *Config) { c.Optimizer, c.Beta2 = "adamw", ptr(1) },
		"trust coefficient 0:":         func(c *Config) { c.Optimizer, c.TrustCoefficient = "lars", ptr(0) },
		"norm of the gradient -1:":     func(c *Config) { c.Optimizer, c.MaxGradNorm = "lamb", ptr(-1) },
		"nesterov":                     func(c *Config) { c.Momentum, c.Nesterov = ptr(0), true },
		"weight decay -1":              func(c *Config) { c.WeightDecay = ptr(-1) },
		"weight decay +Inf":            func(c *Config) { c.WeightDecay = ptr(math.Inf(1)) },
		"label smoothing 1":            func(c *Config) { c.LabelSmoothing = 1 },
		"max-bad 1.5":                  func(c *Config) { m := data.MaxBad(1.5); c.MaxBad = &m },
		"holdout 1:":                   func(c *Config) { c.Holdout = 1 },
		"ema -1":                       func(c *Config) { c.EMA = -1 },
		"holdout NaN":                  func(c *Config) { c.Holdout = math.NaN() },
		"checkpoint every -1":          func(c *Config) { c.CheckpointEvery = -1 },
		"must not be negative":         func(c *Config) { c.StepsLimit = -1 },
		"unknown augmentation":         func(c *Config) { c.Augment = "imagnet" },
		"unknown schedule":             func(c *Config) { c.Schedule.Kind = "x" },
		"hold has no meaning":          func(c *Config) { c.Schedule = Schedule{Kind: Cosine, HoldFor: 2} },
		"unknown rna mode":             func(c *Config) { c.RNA.Mode = "onlin" },
		"rna window -1":                func(c *Config) { c.RNA.Window = -1 },
		"rna lambda -1":                func(c *Config) { c.RNA.Lambda = ptr(-1) },
		"rna lambda +Inf":              func(c *Config) { c.RNA.Lambda = ptr(math.Inf(1)) },
		"rna lambda NaN":               func(c *Config) { c.RNA.Lambda = ptr(math.NaN()) },
		"snapshots per epoch -1":       func(c *Config) { c.RNA.PerEpoch = -1 },
		"unknown rna residual":         func(c *Config) { c.RNA.Residual = "x" },
		"rna tau -1":                   func(c *Config) { c.RNA.Tau = ptr(-1) },
		"tau and rna lambda exclude":   func(c *Config) { c.RNA.Tau, c.RNA.Lambda = ptr(1), ptr(1) },
		"a search for one exclude":     func(c *Config) { c.Holdout, c.RNA.Search, c.RNA.Lambda = 0.1, true, ptr(1) },
		"lambda auto goes by the loss on held-out images": func(c *Config) { c.RNA.Search = true },
		"lambda auto needs BatchNorm statistics":          func(c *Config) { c.Holdout, c.RNA.Search, c.RNA.Stats = 0.1, true, Combine },
		"use it with rna online":                          func(c *Config) { c.Holdout, c.RNA.Accept = 0.1, true },
		"accept goes by the loss on held-out images":      func(c *Config) { c.RNA.Mode, c.RNA.Accept = Online, true },
		"rna beta NaN":                func(c *Config) { c.RNA.Beta = ptr(math.NaN()) },
		"rna start -1":                func(c *Config) { c.RNA.Start = -1 },
		"every -1":                    func(c *Config) { c.RNA.Every = -1 },
		"way of BatchNorm":            func(c *Config) { c.RNA.Stats = "x" },
		"statistics on -1 batches":    func(c *Config) { c.RNA.Batches = -1 },
		"unknown rna momentum":        func(c *Config) { c.RNA.Momentum = "x" },
		"average over 1 iterates":     func(c *Config) { c.RNA.Averages = []int{1} },
		`no defaults for images of k`: func(c *Config) {},
	} {
		p := colour("cifar")
		if strings.HasPrefix(message, "no defaults") {
			p.Name = "spectra"
		}
		var c Config
		change(&c)
		if err := c.Resolve(fakeSet{10, 3}, p); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("error %v, want one about %q", err, message)
		}
	}
}

func TestReadConfigErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("missing: %v", err)
	}
	if err := os.WriteFile(dir+"/config.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("corrupt: %v", err)
	}
}

// TestWinogradLeftOut reads a config without the key: a user's trains by the default, and the record of a run from before there was one, directly.
func TestWinogradLeftOut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	for text, want := range map[string][2]bool{`{}`: {true, false}, `{"winograd": true}`: {true, true}, `{"winograd": false}`: {false, false}} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		user, err := ReadFile(path)
		record, err2 := Read(dir)
		if err != nil || err2 != nil || [2]bool{user.Winograd, record.Winograd} != want {
			t.Errorf("%s: %v as a user's, %v as a record, want %v; %v, %v", text, user.Winograd, record.Winograd, want, err, err2)
		}
	}
}
