// Package augment makes the inputs of a network from images: transforms to one size for training and evaluation,
// torchvision's and timm's augmentation, and batches that are mixed. Every choice is a function of a [random.Rand].
package augment

import (
	"fmt"
	"image"
	"math"

	"onlinerna/data/imaging"
	"onlinerna/data/random"
)

// Transform turns images of any size into images of one size, and picks the window of each that the network sees (see
// Crop). It is a value without state: safe for concurrent use.
type Transform interface {
	// Size is the height and width of the images that it makes.
	Size() int
	// Region is the part of an image of width×height that it needs.
	Region(width, height int, r *random.Rand) image.Rectangle
	// Apply writes the part img of an image as Size()×Size()×img.Channels to dst, row by row with
	// interleaved channels, and returns the window. For one image Region and Apply are called once
	// each, in this order, with the same r.
	Apply(dst []uint8, img *imaging.Image, r *random.Rand, s *Scratch) (Crop, error)
	// String names the transform with its parameters.
	String() string
}

// Scratch is the memory that transforms need beside the image, kept from one image to the next. The zero value is
// ready. A Scratch serves one goroutine at a time.
type Scratch struct {
	Resizer  imaging.Resizer
	resized  imaging.Image
	work     imaging.Image // an image that is being augmented
	operator operator
}

// Drop gives back the memory of the image that is being augmented.
func (s *Scratch) Drop() { s.work = imaging.Image{} }

// OpensImages reports whether Apply of t takes images that are opened but not decoded.
func OpensImages(t Transform) bool {
	o, ok := t.(interface{ opensImages() bool })
	return ok && o.opensImages()
}

func (randomResizedCrop) opensImages() bool { return true }
func (paddedCrop) opensImages() bool        { return true }
func (resizeCenterCrop) opensImages() bool  { return true }

// Crop is the window of an image that the network sees, Size()×Size() with its top left corner at (Top, Left), mirrored
// left to right where Flip is set.
type Crop struct {
	Top, Left int
	Flip      bool
}

// TrainImageNet is torchvision's RandomResizedCrop(size, scale=(0.08, 1), ratio=(3/4, 4/3)),
// bilinear and antialiased, followed by RandomHorizontalFlip: up to ten boxes of random area and
// aspect ratio are tried, then the largest central one.
func TrainImageNet(size int) Transform {
	return randomResizedCrop{fixed(size), [2]float64{0.08, 1}, [2]float64{3. / 4, 4. / 3}, ""}
}

// TrainCIFAR is torchvision's RandomCrop(size, padding=4) followed by RandomHorizontalFlip. Both
// are left to the Crop, so the host copies the image. An image of another size is first made
// size×size as by EvalSmall.
func TrainCIFAR(size int) Transform { return paddedCrop{fixed(size), 4} }

// Eval is torchvision's Resize(size·256/224) followed by CenterCrop(size), without randomness:
// evaluation on large images.
func Eval(size int) Transform {
	return ResizeCenterCrop(size, Margin(size), imaging.Bilinear)
}

// Margin is the shorter side to which Eval resizes an image before it takes the crop of size×size.
func Margin(size int) int { return int(math.Round(float64(size) * 256 / 224)) }

// EvalSmall leaves an image of size×size as it is and makes others Resize(size) followed by
// CenterCrop(size): evaluation on small images, which the network sees whole.
func EvalSmall(size int) Transform { return ResizeCenterCrop(size, size, imaging.Bilinear) }

// ResizeCenterCrop resizes the shorter side of an image, then takes the crop of size×size at its centre.
func ResizeCenterCrop(size, shorter int, how imaging.Interpolation) Transform {
	return resizeCenterCrop{fixed(size), shorter, how}
}

// fixed is the Size of a transform.
type fixed int

func (s fixed) Size() int { return int(s) }

func whole(width, height int) image.Rectangle { return image.Rect(0, 0, width, height) }

type randomResizedCrop struct {
	fixed
	scale, ratio  [2]float64
	interpolation string // as Options.Interpolation
}

