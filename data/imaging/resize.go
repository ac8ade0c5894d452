package imaging

import (
	"errors"
	"image"
)

// Resizer resamples as torchvision's Resize does on PIL images: a bilinear (triangle) filter whose support
// grows with the reduction (antialias). It keeps its coefficients and its intermediate between calls.
// The zero value is ready; a Resizer is for one goroutine.
type Resizer struct {
}

// Resize writes the part of src inside box, resampled to width×height, to dst. It equals cropping to box first
// and then resizing (torchvision's resized_crop): no pixel outside box counts. The box must lie inside src.
// dst must not be src.
func (r *Resizer) Resize(dst, src *Image, box image.Rectangle, width, height int) error {
	return errors.New("resize: not written yet")
}

// ResizeShorter resizes the whole of src so that its shorter side is size: torchvision's Resize(size).
func (r *Resizer) ResizeShorter(dst, src *Image, size int) error {
	w, h := ShorterSize(src.Width, src.Height, size)
	return r.Resize(dst, src, src.Bounds(), w, h)
}

// ResizeCenterCrop is torchvision's Resize(size) followed by CenterCrop((height, width)), of which it computes only
// the pixels that are kept.
func (r *Resizer) ResizeCenterCrop(dst, src *Image, size, width, height int) error {
	return errors.New("resize: not written yet")
}

// ShorterSize returns the size torchvision's Resize(size) gives an image of width×height: the shorter side becomes size,
// the longer one size·longer/shorter, rounded down.
func ShorterSize(width, height, size int) (int, int) {
	if width <= height {
		return size, int(float64(size*height) / float64(width))
	}
	return int(float64(size*width) / float64(height)), size
}
