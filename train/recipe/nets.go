package recipe

import (
	"fmt"
	"strings"

	"onlinerna/train/option"
)

// Settings that commands of torchvision have in common. The EMA's decay of 0.99998 every 32 steps is scaled by train.py:
// 1 − (1−0.99998)·images a step·32/epochs.
const modern = `epochs 600  batch 128  accumulate 8  schedule cosine  schedule-by epoch  lr-final 0  warmup 5  warmup-from 0.01
	label-smoothing 0.1  mixup 0.2  cutmix 1  ema-decay 0.99890773  ema-every 32
	augment imagenet  auto-augment ta_wide  random-erase 0.1  repeat-augment 4  `

const (
	readme  = "pytorch/vision, references/classification: README.md"
	erasing = "erased boxes are black after normalisation, not noise"
)

// ofFamilies lists the recipes of further families of nets. Stochastic depth, dropout and initial values are the nets' own
// defaults, which are those of the recipes. The values were compared with the files and commands that Source names.
func ofFamilies() []Recipe {
	return []Recipe{{
		// main.py and TRAINING.md: 4096 images a step, 4e-3, min_lr 1e-6, warm-up from 0, all by step; decay of matrices and
		// kernels alone; reprob 0.25 of mode pixel; crop_pct 224/256 in evaluation.
		Name: "convnext", Summary: "ConvNeXt's own: 82.1 % with T in 300 epochs", Nets: `convnext_(tiny|small|base|large)`,
		Source: "facebookresearch/ConvNeXt, TRAINING.md and the defaults of main.py", Lacks: erasing,
		Settings: option.Settings(`model convnext_tiny  epochs 300  batch 128  accumulate 32
			optimizer adamw  lr 4e-3  schedule cosine  schedule-by step  lr-final 1e-6  warmup 20  warmup-from 0
			weight-decay 0.05  decay-weights-only true  no-decay *.layer_scale
			label-smoothing 0.1  mixup 0.8  cutmix 1  ema-decay 0.9999
			augment imagenet  auto-augment rand-m9-mstd0.5-inc1  random-erase 0.25  train-interpolation bicubic
			image-size 224  val-resize 256  val-crop 224  interpolation bicubic`),
	}, {
		// --batch-size 128 --opt adamw --lr 1e-3 --weight-decay 0.05 --norm-weight-decay 0.0 --train-crop-size 176
		// --val-resize-size 232, and the settings of modern.
		Name: "torchvision-convnext", Summary: "torchvision's ConvNeXt: 82.520 % with T in 600 epochs",
		Nets: `convnext_(tiny|small|base|large)`, Source: readme,
		Settings: option.Settings(`model convnext_tiny  ` + modern + `optimizer adamw  lr 1e-3  weight-decay 0.05
			no-decay features.0.1.*,features.[246].0.*,*.block.2.*,classifier.0.*
			train-crop 176  train-interpolation bilinear  val-resize 232  val-crop 224  interpolation bilinear`),
	}, {
		// main.py: 5e-4 for 512 images, 16 processes of 64; timm's cosine counts from the start of the run; timm decays neither
		// vectors nor the tokens and positions. Table 9 of the paper has no EMA; main.py keeps one beside training.
		Name: "deit", Summary: "DeiT's own, without a teacher: 81.8 % with base in 300 epochs", Nets: `deit_.*`,
		Source: "facebookresearch/deit, the defaults of main.py, with 1024 images a step", Lacks: erasing + "; distillation",
		Settings: option.Settings(`model deit_small_patch16_224  epochs 300  batch 64  accumulate 16
			optimizer adamw  lr 1e-3  schedule cosine  schedule-by epoch  lr-final 1e-5  warmup 5  warmup-from 1e-3  warmup-inside true
			weight-decay 0.05  decay-weights-only true
			label-smoothing 0.1  mixup 0.8  cutmix 1  ema-decay 0.99996  drop-path 0.1
			augment imagenet  auto-augment rand-m9-mstd0.5-inc1  random-erase 0.25  repeat-augment 3  train-interpolation bicubic
			image-size 224  val-resize 256  val-crop 224  interpolation bicubic`),
	}, {
		// --epochs 300 --batch-size 512 --opt adamw --lr 0.003 --wd 0.3 --lr-scheduler cosineannealinglr --lr-warmup-epochs 30
		// --lr-warmup-decay 0.033 --label-smoothing 0.11 --mixup-alpha 0.2 --cutmix-alpha 1.0 --auto-augment ra
		// --clip-grad-norm 1 --ra-sampler --model-ema, on 8 GPUs; --ra-reps is 3.
		Name: "vit", Summary: "torchvision's ViT-B/16: 81.072 % in 300 epochs", Nets: `vit_b_16`, Source: readme,
		Settings: option.Settings(`model vit_b_16  epochs 300  batch 512  accumulate 8
			optimizer adamw  lr 3e-3  schedule cosine  schedule-by epoch  lr-final 0  warmup 30  warmup-from 0.033
			weight-decay 0.3  clip-grad 1  label-smoothing 0.11  mixup 0.2  cutmix 1  ema-decay 0.99126187  ema-every 32
			augment imagenet  auto-augment ra  repeat-augment 3  train-interpolation bilinear
			image-size 224  val-resize 256  val-crop 224  interpolation bilinear`),
	},
		swin("swin", "Swin", "swin_t", `swin_[tsb]`, "81.474", 224),
		swin("swin-v2", "Swin V2", "swin_v2_t", `swin_v2_.*`, "82.072", 256), {
			// --epochs 600 --opt rmsprop --batch-size 128 --lr 0.064 --wd 0.00001 --lr-step-size 2 --lr-gamma 0.973
			// --auto-augment imagenet --random-erase 0.2, on 8 GPUs; train.py has eps 0.0316, alpha 0.9 and momentum 0.9.
			Name: "mobilenetv3", Summary: "torchvision's MobileNetV3: 74.042 % with large in 600 epochs",
			Nets: `mobilenet_v3_(large|small)|(tf_)?mobilenetv3_(large|small)_100`, Source: readme + " and train.py",
			Lacks: "the mean of the last 3 checkpoints that improved, which \"rna extrapolate --average\" makes of --keep-best 3",
			Settings: option.Settings(`model mobilenet_v3_large  epochs 600  batch 128  accumulate 8
			optimizer rmsprop  momentum 0.9  beta2 0.9  eps 0.0316  lr 0.064  schedule step  schedule-by epoch  lr-step 2  lr-gamma 0.973
			weight-decay 1e-5  augment imagenet  auto-augment imagenet  random-erase 0.2  train-interpolation bilinear
			image-size 224  val-resize 256  val-crop 224  interpolation bilinear`),
		}, {
			// -b 384 on 2 GPUs --sched step --epochs 450 --decay-epochs 2.4 --decay-rate .97 --opt rmsproptf --opt-eps .001
			// --warmup-lr 1e-6 --weight-decay 1e-5 --drop 0.2 --drop-path 0.2 --model-ema --model-ema-decay 0.9999
			// --aa rand-m9-mstd0.5 --remode pixel --reprob 0.2 --lr .048; warm-up 3 epochs, smoothing 0.1 and random interpolation
			// are train.py's defaults. 0.97 every 2.4 epochs is 0.97^(2/2.4) every 2.
			Name: "efficientnet", Summary: "timm's EfficientNet-B0: 77.7 % in 450 epochs", Nets: `((tf|timm)_)?efficientnet_b\d`,
			Source: "huggingface/pytorch-image-models, training scripts: EfficientNet-B0 with RandAugment",
			Lacks: "TensorFlow's RMSprop, whose ε is under the root and whose average starts at 1; steps of 2.4 epochs, which are " +
				"2 here with the same fall; operations that do not all grow with the magnitude; " + erasing,
			Settings: option.Settings(`model efficientnet_b0  epochs 450  batch 384  accumulate 2
			optimizer rmsprop  momentum 0.9  beta2 0.9  eps 0.001  lr 0.048  schedule step  schedule-by epoch  lr-step 2  lr-gamma 0.97493694
			warmup 3  warmup-from 2.0833e-5  warmup-inside true  weight-decay 1e-5  decay-weights-only true
			label-smoothing 0.1  ema-decay 0.9999  augment imagenet  auto-augment rand-m9-mstd0.5-inc1  random-erase 0.2
			train-interpolation random  interpolation bicubic`),
		},
		efficientNetV2("s", "84.228", 300, 384),
		efficientNetV2("m", "85.112", 384, 480),
	}
}

