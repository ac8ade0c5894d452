package train

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/nn"
	"onlinerna/train/average"
	"onlinerna/train/option"
	"onlinerna/train/recipe"
	"onlinerna/train/schedule"
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

// resolveSpec fills in a spec as a run with one process does.
func resolveSpec(s *Spec, set data.Dataset, p data.Profile) error {
	c := Resolved{Spec: *s}
	err := c.resolve(set, p, 1)
	*s = c.Spec
	return err
}

// Photographs are prepared as the net's published weights take them.
func TestResolvePhotos(t *testing.T) {
	for _, c := range []struct {
		name, profile string
		spec          Spec
		size, resize  int
		how           string
	}{
		{"from scratch", "imagenet", Spec{Model: "efficientnet_b3"}, 300, 0, "bicubic"},
		{"fine-tuning", "imagenet", Spec{Model: "efficientnet_b3", Init: "w"}, 300, 320, "bicubic"},
		{"smaller", "imagenet", Spec{Model: "efficientnet_b3", Init: "w", ImageSize: 150}, 150, 160, "bicubic"},
		{"chosen", "imagenet", Spec{Model: "swin_t", Init: "w", Pictures: Pictures{ValResize: 260, Interpolation: "bilinear",
			TrainInterpolation: "bilinear"}}, 224, 260, "bilinear"},
		{"bilinear", "imagenet", Spec{Model: "resnet18", Init: "w"}, 224, 0, ""},
		{"small images", "cifar", Spec{Model: "efficientnet_b0", Init: "w"}, 32, 0, ""},
		{"a net for small images", "imagenet", Spec{Model: "resnet20"}, 32, 0, ""},
	} {
		if err := resolveSpec(&c.spec, fakeSet{10, 3}, colour(c.profile)); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s := &c.spec; s.ImageSize != c.size || s.ValResize != c.resize || s.Interpolation != c.how ||
			s.TrainInterpolation != c.how {
			t.Errorf("%s: %d pixels, resized to %d %q in evaluation and %q in training, want %d, %d, %q", c.name, s.ImageSize,
				s.ValResize, s.Interpolation, s.TrainInterpolation, c.size, c.resize, c.how)
		}
	}
}

func TestResolveDefaults(t *testing.T) {
	for _, c := range []struct {
		profile  string
		epochs   int
		model    string
		batch    int
		acc      int
		schedule schedule.Schedule
		window   int
		averages []int
	}{
		{"glyphs", 0, "lenet", 128, 1, schedule.Schedule{Kind: schedule.Hold, Rate: 0.05, Final: ptr(0.0005), HoldFor: 13,
			Epochs: 16}, 5, []int{5, 10}},
		{"glyphs", 1, "lenet", 128, 1, schedule.Schedule{Kind: schedule.Hold, Rate: 0.05, Final: ptr(0.0005), HoldFor: 1,
			Epochs: 1}, 5, []int{5, 10}},
		{"mnist", 10, "lenet", 128, 1, schedule.Schedule{Kind: schedule.Hold, Rate: 0.05, Final: ptr(0.0005), HoldFor: 8,
			Epochs: 10}, 5, []int{5}},
		{"cifar", 0, "resnet20", 128, 1, schedule.Schedule{Kind: schedule.Hold, Rate: 0.1, Final: ptr(0.001), HoldFor: 25,
			Epochs: 30}, 10, []int{5}},
		{"cifar", 4, "resnet20", 128, 1, schedule.Schedule{Kind: schedule.Hold, Rate: 0.1, Final: ptr(0.001), HoldFor: 3,
			Epochs: 4}, 3, []int{5}},
		{"imagenet", 0, "resnet50", 32, 8, schedule.Schedule{Kind: schedule.Linear, Rate: 0.1, Final: ptr(0.001), Epochs: 90},
			10, []int{10}},
	} {
		cfg := Spec{Epochs: c.epochs}
		if err := resolveSpec(&cfg, fakeSet{10, 3}, colour(c.profile)); err != nil {
			t.Errorf("%s: %v", c.profile, err)
			continue
		}
		if cfg.Model != c.model || cfg.Batch != c.batch || cfg.Accumulate != c.acc ||
			!reflect.DeepEqual(cfg.Schedule, c.schedule) ||
			cfg.RNA.Window != c.window || !reflect.DeepEqual(cfg.RNA.Averages, c.averages) {
			t.Errorf("%s: resolved to %+v", c.profile, cfg)
		}
		size := map[string]int{"imagenet": 224}[c.profile] // the net's for photographs
		if *cfg.Momentum != 0.9 || cfg.NumClasses != 10 || cfg.ImageSize != cmp.Or(size, 32) || cfg.RNA.Mode != average.Offline ||
			*cfg.RNA.Lambda != 1e-9 || *cfg.RNA.Beta != 1 || cfg.RNA.Start != 2 {
			t.Errorf("%s: resolved to %+v", c.profile, cfg)
		}
		again := cfg
		if err := resolveSpec(&again, fakeSet{10, 3}, colour(c.profile)); err != nil || !reflect.DeepEqual(again, cfg) {
			t.Errorf("%s: resolving twice gives %+v, %v", c.profile, again, err)
		}
	}
}

