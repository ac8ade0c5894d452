package train

import (
	"fmt"
	"math"

	"onlinerna/data/augment"
	"onlinerna/data/imaging"
	"onlinerna/train/option"
)

// Pictures are options of image preparation. A zero field takes the usual value for the data.
type Pictures struct {
	// Evaluation: ImageSize is the size of the crop, ValResize the size of the shorter side before it. ValCrop is the size
	// of the crop if ImageSize is the size of training images; a resolved config has ValCrop 0 and the sizes in ImageSize
	// and TrainSize.
	ValResize int
	ValCrop   int
	// FastDecode decodes JPEGs at a reduced size if they are reduced next, in training and evaluation: see
	// data.LoaderOptions.
	FastDecode    bool
	Interpolation string // one of imaging.Interpolations
	TestFlip      bool   // logits are the mean over an image and its mirror image

	// Training at another size than ImageSize: TrainSize throughout or, if TrainFrom is set, TrainFrom up to epoch Ramp[0]
	// and then growing in steps of 32 pixels to TrainSize at epoch Ramp[1]. Epochs count from 0.
	TrainSize int
	TrainFrom int
	TrainRamp [2]int

	// See augment.Options and data.LoaderOptions.
	TrainInterpolation string
	CropScale          []float64
	CropRatio          []float64
	NoFlip             bool
	FlipVertical       float64
	ColorJitter        []float64
	AutoAugment        string
	RandomErase        float64
	RepeatAugment      int
}

// Augmentation returns the augmentation of training images, for a normalisation by mean.
func (p *Pictures) Augmentation(mean []float64, mixed bool) augment.Options {
	a := augment.Options{Interpolation: p.TrainInterpolation, NoFlip: p.NoFlip, FlipVertical: p.FlipVertical,
		Jitter: p.ColorJitter,
		Policy: p.AutoAugment, Erase: p.RandomErase, Mean: mean, Whole: mixed}
	copy(a.Scale[:], p.CropScale)
	copy(a.Ratio[:], p.CropRatio)
	return a
}

// SizeAt returns the size of training images in an epoch, counted from 0; size is that of evaluated images.
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
		return min(size, max(p.TrainFrom, int(math.RoundToEven(x/32))*32)) // multiples of 32 in between, as FFCV's
	}
}

// Sizes lists the sizes of a run's training images.
func (p *Pictures) Sizes(epochs, size int) (list []int) {
	for e := range min(epochs, max(1, p.TrainRamp[1]+1)) { // later ones are as the last
		if s := p.SizeAt(e, size); len(list) == 0 || list[len(list)-1] != s {
			list = append(list, s)
		}
	}
	return list
}

func (p *Pictures) check(size int) error {
	end := p.SizeAt(math.MaxInt, size)
	switch {
	case p.ValResize > 0 && p.ValResize < size:
		return fmt.Errorf("val-resize %d: at least the size of the crop, %d", p.ValResize, size)
	case p.TrainFrom > end:
		return fmt.Errorf("training images start at %d pixels and end at %d: they may grow only", p.TrainFrom, end)
	case p.TrainFrom > 0 && (p.TrainRamp[0] < 0 || p.TrainRamp[1] <= p.TrainRamp[0]):
		return fmt.Errorf("training images grow between epochs %d and %d: the second must be later", p.TrainRamp[0],
			p.TrainRamp[1])
	case p.TrainFrom == 0 && p.TrainRamp != [2]int{}:
		return fmt.Errorf("epochs %v in which training images grow: say from what size", p.TrainRamp)
	case len(p.CropScale) != 0 && len(p.CropScale) != 2 || len(p.CropRatio) != 0 && len(p.CropRatio) != 2:
		return fmt.Errorf("crop scale %v and ratio %v: two numbers each", p.CropScale, p.CropRatio)
	}
	a := p.Augmentation(nil, false)
	return a.Check()
}

