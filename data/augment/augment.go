package augment

import (
	"fmt"
	"image"
	"math"
	"strings"

	"onlinerna/data/imaging"
	"onlinerna/data/random"
)

// Options are the augmentations applied to training images after the usual crop and flip, in this order: colour
// jitter, automatic augmentation, erasing. Each choice is a function of the loader's seed, the epoch and the image.
// The zero value changes nothing.
type Options struct {
	// of the box of a random resized crop: share of the area, and width by height; zero: 0.08 to 1, 3/4 to 4/3
	Scale, Ratio [2]float64
	// for that crop and for geometric operations: one of imaging.Interpolations, or random; default bilinear
	Interpolation string
	NoFlip        bool    // no image is mirrored left to right
	FlipVertical  float64 // probability
	// torchvision's ColorJitter: brightness, contrast, saturation and hue; trailing numbers may be left out
	Jitter []float64
	Policy string  // see Policies
	Erase  float64 // probability of torchvision's RandomErasing
	// mean of the pixels, from 0 to 1: fills erased pixels and, in timm's policies, the area outside an image
	Mean []float64
	// Whole makes the image as the network sees it, without a window, so that images can be mixed.
	Whole bool
}

// Check returns an error for an option out of range.
func (a *Options) Check() error {
	for _, r := range []struct {
		name string
		of   [2]float64
	}{{"crop scale", a.Scale}, {"crop ratio", a.Ratio}} {
		if lo, hi := r.of[0], r.of[1]; r.of != [2]float64{} && !(lo > 0 && lo <= hi && !math.IsInf(hi, 0)) {
			return fmt.Errorf("%s %g to %g: want two positive numbers, the smaller first", r.name, lo, hi)
		}
	}
	if a.Scale[1] > 1 {
		return fmt.Errorf("crop scale to %g: the largest is 1, the whole image", a.Scale[1])
	}
	if a.Interpolation != "" && a.Interpolation != randomly {
		if _, err := imaging.ParseInterpolation(a.Interpolation); err != nil {
			return fmt.Errorf("training %w, or %s", err, randomly)
		}
	}
	if !(a.FlipVertical >= 0 && a.FlipVertical <= 1) || !(a.Erase >= 0 && a.Erase <= 1) {
		return fmt.Errorf("vertical flip %g and random erasing %g are probabilities: from 0 to 1",
			a.FlipVertical, a.Erase)
	}
	if len(a.Jitter) > 4 {
		return fmt.Errorf("colour jitter has %d numbers: want brightness, contrast, saturation and hue", len(a.Jitter))
	}
	for i, v := range a.Jitter {
		if !(v >= 0) || math.IsInf(v, 0) || i == 3 && v > 0.5 {
			return fmt.Errorf("colour jitter %v: want numbers from 0 on, and a hue of at most 0.5", a.Jitter)
		}
	}
	_, err := parsePolicy(a.Policy)
	return err
}

// randomly chooses bilinear or bicubic interpolation at random, as timm does.
const randomly = "random"

// Interpolations lists the names that Options.Interpolation takes.
func Interpolations() []string { return append(imaging.Interpolations(), randomly) }

// changes reports whether any step changes pixels.
func (a *Options) changes() bool {
	return a.NoFlip || a.FlipVertical > 0 || len(a.Jitter) > 0 || a.Policy != "" || a.Erase > 0 || a.Whole
}

// augmented is a transform followed by the steps of Options.
type augmented struct {
	Transform
	Options
	policy policy
	how    imaging.Interpolation
	fill   []uint8
}

// With returns the transform followed by a.
func (a Options) With(t Transform) (Transform, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if c, ok := t.(randomResizedCrop); ok {
		if a.Scale != [2]float64{} {
			c.scale = a.Scale
		}
		if a.Ratio != [2]float64{} {
			c.ratio = a.Ratio
		}
		c.interpolation = a.Interpolation
		t = c
	} else if a.Scale != [2]float64{} || a.Ratio != [2]float64{} {
		return nil, fmt.Errorf("crop scale and ratio belong to the augmentation imagenet, not to: %v", t)
	}
	if !a.changes() {
		return t, nil
	}
	x := &augmented{Transform: t, Options: a}
	x.policy, _ = parsePolicy(a.Policy)
	if a.Interpolation != "" && a.Interpolation != randomly {
		x.how, _ = imaging.ParseInterpolation(a.Interpolation)
	} else {
		x.how = imaging.Nearest // torchvision's default, and timm's sign for either
	}
	for _, m := range a.Mean {
		x.fill = append(x.fill, uint8(min(255, math.RoundToEven(255*m))))
	}
	return x, nil
}