// TestResolveKeeps checks that set values stay, including meaningful zeros.
func TestResolveKeeps(t *testing.T) {
	cfg := Spec{Batch: 16, Momentum: ptr(0), WeightDecay: ptr(0), MaxBad: new(data.MaxBad),
		Schedule: schedule.Schedule{Kind: schedule.Cosine, Warmup: 2},
		RNA:      average.Options{Lambda: ptr(0), Beta: ptr(0), Averages: []int{}}}
	if err := resolveSpec(&cfg, fakeSet{10, 3}, colour("imagenet")); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schedule.Kind{schedule.Linear, schedule.Hold} {
		zero := Spec{Epochs: 8, Schedule: schedule.Schedule{Kind: kind, Final: ptr(0)}}
		if err := resolveSpec(&zero, fakeSet{10, 3}, colour("imagenet")); err != nil || zero.Schedule.At(7) != 0 ||
			zero.Schedule.At(0) == 0 {
			t.Errorf("%s to 0: %v at the end, %v", kind, zero.Schedule.At(7), err)
		}
	}
	if cfg.Accumulate != 1 || *cfg.Momentum != 0 || *cfg.WeightDecay != 0 || *cfg.MaxBad != 0 || *cfg.RNA.Lambda != 0 ||
		*cfg.RNA.Beta != 0 || len(cfg.RNA.Averages) != 0 {
		t.Errorf("resolved to %+v", cfg)
	}
	if s := cfg.Schedule; s.Final != nil || *s.WarmupFrom != 0.01 || s.Rate != 0.1 {
		t.Errorf("schedule resolved to %+v", s)
	}
	dir := t.TempDir()
	if err := cfg.write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := readSpec(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, cfg) {
		t.Errorf("written and read again:\n%+v\nwas\n%+v", read, cfg)
	}
}