// resolve replaces ValCrop: ImageSize becomes ValCrop, and the former ImageSize the size of training images.
func (p *Pictures) resolve(size *int) {
	if p.ValCrop == 0 {
		return
	}
	option.Default(&p.TrainSize, *size)
	*size, p.ValCrop = p.ValCrop, 0
}

var pictureOptions = option.Table[Pictures]{
	{Name: "auto-augment", Open: true, Field: func(p *Pictures) any { return &p.AutoAugment },
		Values: option.OneOf("ra", "ta_wide", "imagenet", "cifar10", "rand-m7-mstd0.5-inc1"),
		Help:   "automatic augmentation: " + augment.Policies()},
	{Name: "random-erase", Field: func(p *Pictures) any { return &p.RandomErase }, Check: option.Between(0, 1),
		Help: "probability with which a box of an image is erased"},
	{Name: "color-jitter", Field: func(p *Pictures) any { return &p.ColorJitter },
		Help: "torchvision's ColorJitter: comma-separated `numbers` for brightness, contrast, saturation and hue, as " +
			"0.4,0.4,0.4,0.1"},
	{Name: "crop-scale", Default: "0.08,1", Field: func(p *Pictures) any { return &p.CropScale },
		Help: "least and largest share of the area of a random crop, as two `numbers`"},
	{Name: "crop-ratio", Default: "0.75,1.333", Field: func(p *Pictures) any { return &p.CropRatio },
		Help: "least and largest width by height of a random crop, as two `numbers`"},
	{Name: "no-flip", Field: func(p *Pictures) any { return &p.NoFlip }, Help: "no mirror images left to right"},
	{Name: "flip-vertical", Field: func(p *Pictures) any { return &p.FlipVertical }, Check: option.Between(0, 1),
		Help: "probability with which an image is turned upside down"},
	{Name: "repeat-augment", Default: "1", Field: func(p *Pictures) any { return &p.RepeatAugment },
		Check: option.Positive,
		Help:  "each image so many times in a row, augmented anew, and as many times fewer images an epoch"},
	{Name: "train-crop", Default: "--image-size", Field: func(p *Pictures) any { return &p.TrainSize },
		Check: option.Positive,
		Help:  "height and width of training images"},
	{Name: "train-crop-from", Default: "--train-crop", Field: func(p *Pictures) any { return &p.TrainFrom },
		Check: option.Positive,
		Help:  "height and width of training images in the first epochs: they grow to --train-crop"},
	{Name: "train-crop-ramp", Field: func(p *Pictures) any { return &p.TrainRamp }, Check: option.NotNegative,
		Help: "the `epochs` between which they grow, as 4,13"},
	{Name: "train-interpolation", Default: "the net's, bilinear as a rule", Field: func(p *Pictures) any { return &p.TrainInterpolation },
		Values: augment.Interpolations, Help: "how training images are resized; random: bilinear or bicubic"},
	{Name: "val-crop", Default: "--image-size", Field: func(p *Pictures) any { return &p.ValCrop }, Check: option.Positive,
		Help: "height and width of evaluated images: --image-size is then that of training"},
	{Name: "fast-decode", Field: func(p *Pictures) any { return &p.FastDecode },
		Help: "decode JPEGs at 1/2, 1/4 or 1/8 of their size where they are reduced by at least that next: faster for " +
			"large ones, with other pixels " +
			"(rna bench data --fast-decode says how much)"},
	{Name: "val-resize", Default: "256 for a crop of 224, in proportion; with --init the net's",
		Field: func(p *Pictures) any { return &p.ValResize },
		Check: option.Positive, Help: "shorter side to which images are resized before the crop in evaluation"},
	{Name: "interpolation", Default: "the net's, bilinear as a rule", Field: func(p *Pictures) any { return &p.Interpolation },
		Values: imaging.Interpolations, Help: "how images are resized in evaluation"},
	{Name: "test-flip", Field: func(p *Pictures) any { return &p.TestFlip },
		Help: "evaluate by the mean of the logits of an image and of its mirror image"},
}
