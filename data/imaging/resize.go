package imaging

import (
	"fmt"
	"image"
	"slices"
	"strings"

	"onlinerna/data/imaging/internal/kern"
)

// Interpolation is how an image is resampled.
type Interpolation uint8

// The interpolations, as PIL's of the same names.
const (
	Bilinear Interpolation = iota
	Bicubic
	Nearest
)

var interpolations = []string{"bilinear", "bicubic", "nearest"}

// Interpolations lists the names that ParseInterpolation knows.
func Interpolations() []string { return slices.Clone(interpolations) }

func (i Interpolation) String() string { return interpolations[i] }

// ParseInterpolation finds an interpolation by its name.
func ParseInterpolation(name string) (Interpolation, error) {
	if i := slices.Index(interpolations, name); i >= 0 {
		return Interpolation(i), nil
	}
	return 0, fmt.Errorf("unknown interpolation %q: use one of %s", name, strings.Join(interpolations, ", "))
}

// Resizer resamples as torchvision's Resize does on PIL images: bilinear (a triangle) or bicubic (Keys' kernel), with a support that
// grows with the reduction (antialias), first across, then down, in PIL's fixed point; or by the nearest pixel. It keeps its
// coefficients and its intermediate between calls. The zero value is ready, and bilinear; a Resizer is for one goroutine.
type Resizer struct {
	Interpolation Interpolation

	across, down filter
	mid          []uint8 // the rows that the second pass needs, resampled across
	last         []uint8 // a row with room behind it
	taps         kern.Taps
}

// Resize writes the part of src inside box, resampled to width×height, to dst. It equals cropping to box first
// and then resizing (torchvision's resized_crop): no pixel outside box counts. The box must lie inside src.
// dst must not be src.
func (r *Resizer) Resize(dst, src *Image, box image.Rectangle, width, height int) error {
	if err := checkResize(src, box, width, height); err != nil {
		return err
	}
	if !fits(width, height) {
		return fmt.Errorf("resize to %dx%d pixels: more than the limit of %d", width, height, MaxPixels)
	}
	dst.Reset(width, height, src.Channels)
	return r.resample(dst, dst.Bounds(), src, box, width, height, dst.Bounds())
}

// ResizeShorter resizes the whole of src so that its shorter side is size: torchvision's Resize(size).
func (r *Resizer) ResizeShorter(dst, src *Image, size int) error {
	if err := checkResize(src, src.Bounds(), size, size); err != nil {
		return err
	}
	w, h := ShorterSize(src.Width, src.Height, size)
	return r.Resize(dst, src, src.Bounds(), w, h)
}

// ResizeCenterCrop is torchvision's Resize(size) followed by CenterCrop((height, width)), of which it computes only
// the pixels that are kept. Where the crop is larger than the resized image, the rest is black.
func (r *Resizer) ResizeCenterCrop(dst, src *Image, size, width, height int) error {
	if err := checkResize(src, src.Bounds(), size, size); err != nil {
		return err
	}
	if width < 1 || height < 1 || !fits(width, height) {
		return fmt.Errorf("centre crop to %dx%d pixels: want at least 1x1 and at most %d pixels", width, height, MaxPixels)
	}
	w, h := ShorterSize(src.Width, src.Height, size)
	crop := CenterCropBox(w, h, width, height)
	kept := crop.Intersect(image.Rect(0, 0, w, h))
	dst.Reset(width, height, src.Channels)
	if kept != crop {
		clear(dst.Pix)
	}
	return r.resample(dst, kept.Sub(crop.Min), src, src.Bounds(), w, h, kept)
}

// ShorterSize returns the size torchvision's Resize(size) gives an image of width×height: the shorter side becomes size,
// the longer one size·longer/shorter, rounded down.
func ShorterSize(width, height, size int) (int, int) {
	if width <= height {
		return size, int(float64(size*height) / float64(width))
	}
	return int(float64(size*width) / float64(height)), size
}

func checkResize(src *Image, box image.Rectangle, width, height int) error {
	if src.later == nil {
		if err := src.check(); err != nil {
			return err
		}
	}
	if box.Empty() || !box.In(src.Bounds()) {
		return fmt.Errorf("resize: box %v is empty or not inside the image of %dx%d pixels", box, src.Width, src.Height)
	}
	if width < 1 || height < 1 {
		return fmt.Errorf("resize to %dx%d pixels: want at least 1x1", width, height)
	}
	return nil
}

func fits(width, height int) bool { return width <= MaxPixels/height }

// resample resizes box of src to width×height and writes the part of that inside window to the equally large
// rectangle at of dst. Rows of src go across one by one, once they are decoded.
func (r *Resizer) resample(dst *Image, at image.Rectangle, src *Image, box image.Rectangle, width, height int, window image.Rectangle) error {
	if r.Interpolation == Nearest {
		if err := src.Make(); err != nil {
			return err
		}
		r.nearest(dst, at, src, box, width, height, window)
		return nil
	}
	how := r.Interpolation
	r.across.set(how, box.Dx(), width, window.Min.X, window.Max.X)
	r.down.set(how, box.Dy(), height, window.Min.Y, window.Max.Y)

	ch := src.Channels
	n := window.Dx() * ch
	rows := rowsOf(src, box, image.Rect(r.across.first(), r.down.first(), r.across.end(), r.down.end()), &r.last)
	top, bottom := r.down.first(), r.down.end()
	set := kern.Current()
	if ch == 3 {
		r.across.Prepare()
	}
	r.mid = grow(r.mid, (bottom-top+1)*n+kern.Slack)
	for y := top; y < bottom; y++ {
		in, err := rows.at(y)
		if err != nil {
			return err
		}
		out := r.mid[(y-top)*n:]
		if ch == 1 {
			r.across.gray(out[:n], in[:box.Dx()])
			continue
		}
		set.Across(out, in, &r.across.Filter)
	}
	for y := range window.Dy() {
		to := ((at.Min.Y+y)*dst.Width + at.Min.X) * ch
		r.taps.Set(r.down.Taps(y))
		set.Down(dst.Pix[to:to+n], r.mid[(r.down.Start[y]-top)*n:], &r.taps)
	}
	return rows.close()
}

// nearest is resample by the nearest pixel, as PIL finds it: by adding up the step between samples.
func (r *Resizer) nearest(dst *Image, at image.Rectangle, src *Image, box image.Rectangle, width, height int, window image.Rectangle) {
	x, y := nearestOf(box.Dx(), width), nearestOf(box.Dy(), height)
	ch := src.Channels
	for j := range window.Dy() {
		from := src.Pix[((box.Min.Y+y[window.Min.Y+j])*src.Width+box.Min.X)*ch:]
		to := dst.Pix[((at.Min.Y+j)*dst.Width+at.Min.X)*ch:]
		for i := range window.Dx() {
			k := x[window.Min.X+i] * ch
			copy(to[i*ch:(i+1)*ch], from[k:k+ch])
		}
	}
}

// nearestOf lists for each of out samples the nearest of in.
func nearestOf(in, out int) []int {
	list := make([]int, out)
	step := float64(in) / float64(out)
	at := float64(step * 0.5)
	for i := range list {
		list[i] = min(int(at), in-1)
		at += step
	}
	return list
}