func TestResolveErrors(t *testing.T) {
	for message, change := range map[string]func(*Spec){
		"unknown model":                  func(c *Spec) { c.Model = "resnet19" },
		"batch -1":                       func(c *Spec) { c.Batch = -1 },
		"accumulate -1":                  func(c *Spec) { c.Accumulate = -1 },
		"epochs -1":                      func(c *Spec) { c.Epochs = -1 },
		"num-classes 9":                  func(c *Spec) { c.NumClasses = 9 },
		"image-size -1":                  func(c *Spec) { c.ImageSize = -1 },
		"3 channels":                     func(c *Spec) { c.Mean = []float64{0.5} },
		"std 1,0,1: must be above 0":     func(c *Spec) { c.Std = []float64{1, 0, 1} },
		"mean 1,NaN,1: must be finite":   func(c *Spec) { c.Mean = []float64{1, math.NaN(), 1} },
		"momentum 1":                     func(c *Spec) { c.Momentum = ptr(1) },
		"momentum NaN":                   func(c *Spec) { c.Momentum = ptr(math.NaN()) },
		"optimizer adom: use one of":     func(c *Spec) { c.Optimizer = "adom" },
		"sgd does not take beta1":        func(c *Spec) { c.Beta1 = ptr(.9) },
		"adamw does not take momentum":   func(c *Spec) { c.Optimizer, c.Momentum = "adamw", ptr(.9) },
		"adamw does not take nesterov":   func(c *Spec) { c.Optimizer, c.Nesterov = "adamw", true },
		"beta2 1:":                       func(c *Spec) { c.Optimizer, c.Beta2 = "adamw", ptr(1) },
		"trust coefficient 0:":           func(c *Spec) { c.Optimizer, c.TrustCoefficient = "lars", ptr(0) },
		"norm of the gradient -1:":       func(c *Spec) { c.Optimizer, c.MaxGradNorm = "lamb", ptr(-1) },
		"nesterov":                       func(c *Spec) { c.Momentum, c.Nesterov = ptr(0), true },
		"weight-decay -1":                func(c *Spec) { c.WeightDecay = ptr(-1) },
		"weight-decay +Inf":              func(c *Spec) { c.WeightDecay = ptr(math.Inf(1)) },
		"label-smoothing 1:":             func(c *Spec) { c.LabelSmoothing = 1 },
		"max-bad 1.5":                    func(c *Spec) { m := data.MaxBad(1.5); c.MaxBad = &m },
		"holdout 1:":                     func(c *Spec) { c.Holdout = 1 },
		"ema -1":                         func(c *Spec) { c.EMA = []float64{-1} },
		"holdout NaN":                    func(c *Spec) { c.Holdout = math.NaN() },
		"checkpoint-every -1":            func(c *Spec) { c.CheckpointEvery = -1 },
		"must not be negative":           func(c *Spec) { c.StepsLimit = -1 },
		"(did you mean imagenet?)":       func(c *Spec) { c.Augment = "imagnet" },
		"schedule x: use one of":         func(c *Spec) { c.Schedule.Kind = "x" },
		"hold has no meaning":            func(c *Spec) { c.Schedule = schedule.Schedule{Kind: schedule.Cosine, HoldFor: 2} },
		"rna onlin: use one of off":      func(c *Spec) { c.RNA.Mode = "onlin" },
		"rna-window -1":                  func(c *Spec) { c.RNA.Window = -1 },
		"rna-lambda -1":                  func(c *Spec) { c.RNA.Lambda = ptr(-1) },
		"rna-lambda +Inf":                func(c *Spec) { c.RNA.Lambda = ptr(math.Inf(1)) },
		"rna-lambda NaN":                 func(c *Spec) { c.RNA.Lambda = ptr(math.NaN()) },
		"rna-per-epoch -1":               func(c *Spec) { c.RNA.PerEpoch = -1 },
		"rna-residual x: use one of":     func(c *Spec) { c.RNA.Residual = "x" },
		"rna-tau -1":                     func(c *Spec) { c.RNA.Tau = ptr(-1) },
		"rna-tau and rna-lambda exclude": func(c *Spec) { c.RNA.Tau, c.RNA.Lambda = ptr(1), ptr(1) },
		"a search for one exclude":       func(c *Spec) { c.Holdout, c.RNA.Search, c.RNA.Lambda = 0.1, true, ptr(1) },
		"rna-lambda auto goes by the loss on held-out images": func(c *Spec) { c.RNA.Search = true },
		"rna-lambda auto needs BatchNorm statistics": func(c *Spec) {
			c.Holdout, c.RNA.Search, c.RNA.Stats = 0.1,
				true, average.Combine
		},
		"use it with rna online": func(c *Spec) { c.Holdout, c.RNA.Accept = 0.1, true },
		"rna-accept goes by the loss on held-out images": func(c *Spec) {
			c.RNA.Mode, c.RNA.Accept = average.Online,
				true
		},
		"rna-beta NaN":                func(c *Spec) { c.RNA.Beta = ptr(math.NaN()) },
		"rna-start -1":                func(c *Spec) { c.RNA.Start = -1 },
		"rna-every -1":                func(c *Spec) { c.RNA.Every = -1 },
		"rna-bn x: use one of":        func(c *Spec) { c.RNA.Stats = "x" },
		"rna-bn-batches -1":           func(c *Spec) { c.RNA.Batches = -1 },
		"rna-momentum x: use one of":  func(c *Spec) { c.RNA.Momentum = "x" },
		"averages 1:":                 func(c *Spec) { c.RNA.Averages = []int{1} },
		`no defaults for images of k`: func(c *Spec) {},
	} {
		p := colour("cifar")
		if strings.HasPrefix(message, "no defaults") {
			p.Name = "spectra"
		}
		var c Spec
		change(&c)
		if err := resolveSpec(&c, fakeSet{10, 3}, p); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("error %v, want one about %q", err, message)
		}
	}
}

func TestReadConfigErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := readSpec(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("missing: %v", err)
	}
	if err := os.WriteFile(dir+"/config.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readSpec(dir); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("corrupt: %v", err)
	}
}

// TestWinogradLeftOut reads a config without the key: a user's config takes the default, and the record of a run that
// predates the option means direct convolution.
func TestWinogradLeftOut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	for text, want := range map[string]string{`{"rna": {"mode": "off"}}`: "false", `{}`: "",
		`{"winograd": true}`:  "true",
		`{"winograd": false}`: "false"} {
		put(t, path, []byte(text))
		record, err := readSpec(dir)
		if err != nil || table.Find("winograd").Text(&record) != want {
			t.Errorf("%s: %v, want %v; %v", text, record.Winograd, want, err)
		}
		var user Spec
		list, err := ReadOptions(path)
		if err == nil {
			err = table.Apply(&user, list...)
		}
		if (user.Winograd != nil) != strings.Contains(text, "winograd") || err != nil {
			t.Errorf("%s: %v as a user's, %v", text, user.Winograd, err)
		}
	}
}

// TestFloat32LeftOut reads configs without the key: the record of a run on a processor that predates the option means
// direct products.
func TestFloat32LeftOut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	for text, want := range map[string]string{`{"rna": {"mode": "off"}}`: "direct", `{}`: "", `{"winograd": true}`: "direct",
		`{"winograd": true, "float32": "bf16x6"}`: "bf16x6"} {
		put(t, path, []byte(text))
		record, err := readSpec(dir)
		if err != nil || record.Float32Way() != want {
			t.Errorf("%s: %q, want %q; %v", text, record.Float32Way(), want, err)
		}
	}
}

// TestOldFile reads a config from the version with several names per option.
func TestOldFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, configName), []byte(`{"model": "lenet", "batch": 8, "no_shuffle": true, "steps_limit": 3, "val_limit": 2, "train_size": 20, "train_from": 12, "train_ramp": [1, 3],
		"target_threshold": 0.2, "loss": "bce", "init_key": "ema", "checkpoint_minutes": 1.5, "head_lr": 0.3, "classes": ["a, b", "c"], "max_bad": 0, "seed": 18446744073709551615,
		"schedule": {"kind": "hold", "rate": 0.1, "final": 0, "hold_for": 3, "epochs": 9}, "epochs": 9, "std": [0.5],
		"rna": {"mode": "online", "window": 4, "search": true, "beta": 0, "bn": "combine", "bn_batches": 7, "momentum": "keep", "per_epoch": 2, "segment_means": true, "averages": []}}`))
	got, err := readSpec(dir)
	want := Spec{Model: "lenet", Batch: 8, Shuffle: new(bool), StepsLimit: 3, ValLimit: 2, InitKey: "ema",
		CheckpointMinutes: 1.5, HeadRate: .3, Winograd: new(bool),
		Classes: []string{"a, b", "c"}, MaxBad: new(data.MaxBad), Seed: math.MaxUint64, Epochs: 9, Std: []float64{.5},
		Pictures: Pictures{TrainSize: 20, TrainFrom: 12, TrainRamp: [2]int{1, 3}}, Regularize: Regularize{TargetThreshold: .2,
			Loss: BCE},
		Schedule: schedule.Schedule{Kind: schedule.Hold, Rate: .1, Final: ptr(0), HoldFor: 3, Epochs: 9},
		RNA: average.Options{Mode: average.Online, Window: 4, Search: true, Beta: ptr(0), Stats: average.Combine,
			Batches: 7, Momentum: average.Keep, PerEpoch: 2, SegmentMeans: true, Averages: []int{}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v, want\n%+v", err, got, want)
	}
}

