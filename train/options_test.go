package train

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/option"
)

// wrongValues are values as users write them, by the expected error.
var wrongValues = []struct{ allowed, values string }{
	{"want a whole number", `num-classes ten  image-size 32x32  repeat-augment 1.5  train-crop big  train-crop-from big  train-crop-ramp 4,late  val-crop big
		val-resize big  workers all  accumulate 1.5  epochs many  lr-step 1.5  lr-milestones 10,x  lr-hold 1.5  warmup-steps 1.5  ema-every 1.5  rna-window all
		rna-start 1.5  rna-per-epoch 0.5  rna-every 1.5  rna-bn-batches all  averages 5,x  threads all  checkpoint-keep all  patience 1.5  keep-every 1.5  keep-best all  histograms 1.5
		limit-batches all  limit-val all`},
	{"want a whole number, not negative", "seed -1"},
	{"want a number", `mean grey  std 1,x  random-erase often  color-jitter strong  crop-scale small  crop-ratio wide  flip-vertical often
		bn-momentum high  lr high  lr-final low  lr-gamma low  lr-power two  warmup long  warmup-from low  head-lr high  layer-decay low  momentum high
		beta1 x  beta2 x  eps tiny  trust-coefficient x  max-grad-norm x  weight-decay low  clip-grad x  clip-value x  label-smoothing some
		bce-threshold x  huber-delta x  focal-gamma x  asl-gamma 0,x  asl-margin x  class-weights a,b  teacher-alpha half  teacher-temperature hot  mixup some  cutmix some  dropout some  drop-path some  ema long  ema-decay long  rna-tau x  rna-beta x`},
	{"want a number, as 0.2 or 20%", "val-split some  holdout some"},
	{"want a number of usual size", "lr 1e400  image-size 99999999999999999999"},
	{"want a time, as 90s, 10m or 1h", "time-budget long"},
	{"want true or false", `no-flip maybe  fast-decode 2  test-flip maybe  shuffle seldom  zero-init maybe  blurpool maybe  warmup-inside maybe  nesterov 0.9
		decay-weights-only maybe  rna-segment-means maybe  rna-accept maybe  winograd auto  low-memory 2GB  deterministic maybe  tensorboard runs`},
	{"want a number of bytes, as 800MB or 2GB", "decode-memory much  decode-memory -1"},
	{"want a count, as 20, a share below 1, as 0.05 or 5%, all or auto", "max-bad some  max-bad 1.5"},
	{"want a number of images, from 1, or auto", "batch big"},
	{"must be at least 1, or auto", "batch 0"},
	{"want a number or auto", "rna-lambda small"},
	{"must be finite and not negative", "rna-lambda -1  rna-lambda inf"},
	{"want epochs, as 2, steps, as 500steps, or time, as 90s, 10m or 1h", "checkpoint-every often  checkpoint-every -5m"},
	{"use one of", `augment imagnet  train-interpolation linear  interpolation linear  schedule cosinus  schedule-by batch  optimizer adom  sampler fair  loss mae  task detection  rna on
		rna-residual steps  rna-bn keep  rna-momentum zero  precision fp16  float32 bf16x9  best-by accuracy
		comm-precision fp8`},
	{"is no pattern of names, as *.bias", "no-decay layer[1"},
	{"no such file or directory", "classes nowhere.txt"},
	{"want 2 numbers, as 4,13", "train-crop-ramp 4"},
	{"want a list with commas between", `mean "0.5`},

	{"must be above 0", `num-classes 0  image-size -32  std 1,0  repeat-augment 0  train-crop 0  train-crop-from 0  val-crop 0  val-resize 0  lr 0  lr-step 0
		lr-power 0  lr-hold 0  huber-delta 0  warmup-steps 0  head-lr 0  clip-grad 0  clip-value 0  checkpoint-every 0  patience 0  time-budget -2h`},
	{"must be at least 1", "accumulate 0  epochs 0  lr-milestones 0  ema-every 0  rna-start 0  rna-per-epoch 0  " +
		"rna-every 0  rna-bn-batches 0  checkpoint-keep 0"},
	{"must not be negative", `train-crop-ramp -1,3  workers -1  lr-final -1  warmup -1  weight-decay -1  class-weights -1,1  mixup -1  cutmix -1  ema -1  rna-tau -1
		threads -1  keep-every -1  keep-best -1  histograms -1  limit-batches -1  limit-val -1`},
	{"at most", "workers 1000000  threads 1000000"},
	{"must lie in [0, 1)", "holdout 1  label-smoothing 1  bce-threshold 1  asl-margin 1  dropout 1  drop-path -0.1"},
	{"must lie above 0 and below 1", "val-split 1  ema-decay 1"},
	{"must lie above 0 and up to 1", "bn-momentum 0  lr-gamma 2  layer-decay 0  teacher-alpha 0"},
	{"must lie above 0 and up to 1000", "teacher-temperature 0  teacher-temperature 1001"},
	{"must lie between 0 and 20", "focal-gamma 21  asl-gamma 0,21"},
	{"effective:β takes a β", "class-weights effective:1"},
	{"must lie between 0 and 1", "random-erase 2  flip-vertical -1  warmup-from 2"},
	{"must lie between 1 and 100", "rna-window 101"},
	{"must lie between 2 and 100", "averages 1"},
	{"must be finite", "mean nan  std inf  lr inf  momentum nan  rna-beta inf"},
}