// swin is torchvision's recipe of a version of Swin: --epochs 300 --batch-size 128 --opt adamw --lr 0.001
// --weight-decay 0.05, of norms, biases and embeddings 0, --lr-min 0.00001 --lr-warmup-epochs 20 --lr-warmup-decay 0.01
// --label-smoothing 0.1 --mixup-alpha 0.8 --clip-grad-norm 5.0 --cutmix-alpha 1.0 --random-erase 0.25
// --interpolation bicubic --auto-augment ta_wide --model-ema --ra-sampler --ra-reps 4, on 8 GPUs; --train-crop-size,
// --val-resize-size and --val-crop-size are the size.
func swin(name, version, net, nets, accuracy string, size int) Recipe {
	return Recipe{Name: name, Source: readme, Nets: nets,
		Summary: fmt.Sprintf("torchvision's %s: %s %% with T in 300 epochs", version, accuracy),
		Settings: option.Settings(fmt.Sprintf(`model %s  epochs 300  batch 128  accumulate 8
			optimizer adamw  lr 1e-3  schedule cosine  schedule-by epoch  lr-final 1e-5  warmup 20  warmup-from 0.01
			weight-decay 0.05  decay-weights-only true  clip-grad 5
			label-smoothing 0.1  mixup 0.8  cutmix 1  ema-decay 0.99781547  ema-every 32
			augment imagenet  auto-augment ta_wide  random-erase 0.25  repeat-augment 4  train-interpolation bicubic
			image-size %d  val-resize %[2]d  val-crop %[2]d  interpolation bicubic`, net, size))}
}

// efficientNetV2 is torchvision's recipe of a size of EfficientNetV2: --lr 0.5 --weight-decay 0.00002 --norm-weight-decay
// 0.0, and the settings of modern, with crops of its own.
func efficientNetV2(size, accuracy string, train, val int) Recipe {
	net := "efficientnet_v2_" + size
	return Recipe{Name: "efficientnet-v2-" + size, Source: readme, Nets: net,
		Summary: fmt.Sprintf("torchvision's EfficientNetV2-%s: %s %% in 600 epochs", strings.ToUpper(size), accuracy),
		Settings: option.Settings(fmt.Sprintf(`model %s  `+modern+`optimizer sgd  momentum 0.9  lr 0.5  weight-decay 2e-5
			no-decay features.?.1.weight,features.?.1.bias,*.block.*.1.*
			train-crop %d  train-interpolation bilinear  val-resize %d  val-crop %[3]d  interpolation bilinear`,
			net, train, val))}
}
