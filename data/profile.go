package data

import (
	"errors"
	"fmt"
	"strings"

	"onlinerna/data/augment"
	"onlinerna/data/format"
	"onlinerna/data/imaging"
)

// Profile is the usual preparation of a set for a network.
type Profile struct {
	// Name is the set whose conventions it follows: "imagenet", "cifar", "mnist" or "glyphs".
	Name string
	// Size is the usual height and width of the network's input.
	Size int
	// Mean and Std normalise a channel: (pixel/255 − Mean) / Std.
	Mean, Std []float64

	small   bool   // the network sees the images whole
	augment string // the augmentation that "auto" means
}

// The normalisation of colour images that have none of their own.
var (
	imageNetMean = []float64{.485, .456, .406}
	imageNetStd  = []float64{.229, .224, .225}
)

// maxSmall is the side up to which images count as small.
const maxSmall = 96

// ProfileOf determines the profile of a set from a few of its images: those of a small set are all square and of one
// size.
func ProfileOf(ds Dataset) (Profile, error) {
	if isGlyphs(ds) {
		return Profile{
			Name: "glyphs", Size: 28, Mean: []float64{.25}, Std: []float64{.25},
			small: true, augment: "none",
		}, nil
	}
	side, err := smallSide(ds)
	if err != nil {
		return Profile{}, err
	}
	gray, small := ds.Channels() == 1, side > 0
	switch {
	case gray && small:
		return Profile{
			Name: "mnist", Size: side, Mean: []float64{.1307}, Std: []float64{.3081},
			small: true, augment: "none",
		}, nil
	case small && side == 32:
		return Profile{
			Name: "cifar", Size: side, Mean: []float64{.4914, .4822, .4465}, Std: []float64{.247, .2435, .2616},
			small: true, augment: "cifar",
		}, nil
	case small:
		return Profile{
			Name: "cifar", Size: side, Mean: imageNetMean, Std: imageNetStd,
			small: true, augment: "cifar",
		}, nil
	}
	p := Profile{
		Name: "imagenet", Size: 224, Mean: imageNetMean, Std: imageNetStd,
		augment: "imagenet",
	}
	if gray { // the mean of the three
		p.Mean, p.Std = []float64{.449}, []float64{.226}
	}
	return p, nil
}

func isGlyphs(ds Dataset) bool {
	switch d := ds.(type) {
	case stored:
		_, ok := d.Set.(*format.Glyphs)
		return ok
	case *subset:
		return isGlyphs(d.Dataset)
	}
	return false
}

// smallBudget suffices to decode a small image of any format.
const smallBudget = 4 << 20

// smallSide returns the side of the images of ds if all those sampled are small, square and equal, else 0. It skips
// unreadable images; an image that declares a large size is not small, even if damaged.
func smallSide(ds Dataset) (int, error) {
	const looks, tries = 8, 64
	s := NewScratch(NewBudget(smallBudget, 1), 1)
	s.file.Room = room{NewBudget(0, 1), leastBudget / 8} // pages hold many images
	defer s.Release()
	var failed error
	side, seen := 0, 0
	for k := range min(tries, ds.Len()) {
		if seen == looks {
			break
		}
		img, err := ds.Read(k*(ds.Len()/min(tries, ds.Len())), nil, s) // spread over the set
		if errors.Is(err, ErrTooLarge) {
			return 0, nil
		}
		if err != nil {
			failed = err
			continue
		}
		if img.Width != img.Height || img.Width > maxSmall || seen > 0 && img.Width != side {
			return 0, nil
		}
		side = img.Width
		seen++
	}
	if seen == 0 {
		return 0, fmt.Errorf("none of the images looked at can be read, the last: %w", failed)
	}
	return side, nil
}

// Augmentations lists the names that Profile.Train knows.
func Augmentations() []string { return []string{"auto", "imagenet", "cifar", "none"} }

// Train returns a transform for training at size×size by name: "imagenet" (augment.TrainImageNet), "cifar"
// (augment.TrainCIFAR), "none" (that of evaluation), or "auto", the usual one of the set.
func (p Profile) Train(name string, size int) (augment.Transform, error) {
	if name == "auto" {
		name = p.augment
	}
	switch name {
	case "imagenet":
		return augment.TrainImageNet(size), nil
	case "cifar":
		return augment.TrainCIFAR(size), nil
	case "none":
		return p.Eval(size), nil
	}
	return nil, fmt.Errorf("augmentation %q is unknown: want one of %s", name, strings.Join(Augmentations(), ", "))
}

// EvalOptions are the parameters of evaluation transforms. A zero field means the set's usual value.
type EvalOptions struct {
	Size          int    // of the crop
	Resize        int    // of the shorter side before it
	Interpolation string // one of imaging.Interpolations
}

// Evaluation returns the transform for evaluation.
func (p Profile) Evaluation(o EvalOptions) (augment.Transform, error) {
	if o.Size == 0 {
		o.Size = p.Size
	}
	shorter, how := o.Resize, imaging.Bilinear
	if shorter == 0 {
		shorter = augment.Margin(o.Size)
		if p.whole(o.Size) {
			shorter = o.Size
		}
	}
	if o.Interpolation != "" {
		var err error
		if how, err = imaging.ParseInterpolation(o.Interpolation); err != nil {
			return nil, err
		}
	}
	if shorter < o.Size {
		return nil, fmt.Errorf("images are resized to %d and then cropped to %d: the crop is at most as large",
			shorter, o.Size)
	}
	return augment.ResizeCenterCrop(o.Size, shorter, how), nil
}

// whole reports whether inputs of a size show whole images.
func (p Profile) whole(size int) bool { return p.small && size >= p.Size }

// Eval returns the transform for evaluation at size×size: EvalSmall for small images that are to be seen whole,
// Eval for all others.
func (p Profile) Eval(size int) augment.Transform {
	if p.whole(size) {
		return augment.EvalSmall(size)
	}
	return augment.Eval(size)
}