// TestWrongValues: each option rejects a value of the wrong type or out of its range in one line, which names the
// option and the allowed values.
func TestWrongValues(t *testing.T) {
	answers := map[string]int{}
	for _, c := range wrongValues {
		for _, x := range option.Settings(c.values) {
			var s Spec
			err := table.Apply(&s, x)
			var wrong *option.Error
			if !errors.As(err, &wrong) || wrong.Name != x.Name || !strings.HasPrefix(err.Error(), x.Name+" ") ||
				!strings.Contains(err.Error(), c.allowed) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s: %v, want %q", x.Name, x.Text, err, c.allowed)
			}
			answers[x.Name]++
		}
	}
	takesAnyText := map[string]bool{"data": true, "val-data": true, "auto-augment": true, "model": true, "init": true,
		"teacher": true,
		"key":     true, "freeze": true,
		"device": true, "out": true}
	for i := range table {
		o := &table[i]
		least := 1
		if o.Check != nil {
			least = 2
		}
		if takesAnyText[o.Name] {
			least = 0
		}
		if answers[o.Name] < least {
			t.Errorf("%s: %d wrong values in wrongValues, want %d at least: one of the wrong type, one out of range", o.Name,
				answers[o.Name], least)
		}
	}
}

// TestConflicts: options that contradict each other or the data give a one-line error.
func TestConflicts(t *testing.T) {
	for _, c := range []struct{ options, want string }{
		{"ema 12 ema-decay 0.9", "ema 12 and ema-decay 0.9: choose one"},
		{"ema 5,12 ema-decay 0.9", "ema 5,12 and ema-decay 0.9: choose one"},
		{"ema 5,5", "ema 5,5: want different numbers above 0"},
		{"ema-every 3", "ema-every 3: goes with ema-decay"},
		{"clip-grad 1 clip-value 1", "clip-grad and clip-value both limit the gradient: choose one"},
		{"mean 0.5", "give a number for each"},
		{"num-classes 3", "num-classes 3: the training set has 10 classes"},
		{"val-resize 16 image-size 32", "val-resize 16: at least the size of the crop, 32"},
		{"train-crop-from 64 train-crop 32", "start at 64 pixels and end at 32"},
		{"train-crop-from 16 train-crop-ramp 4,4", "the second must be later"},
		{"train-crop-from 16 train-crop-ramp 0,4 train-crop 32 time-budget 1h", "give epochs instead"},
		{"train-crop-ramp 4,8", "say from what size"},
		{"crop-scale 0.5", "two numbers each"},
		{"crop-ratio 1,1,1", "two numbers each"},
		{"crop-scale 1,0.5", "crop"},
		{"auto-augment strong", "strong"},
		{"bce-threshold 0.2", "bce-threshold goes with loss bce"},
		{"class-weights 1,1 loss bce", "class weights go with the losses ce and focal"},
		{"class-weights 1,1", "2 class weights for 10 classes"},
		{"class-weights auto,1", "class-weights auto stands alone"},
		{"class-weights x=2,1", "name all or none"},
		{"class-weights x=2,x=1", "x has two numbers"},
		{"class-weights y=2", "the training set has no class y"},
		{"asl-margin 0.1", "asl-gamma and asl-margin go with loss asl"},
		{"asl-gamma 1 loss asl", "give two exponents"},
		{"class-weights 1,1 loss asl", "with asl each image has a loss for every class"},
		{"focal-gamma 1", "focal-gamma goes with loss focal"},
		{"sampler balanced shuffle false", "sampler balanced draws the order of the images: leave shuffle on"},
		{"momentum 1", "momentum 1: must lie in [0, 1)"},
		{"nesterov true momentum 0", "nesterov needs a momentum above 0"},
		{"beta1 0.9", "optimizer sgd does not take beta1"},
		{"optimizer adamw nesterov true", "optimizer adamw does not take nesterov"},
		{"schedule cosine lr-gamma 0.1", "a factor gamma has no meaning"},
		{"lr 0.1 lr-final 0.2", "must lie between 0 and the base rate"},
		{"rna-tau 1 rna-lambda 1", "rna-tau and rna-lambda exclude each other"},
		{"rna-lambda auto", "hold out a part of the training set"},
		{"rna-accept true", "use it with rna online"},
		{"model resnet19", "resnet19"},
	} {
		s := Spec{}
		if err := table.Apply(&s, option.Settings(c.options)...); err != nil {
			t.Errorf("%s: %v", c.options, err)
			continue
		}
		if err := resolveSpec(&s, fakeSet{10, 3}, colour("cifar")); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.options, err, c.want)
		}
	}
	for want, s := range map[string]Spec{
		"checkpoints go by epochs, by steps or by minutes": {CheckpointEvery: 1, CheckpointSteps: 3},
		"checkpoint-every -1 steps":                        {CheckpointSteps: -1},
		"unknown optimizer":                                {Optimizer: "x"},
	} {
		err := resolveSpec(&s, fakeSet{10, 3}, colour("cifar"))
		if s.Optimizer == "x" {
			_, err = s.rule()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := resolveSpec(new(Spec), fakeSet{1, 3}, colour("cifar")); err == nil ||
		!strings.Contains(err.Error(), "has one class, x") {
		t.Errorf("one class: %v", err)
	}
}

// TestUnset: an option that is cleared by another one, or unset, is as in a zero Spec.
func TestUnset(t *testing.T) {
	classes := filepath.Join(t.TempDir(), "classes.txt")
	if err := os.WriteFile(classes, []byte("cat\ndog\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"classes": classes, "batch": "auto", "checkpoint-every": "10m", "max-bad": "5%",
		"rna-lambda": "auto", "decode-memory": "2GB", "mean": "0.5"}
	for name, text := range values {
		var s Spec
		o := table.Find(name)
		if err := o.Set(&s, text); err != nil || !o.IsSet(&s) || o.Text(&s) == "" {
			t.Errorf("%s %s: %q, %v", name, text, o.Text(&s), err)
		}
		if o.Unset(&s); o.IsSet(&s) {
			t.Errorf("%s is still %s", name, o.Text(&s))
		}
	}
	s := Spec{Classes: []string{"cat"}, NumClasses: 2}
	if err := table.Apply(&s, option.Settings("data elsewhere")...); err != nil || s.Classes != nil || s.NumClasses != 0 {
		t.Errorf("other data keep the classes: %+v, %v", s, err)
	}
}

// TestDiffer lists the keys in which two config.json files differ.
func TestDiffer(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{`{"batch": 8, "lr": 0.1, "out": "a"}`, `{"batch": 9, "lr": 0.1, "seed": 3}`, "batch, out, seed"},
		{`{"batch": 8}`, `{ "batch": 8 }`, "its spaces"},
		{`{"batch": 8`, `{}`, "unexpected end of JSON input"},
	} {
		if got := differ([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// TestSizesOfTraining follows the size of training images through the epochs.
func TestSizesOfTraining(t *testing.T) {
	p := Pictures{TrainSize: 192, TrainFrom: 128, TrainRamp: [2]int{2, 6}}
	for epoch, want := range []int{128, 128, 128, 128, 160, 192, 192, 192} {
		if got := p.SizeAt(epoch, 224); got != want {
			t.Errorf("epoch %d: %d pixels, want %d", epoch, got, want)
		}
	}
	s := Spec{Pictures: Pictures{ValCrop: 40}, ImageSize: 36}
	if err := resolveSpec(&s, fakeSet{10, 3}, colour("cifar")); err != nil || s.ImageSize != 40 || s.TrainSize != 36 ||
		s.ValCrop != 0 {
		t.Errorf("val-crop: %d pixels, training at %d, %v", s.ImageSize, s.TrainSize, err)
	}
}

// TestOptimizerNames checks the defaults and the names of optimisers.
func TestOptimizerNames(t *testing.T) {
	if o, rate, err := DefaultOptimizer("adamw"); err != nil || o.Name() != "adamw" || rate != 1e-3 {
		t.Errorf("adamw: %v at %g, %v", o, rate, err)
	}
	if _, _, err := DefaultOptimizer("x"); err == nil {
		t.Error("x is an optimiser")
	}
	if a, b := (&Spec{Optimizer: "adamw"}).OptimizerName(), (&Spec{}).OptimizerName(); a != "AdamW" || b != "SGD" {
		t.Errorf("%s and %s", a, b)
	}
	if len(modelNames()) < 10 || len(Options()) != len(table) {
		t.Errorf("%d models, %d options", len(modelNames()), len(Options()))
	}
}