func (t *augmented) opensImages() bool { return OpensImages(t.Transform) }

func (t *augmented) String() string {
	list := []string{t.Transform.String()}
	if t.FlipVertical > 0 {
		list = append(list, fmt.Sprintf("vertical flip %g", t.FlipVertical))
	}
	if len(t.Jitter) > 0 {
		list = append(list, fmt.Sprintf("colour jitter %g", t.Jitter))
	}
	if t.Policy != "" {
		list = append(list, t.Policy)
	}
	if t.Erase > 0 {
		list = append(list, fmt.Sprintf("erasing %g", t.Erase))
	}
	return strings.Join(list, ", ")
}

// Apply implements Transform.
func (t *augmented) Apply(dst []uint8, img *imaging.Image, r *random.Rand, s *Scratch) (Crop, error) {
	c, err := t.Transform.Apply(dst, img, r, s)
	if err != nil {
		return c, err
	}
	if t.NoFlip {
		c.Flip = false
	}
	size, ch := t.Size(), img.Channels
	made := imaging.Image{Width: size, Height: size, Channels: ch, Pix: dst}
	if err := imaging.Crop(&s.work, &made, image.Rect(c.Left, c.Top, c.Left+size, c.Top+size)); err != nil {
		return c, err
	}
	m := &s.work
	if c.Flip {
		m.FlipHorizontal()
	}
	if t.FlipVertical > 0 && r.Float64() < t.FlipVertical {
		m.FlipVertical()
	}
	a := &s.operator
	a.how, a.fill = t.how, nil
	if len(t.Jitter) > 0 {
		t.jitter(m, a, r)
	}
	if t.policy != nil {
		if _, ok := t.policy.(timmRandom); ok && len(t.fill) == ch {
			a.fill = t.fill
		}
		if err := t.policy.apply(m, a, r); err != nil {
			return c, err
		}
	}
	if t.Erase > 0 && r.Float64() < t.Erase {
		t.erase(m, r)
	}
	copy(dst, m.Pix)
	return Crop{}, nil
}

// jitter is torchvision's ColorJitter: factors in a random order.
func (t *augmented) jitter(m *imaging.Image, a *operator, r *random.Rand) {
	var order [4]int32
	r.Perm(order[:])
	for _, k := range order {
		if int(k) >= len(t.Jitter) || t.Jitter[k] == 0 {
			continue
		}
		v := t.Jitter[k]
		if k == 3 {
			a.Hue(m, r.Uniform(-v, v))
			continue
		}
		factor := r.Uniform(max(0, 1-v), 1+v)
		[]func(*imaging.Image, float64){a.Brightness, a.Contrast, a.Color}[k](m, factor)
	}
}

// erase is torchvision's RandomErasing with its value 0, which is the mean of the pixels before they are normalised.
func (t *augmented) erase(m *imaging.Image, r *random.Rand) {
	area := float64(m.Width * m.Height)
	for range 10 {
		target := area * r.Uniform(.02, .33)
		ratio := math.Exp(r.Uniform(math.Log(.3), math.Log(3.3)))
		h, w := int(math.RoundToEven(math.Sqrt(target*ratio))), int(math.RoundToEven(math.Sqrt(target/ratio)))
		if h >= m.Height || w >= m.Width {
			continue
		}
		top, left := r.IntN(m.Height-h+1), r.IntN(m.Width-w+1)
		for y := top; y < top+h; y++ {
			row := m.Pix[(y*m.Width+left)*m.Channels:][:w*m.Channels]
			for i := range row {
				row[i] = 0
				if len(t.fill) == m.Channels {
					row[i] = t.fill[i%m.Channels]
				}
			}
		}
		return
	}
}
