package main

import (
	"strings"

	"onlinerna/data/augment"
	"onlinerna/data/imaging"
)

// pictures adds the options of how images are prepared.
func (f *trainFlags) pictures(d group) {
	d.StringVar(&f.AutoAugment, "auto-augment", "", "automatic augmentation: "+augment.Policies())
	d.values("auto-augment", "ra", "ta_wide", "imagenet", "cifar10", "rand-m7-mstd0.5-inc1")
	d.Float64Var(&f.RandomErase, "random-erase", 0, "probability with which a box of an image is erased")
	d.floats(&f.ColorJitter, "color-jitter", "torchvision's ColorJitter: comma-separated `numbers` for brightness, contrast, saturation and hue, as 0.4,0.4,0.4,0.1")
	d.floats(&f.CropScale, "crop-scale", "least and largest share of the area of a random crop, as two `numbers` (default 0.08,1)")
	d.floats(&f.CropRatio, "crop-ratio", "least and largest width by height of a random crop, as two `numbers` (default 0.75,1.333)")
	d.BoolVar(&f.NoFlip, "no-flip", false, "no mirror images left to right")
	d.Float64Var(&f.FlipVertical, "flip-vertical", 0, "probability with which an image is turned upside down")
	d.IntVar(&f.RepeatAugment, "repeat-augment", 0, "each image so many times in a row, augmented anew, and as many times fewer images an epoch (default 1)")
	d.IntVar(&f.TrainSize, "train-crop", 0, "height and width of training images, where they differ from --image-size")
	d.IntVar(&f.TrainFrom, "train-crop-from", 0, "height and width of training images in the first epochs: they grow to --train-crop")
	d.IntSliceVar(&f.ramp, "train-crop-ramp", nil, "the `epochs` between which they grow, as 4,13")
	d.StringVar(&f.TrainInterpolation, "train-interpolation", "", strings.Join(augment.Interpolations(), ", ")+": bilinear or bicubic as it comes (default bilinear)")
	d.values("train-interpolation", augment.Interpolations()...)
	d.IntVar(&f.valCrop, "val-crop", 0, "height and width of evaluated images: --image-size is then that of training")
	f.evaluated(d)
}

// evaluated adds the options of how images are prepared for evaluation.
func (f *trainFlags) evaluated(d group) {
	d.BoolVar(&f.FastDecode, "fast-decode", false, fastDecodeHelp)
	d.IntVar(&f.ValResize, "val-resize", 0, "shorter side to which images are resized before the crop in evaluation (default: 256 for a crop of 224, in proportion)")
	d.StringVar(&f.Interpolation, "interpolation", "", "how they are resized: "+strings.Join(imaging.Interpolations(), ", ")+" (default bilinear)")
	d.values("interpolation", imaging.Interpolations()...)
	d.BoolVar(&f.TestFlip, "test-flip", false, "evaluate by the mean of the logits of an image and of its mirror image")
}

// regularize adds the options of the loss and of what is dropped.
func (f *trainFlags) regularize(o group) {
	o.StringVar((*string)(&f.Loss), "loss", "", "ce: softmax cross-entropy, bce: binary cross-entropy of each class (default ce)")
	o.values("loss", "ce", "bce")
	o.Float64Var(&f.TargetThreshold, "bce-threshold", 0, "with bce, targets above this are 1 and others 0 (default: as they are)")
	o.floats(&f.ClassWeights, "class-weights", "weights of the classes in the loss, as comma-separated `numbers`")
	o.Float64Var(&f.Mixup, "mixup", 0, "mix images in shares from a beta distribution with this parameter (default: none)")
	o.Float64Var(&f.Cutmix, "cutmix", 0, "put a box of one image into another, with this parameter; with --mixup a batch has either (default: none)")
	o.Float64Var(&f.Dropout, "dropout", 0, "probability with which the last layer's inputs are dropped")
	o.Float64Var(&f.DropPath, "drop-path", 0, "stochastic depth: probability of dropping the last residual branch, less for those before it")
}