func (t randomResizedCrop) String() string {
	return fmt.Sprintf("random resized crop to %d, flip", t.fixed)
}

func (t randomResizedCrop) Region(width, height int, r *random.Rand) image.Rectangle {
	const tries = 10
	minArea, maxArea, minRatio, maxRatio := t.scale[0], t.scale[1], t.ratio[0], t.ratio[1]
	area := float64(width) * float64(height)
	for range tries {
		target := area * r.Uniform(minArea, maxArea)
		ratio := math.Exp(r.Uniform(math.Log(minRatio), math.Log(maxRatio)))
		w := int(math.RoundToEven(math.Sqrt(target * ratio)))
		h := int(math.RoundToEven(math.Sqrt(target / ratio)))
		if 0 < w && w <= width && 0 < h && h <= height {
			top := r.IntN(height - h + 1)
			left := r.IntN(width - w + 1)
			return image.Rect(left, top, left+w, top+h)
		}
	}
	w, h := width, height
	switch ratio := float64(width) / float64(height); {
	case ratio < minRatio:
		h = min(height, max(1, int(math.RoundToEven(float64(w)/minRatio))))
	case ratio > maxRatio:
		w = min(width, max(1, int(math.RoundToEven(float64(h)*maxRatio))))
	}
	top, left := (height-h)/2, (width-w)/2
	return image.Rect(left, top, left+w, top+h)
}

func (t randomResizedCrop) Apply(dst []uint8, img *imaging.Image, r *random.Rand, s *Scratch) (Crop, error) {
	flip := r.IntN(2) == 1
	s.Resizer.Interpolation = imaging.Bilinear
	switch t.interpolation {
	case "":
	case randomly:
		s.Resizer.Interpolation = []imaging.Interpolation{imaging.Bilinear, imaging.Bicubic}[r.IntN(2)]
	default:
		s.Resizer.Interpolation, _ = imaging.ParseInterpolation(t.interpolation)
	}
	if err := s.Resizer.Resize(&s.resized, img, img.Bounds(), t.Size(), t.Size()); err != nil {
		return Crop{}, err
	}
	copy(dst, s.resized.Pix)
	return Crop{Flip: flip}, nil
}

type paddedCrop struct {
	fixed
	pad int
}

func (t paddedCrop) String() string {
	return fmt.Sprintf("random crop of %d padded by %d, flip", t.fixed, t.pad)
}

func (t paddedCrop) Region(width, height int, _ *random.Rand) image.Rectangle {
	return whole(width, height)
}

func (t paddedCrop) Apply(dst []uint8, img *imaging.Image, r *random.Rand, s *Scratch) (Crop, error) {
	c := Crop{Top: r.IntN(2*t.pad+1) - t.pad, Left: r.IntN(2*t.pad+1) - t.pad, Flip: r.IntN(2) == 1}
	_, err := EvalSmall(t.Size()).Apply(dst, img, r, s)
	return c, err
}

type resizeCenterCrop struct {
	fixed
	shorter       int // the shorter side after resizing
	interpolation imaging.Interpolation
}

func (t resizeCenterCrop) String() string {
	how := ""
	if t.interpolation != imaging.Bilinear {
		how = fmt.Sprintf(" (%v)", t.interpolation)
	}
	return fmt.Sprintf("resize to %d%s, centre crop of %d", t.shorter, how, t.fixed)
}

func (t resizeCenterCrop) Region(width, height int, _ *random.Rand) image.Rectangle {
	return whole(width, height)
}

func (t resizeCenterCrop) Apply(dst []uint8, img *imaging.Image, _ *random.Rand, s *Scratch) (Crop, error) {
	size := t.Size()
	if t.shorter == size && img.Width == size && img.Height == size {
		if err := img.Make(); err != nil {
			return Crop{}, err
		}
		copy(dst, img.Pix)
		return Crop{}, nil
	}
	s.Resizer.Interpolation = t.interpolation
	if err := s.Resizer.ResizeCenterCrop(&s.resized, img, t.shorter, size, size); err != nil {
		return Crop{}, err
	}
	copy(dst, s.resized.Pix)
	return Crop{}, nil
}