// TestTable checks the guarantees of the option table.
func TestTable(t *testing.T) {
	if name := table.Ambiguous(); name != "" {
		t.Errorf("%s: its zero is a choice, and its field cannot tell that from not set", name)
	}
	seen := map[string]bool{}
	for _, o := range table {
		if seen[o.Name] || o.Group == "" || o.Help == "" || len(o.Help) > 300 {
			t.Errorf("%+v", o)
		}
		seen[o.Name] = true
		for _, name := range o.Clears {
			if table.Find(name) == nil {
				t.Errorf("%s clears %s, which is no option", o.Name, name)
			}
		}
	}
	for _, r := range recipe.All() {
		var c Spec
		err := table.Apply(&c, r.Settings...)
		if err == nil {
			_, err = nn.Lookup(c.Model)
		}
		if err != nil {
			t.Errorf("%s: %s, %v", r.Name, c.Model, err)
		}
	}
}

// TestSources lets a later source win, and an option clear those that depend on the previous value.
func TestSources(t *testing.T) {
	c := Spec{}
	r, err := recipe.Find("torchvision-v2")
	if err == nil {
		err = table.Apply(&c, r.Settings...)
	}
	if err != nil || c.Accumulate != 8 || c.Schedule.Kind != schedule.Cosine || c.LabelSmoothing != .1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := table.Apply(&c, option.Settings("batch 16 label-smoothing 0 rna-tau 0.5")...); err != nil ||
		c.Accumulate != 0 || c.LabelSmoothing != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := table.Apply(&c, option.Settings("rna-lambda auto")...); err != nil || c.RNA.Tau != nil || !c.RNA.Search {
		t.Errorf("%+v, %v", c.RNA, err)
	}
}

func TestInterval(t *testing.T) {
	for text, want := range map[string]Spec{
		"2": {CheckpointEvery: 2}, "3epochs": {CheckpointEvery: 3}, "1 epoch": {CheckpointEvery: 1},
		"500steps": {CheckpointSteps: 500}, "1step": {CheckpointSteps: 1},
		"10m": {CheckpointMinutes: 10}, "90s": {CheckpointMinutes: 1.5}, "1h30m": {CheckpointMinutes: 90},
	} {
		c := Spec{CheckpointEvery: 1}
		o := table.Find("checkpoint-every")
		if err := o.Set(&c, text); err != nil || !reflect.DeepEqual(c, want) {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
		again := Spec{}
		if err := o.Set(&again, o.Text(&c)); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%s, as %s: %v", text, o.Text(&c), err)
		}
	}
	for _, text := range []string{"", "0", "0steps", "-1", "x", "10", "s", "5parsecs", "-5m", "0s", "1.5"} {
		if err := table.Find("checkpoint-every").Set(new(Spec), text); (err == nil) != (text == "10") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An endless file is rejected once it is larger than any config or class list.
func TestEndlessFiles(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	_, err := ReadOptions("/dev/zero")
	if err == nil || err.Error() != "/dev/zero: more than 16777216 bytes, the limit of such a file" {
		t.Errorf("config: %v", err)
	}
	if err := (classesValue{new(Spec)}).Set("/dev/zero"); err == nil || !strings.Contains(err.Error(), "16777216 bytes") {
		t.Errorf("classes: %v", err)
	}
}
