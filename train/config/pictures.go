package config

import (
	"fmt"
	"math"

	"onlinerna/data/augment"
	"onlinerna/nn"
)

// Regularize is what makes a net's task harder than its images: the loss, and what is dropped.
type Regularize struct {
	Loss LossKind `json:"loss,omitempty"` // empty: CrossEntropy
	// TargetThreshold makes targets of BCE above it 1 and all others 0, as timm's bce_target_thresh; 0 leaves them.
	TargetThreshold float64   `json:"target_threshold,omitempty"`
	ClassWeights    []float64 `json:"class_weights,omitempty"` // of cross-entropy, one a class, as PyTorch's
	Mixup           float64   `json:"mixup,omitempty"`         // see augment.Mix
	Cutmix          float64   `json:"cutmix,omitempty"`
	Dropout         float64   `json:"dropout,omitempty"`   // see nn.Config
	DropPath        float64   `json:"drop_path,omitempty"` // the same
}

// LossKind is a kind of loss.
type LossKind string

// The kinds of loss.
const (
	CrossEntropy LossKind = "ce"  // softmax cross-entropy
	BCE          LossKind = "bce" // binary cross-entropy of each class, averaged over images and classes, as timm's
)

// Network is the loss that the net is built with. Plain labels have one of their own.
func (r *Regularize) Network() nn.Loss {
	switch {
	case r.Loss == BCE:
		return nn.BinaryTargets
	case r.Mixup > 0 || r.Cutmix > 0 || len(r.ClassWeights) > 0:
		return nn.SoftTargets
	}
	return nn.CrossEntropy
}

// Mix is what is mixed.
func (r *Regularize) Mix() augment.Mix { return augment.Mix{Mixup: r.Mixup, Cutmix: r.Cutmix} }

func (r *Regularize) check(classes int) error {
	switch {
	case r.Loss != "" && r.Loss != CrossEntropy && r.Loss != BCE:
		return fmt.Errorf("unknown loss %q: use %s or %s", r.Loss, CrossEntropy, BCE)
	case r.TargetThreshold != 0 && r.Loss != BCE:
		return fmt.Errorf("a threshold of targets goes with the loss %s", BCE)
	case !(r.TargetThreshold >= 0 && r.TargetThreshold < 1):
		return fmt.Errorf("target threshold %g: must lie in [0, 1)", r.TargetThreshold)
	case len(r.ClassWeights) > 0 && r.Loss == BCE:
		return fmt.Errorf("class weights go with the loss %s: with %s each image has a loss for every class, also for those that it does not show, and no weight is the image's", CrossEntropy, BCE)
	case len(r.ClassWeights) > 0 && len(r.ClassWeights) != classes:
		return fmt.Errorf("%d class weights for %d classes", len(r.ClassWeights), classes)
	case !(r.Dropout >= 0 && r.Dropout < 1) || !(r.DropPath >= 0 && r.DropPath < 1):
		return fmt.Errorf("dropout %g and drop path %g: must lie in [0, 1)", r.Dropout, r.DropPath)
	}
	for i, w := range r.ClassWeights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Errorf("class weight %d is %g: must be finite and not negative", i, w)
		}
	}
	return r.Mix().Check()
}

