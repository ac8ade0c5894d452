// Package recipe lists published training recipes as settings of options.
package recipe

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"onlinerna/internal/nearest"
	"onlinerna/train/option"
)

// A Recipe is a published training recipe: settings of the options of package train.
type Recipe struct {
	Name    string
	Summary string // one line
	Source  string // source of its values
	// Settings are in display order. Batches are those of one process: R processes with an accumulation R times smaller
	// make the same steps.
	Settings []option.Setting
	Nets     string // a regular expression for names of nets that it is for; "" means the model of Settings
	Lacks    string // parts of it that are not here; "" without
}

// For reports whether the recipe is for a net.
func (r *Recipe) For(net string) bool {
	if r.Nets != "" {
		return regexp.MustCompile("^(?:" + r.Nets + ")$").MatchString(net)
	}
	return slices.ContainsFunc(r.Settings, func(x option.Setting) bool { return x.Name == "model" && x.String() == net })
}

// All lists all recipes: for ImageNet and ResNet-50, and those of ofFamilies. The values of paper were compared with its text, those of
// ffcv-16, ffcv-88 and mlperf with the files that Source names, those of torchvision-v2 with the commands of its issue
// and with copies of train.py. Those of rsb are second-hand: they come from configurations by others that reproduce the
// paper (mmpretrain's among them), not from its table. The other two, ffcv's 24 to 56 epochs and torchvision-v1, are as
// their sources are commonly quoted.
func All() []Recipe {
	// The paper, section "CNN preliminary experiments": SGD, momentum 0.9, decay 1e-4, from 0.1 to 0.001 in equal steps,
	// one per epoch, RNA at the end of each with N = 10, λ = 1e-9. It does not state the number of epochs or the batch; 90
	// and 256 are usual.
	list := []Recipe{{
		Name: "paper", Summary: "Online RNA's experiment with ResNet-50: linear rate, offline RNA",
		Source: "Scieur, Oyallon, d'Aspremont, Bach: Online Regularized Nonlinear Acceleration, section 4",
		Settings: option.Settings(`model resnet50  epochs 90  batch 32  accumulate 8
			optimizer sgd  momentum 0.9  lr 0.1  schedule linear  schedule-by epoch  lr-final 0.001  weight-decay 1e-4
			augment imagenet  rna offline  rna-window 10  rna-lambda 1e-9`),
	}, {
		// 8 × 32 images, lr 0.1, divided by 10 every 30 epochs: the defaults of train.py, which reached 76.130 %.
		Name: "torchvision-v1", Summary: "ResNet50_Weights.IMAGENET1K_V1: 76.13 % in 90 epochs",
		Source: "pytorch/vision, references/classification: README.md and the defaults of train.py",
		Settings: option.Settings(`model resnet50  epochs 90  batch 32  accumulate 8
			optimizer sgd  momentum 0.9  lr 0.1  schedule step  schedule-by epoch  lr-step 30  lr-gamma 0.1  weight-decay 1e-4
			augment imagenet  image-size 224  val-resize 256  val-crop 224  interpolation bilinear`),
	}, {
		// --batch-size=128 --lr 0.5 --lr-scheduler=cosineannealinglr --lr-warmup-epochs=5 --lr-warmup-method=linear
		// --auto-augment=ta_wide --epochs=600 --random-erase=0.1 --weight-decay=0.00002 --norm-weight-decay=0.0
		// --label-smoothing=0.1 --mixup-alpha=0.2 --cutmix-alpha=1.0 --train-crop-size=176 --model-ema --val-resize-size=232
		// --ra-sampler --ra-reps=4, on 8 GPUs. lr-warmup-decay is 0.01. Its EMA decay of 0.99998 every 32 steps is scaled: 1
		// − (1−0.99998) · 8·128·32/600.
		Name: "torchvision-v2", Summary: "ResNet50_Weights.IMAGENET1K_V2: 80.858 % in 600 epochs",
		Source: "pytorch/vision, issue 3995, and references/classification/train.py for the scale of the EMA's decay",
		Settings: option.Settings(`model resnet50  epochs 600  batch 128  accumulate 8
			optimizer sgd  momentum 0.9  lr 0.5  schedule cosine  schedule-by epoch  lr-final 0  warmup 5  warmup-from 0.01
			weight-decay 2e-5  no-decay *bn*,*downsample.1.*  label-smoothing 0.1  mixup 0.2  cutmix 1  ema-decay 0.99890773  ema-every 32
			augment imagenet  auto-augment ta_wide  random-erase 0.1  repeat-augment 4  train-crop 176  train-interpolation bilinear
			val-resize 232  val-crop 224  interpolation bilinear`),
	}}
	// Table 2 of the paper: batch 2048, 5 epochs of warm-up, cosine, no decay of biases and norms, crop ratio 0.95 in
	// evaluation, which is a resize to ⌊224/0.95⌋. The published args of timm add warmup_lr 1e-4, min_lr 1e-6, targets
	// above 0.2 as 1, and random interpolation; timm evaluates ResNet-50 bicubic, counts the cosine from the start of the
	// run, and its Lamb clips the gradient to 1.
	rsb := func(name, what, more string) Recipe {
		return Recipe{Name: name, Summary: what, Source: "Wightman, Touvron, Jégou: ResNet strikes back, arXiv 2110.00476, table 2, and timm's " +
			"args of the published weights",
			Settings: option.Settings(`model resnet50  batch 256  accumulate 8  optimizer lamb  max-grad-norm 1  schedule cosine  schedule-by epoch  lr-final 1e-6
				warmup 5  warmup-inside true  weight-decay 0.02  decay-weights-only true  loss bce  bce-threshold 0.2  mixup 0.1  cutmix 1
				augment imagenet  train-interpolation random  val-resize 235  val-crop 224  interpolation bicubic ` + more)}
	}
	list = append(list,
		rsb("rsb-a2", "ResNet strikes back A2: 79.8 % in 300 epochs",
			"epochs 300  lr 5e-3  warmup-from 0.02  drop-path 0.05  auto-augment rand-m7-mstd0.5-inc1  repeat-augment 3  "+
				"train-crop 224"),
		rsb("rsb-a3", "ResNet strikes back A3: 78.1 % in 100 epochs, trained at 160",
			"epochs 100  lr 8e-3  warmup-from 0.0125  auto-augment rand-m6-mstd0.5-inc1  train-crop 160"))
	// rn50_configs/*.yaml: 512 images a process on 8, rate 1.7, cyclic: up from 1e-4 of it until epoch 2 and down to 0, by
	// step; BatchNorm (names with bn) without decay; evaluation at 256 of the central 224/256, which is a resize to 293,
	// summed over both flips.
	for _, r := range []struct {
		epochs, from, to int
	}{{16, 11, 13}, {24, 17, 20}, {32, 23, 27}, {40, 29, 34}, {56, 41, 48}, {88, 65, 76}} {
		list = append(list, Recipe{
			Name: fmt.Sprintf("ffcv-%d", r.epochs), Summary: fmt.Sprintf("FFCV's ResNet-50 in %d epochs, growing from 160 to 192", r.epochs),
			Source: fmt.Sprintf("libffcv/ffcv-imagenet, rn50_configs/rn50_%d_epochs.yaml and train_imagenet.py", r.epochs),
			Settings: option.Settings(fmt.Sprintf(`model resnet50  blurpool true  epochs %d  batch 512  accumulate 8
				optimizer sgd  momentum 0.9  lr 1.7  schedule poly  lr-power 1  schedule-by step  warmup 2  warmup-from 1e-4
				weight-decay 1e-4  no-decay *bn*  label-smoothing 0.1
				augment imagenet  train-crop 192  train-crop-from 160  train-crop-ramp %d,%d
				val-crop 256  val-resize 293  test-flip true`, r.epochs, r.from, r.to)),
		})
	}
	// BATCHSIZE 408 on 8 GPUs, OPTIMIZER sgdwfastlars, LR 10.5, WARMUP_EPOCHS 2, WD 5e-5, MOM 0.9, LARSETA 0.001,
	// LABELSMOOTHING 0.1, LRSCHED pow2, which falls by a power of 2 after the warm-up, NUMEPOCHS 37. It states neither the
	// start of the warm-up nor that biases and norms do not decay.
	list = append(list, Recipe{
		Name: "mlperf", Summary: "MLPerf's ResNet-50: LARS, 37 epochs, to 75.9 %",
		Source: "mlcommons/training_results_v2.0, NVIDIA/benchmarks/resnet/implementations/mxnet/config_DGXA100.sh: a " +
			"global batch of 3264",
		Settings: option.Settings(`model resnet50  epochs 37  batch 408  accumulate 8
			optimizer lars  momentum 0.9  trust-coefficient 0.001  lr 10.5  schedule poly  lr-power 2  schedule-by step  warmup 2  warmup-from 0
			weight-decay 5e-5  decay-weights-only true  label-smoothing 0.1  augment imagenet`),
	})
	return append(list, ofFamilies()...)
}

// ForNet lists the names of the recipes for a net.
func ForNet(net string) (names []string) {
	for _, r := range All() {
		if r.For(net) {
			names = append(names, r.Name)
		}
	}
	return names
}

// Names lists the names of the recipes.
func Names() (names []string) {
	for _, r := range All() {
		names = append(names, r.Name)
	}
	return names
}

// Find finds a recipe by its name.
func Find(name string) (*Recipe, error) {
	for _, r := range All() {
		if r.Name == name {
			return &r, nil
		}
	}
	hint := ""
	if n := nearest.To(name, Names()); n != "" {
		hint = fmt.Sprintf(", did you mean %s?", n)
	}
	return nil, fmt.Errorf("unknown recipe %q%s (known: %s)", name, hint, strings.Join(Names(), ", "))
}