// Pictures is how images are prepared, beside the usual. What is left zero is usual for the data.
type Pictures struct {
	// Evaluation: ImageSize is the size of the crop, ValResize that of the shorter side before it.
	ValResize int `json:"val_resize,omitempty"`
	// FastDecode is the loader's: JPEGs are decoded smaller where they are reduced next, in training and evaluation.
	FastDecode    bool   `json:"fast_decode,omitempty"`
	Interpolation string `json:"interpolation,omitempty"` // one of imaging.Interpolations
	TestFlip      bool   `json:"test_flip,omitempty"`     // logits are the mean over an image and its mirror image

	// Training at another size than ImageSize: TrainSize, or, where the run starts smaller, from TrainFrom up to epoch Ramp[0], then growing in
	// steps of 32 pixels to TrainSize at epoch Ramp[1]. Epochs count from 0.
	TrainSize int    `json:"train_size,omitempty"`
	TrainFrom int    `json:"train_from,omitempty"`
	TrainRamp [2]int `json:"train_ramp,omitzero"`

	// See augment.Options and data.LoaderOptions.
	TrainInterpolation string    `json:"train_interpolation,omitempty"`
	CropScale          []float64 `json:"crop_scale,omitempty"`
	CropRatio          []float64 `json:"crop_ratio,omitempty"`
	NoFlip             bool      `json:"no_flip,omitempty"`
	FlipVertical       float64   `json:"flip_vertical,omitempty"`
	ColorJitter        []float64 `json:"color_jitter,omitempty"`
	AutoAugment        string    `json:"auto_augment,omitempty"`
	RandomErase        float64   `json:"random_erase,omitempty"`
	RepeatAugment      int       `json:"repeat_augment,omitempty"`
}

// Augmentation is what training images go through, for a normalisation by mean.
func (p *Pictures) Augmentation(mean []float64, mixed bool) augment.Options {
	a := augment.Options{Interpolation: p.TrainInterpolation, NoFlip: p.NoFlip, FlipVertical: p.FlipVertical, Jitter: p.ColorJitter,
		Policy: p.AutoAugment, Erase: p.RandomErase, Mean: mean, Whole: mixed}
	copy(a.Scale[:], p.CropScale)
	copy(a.Ratio[:], p.CropRatio)
	return a
}

// SizeAt is the size of training images in an epoch, counted from 0, for images that are evaluated at a size.
func (p *Pictures) SizeAt(epoch, size int) int {
	if p.TrainSize > 0 {
		size = p.TrainSize
	}
	switch from, to := p.TrainRamp[0], p.TrainRamp[1]; {
	case p.TrainFrom == 0 || epoch >= to:
		return size
	case epoch <= from:
		return p.TrainFrom
	default:
		x := float64(p.TrainFrom) + float64(size-p.TrainFrom)*float64(epoch-from)/float64(to-from)
		return min(size, max(p.TrainFrom, int(math.RoundToEven(x/32))*32)) // multiples of 32 between, as FFCV's
	}
}

// Sizes lists the sizes of a run's training images.
func (p *Pictures) Sizes(epochs, size int) (list []int) {
	for e := range epochs {
		if s := p.SizeAt(e, size); len(list) == 0 || list[len(list)-1] != s {
			list = append(list, s)
		}
	}
	return list
}

func (p *Pictures) check(size int) error {
	end := p.SizeAt(math.MaxInt, size)
	switch {
	case p.ValResize < 0 || p.TrainSize < 0 || p.TrainFrom < 0:
		return fmt.Errorf("val-resize %d and training sizes %d and %d: must not be negative", p.ValResize, p.TrainSize, p.TrainFrom)
	case p.ValResize > 0 && p.ValResize < size:
		return fmt.Errorf("val-resize %d: at least the size of the crop, %d", p.ValResize, size)
	case p.TrainFrom > end:
		return fmt.Errorf("training images start at %d pixels and end at %d: they may grow only", p.TrainFrom, end)
	case p.TrainFrom > 0 && (p.TrainRamp[0] < 0 || p.TrainRamp[1] <= p.TrainRamp[0]):
		return fmt.Errorf("training images grow between epochs %d and %d: the second must be later", p.TrainRamp[0], p.TrainRamp[1])
	case p.TrainFrom == 0 && p.TrainRamp != [2]int{}:
		return fmt.Errorf("epochs %v in which training images grow: say from what size", p.TrainRamp)
	case p.RepeatAugment < 0:
		return fmt.Errorf("repeated augmentation %d: must not be negative", p.RepeatAugment)
	case len(p.CropScale) != 0 && len(p.CropScale) != 2 || len(p.CropRatio) != 0 && len(p.CropRatio) != 2:
		return fmt.Errorf("crop scale %v and ratio %v: two numbers each", p.CropScale, p.CropRatio)
	}
	a := p.Augmentation(nil, false)
	return a.Check()
}
