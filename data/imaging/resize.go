package imaging

import (
	"fmt"
	"image"
	"slices"
	"strings"

	"onlinerna/data/imaging/internal/kern"
)

// Interpolation is a method of resampling.
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

// Resizer resamples as torchvision's Resize does on PIL images: bilinear (a triangle) or bicubic (Keys' kernel), with a
// support that grows with the reduction (antialias), first across, then down, or the other way where Pillow does, in
// its fixed point; or by the nearest pixel. It keeps its coefficients and its intermediate between calls. The zero
// value is ready, and bilinear; a Resizer is for one goroutine.
type Resizer struct {
	Interpolation Interpolation
	// Fast decodes an image opened by Decoder.Open at 1/2, 1/4 or 1/8 of its size if the resize reduces it by at
	// least as much, except to the nearest pixel, as PIL's draft and resize of the box. Pixels then differ from those
	// of a full decoding.
	Fast bool

	kernels      *kern.Set // nil: those of the default level
	across, down filter
	mid          []uint8 // the rows that the second pass needs, or the first pass if it goes down
	last         []uint8 // a row with padding after it
	line, out    []uint8 // rows of the result before and after the pass across, with padding after them
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

// ResizeCenterCrop is torchvision's Resize(size) followed by CenterCrop((height, width)), but computes only the
// pixels of the crop. If the crop is larger than the resized image, the rest is black.
func (r *Resizer) ResizeCenterCrop(dst, src *Image, size, width, height int) error {
	if err := checkResize(src, src.Bounds(), size, size); err != nil {
		return err
	}
	if width < 1 || height < 1 || !fits(width, height) {
		return fmt.Errorf("centre crop to %dx%d pixels: want at least 1x1 and at most %d pixels", width,
			height, MaxPixels)
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

// ShorterSize returns the size torchvision's Resize(size) gives an image of width×height: the shorter side becomes
// size, the longer one size·longer/shorter, rounded down.
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

// resample resizes box of src to width×height and writes the part inside window to the equally large rectangle at of
// dst. It processes rows of src one by one as they are decoded.
func (r *Resizer) resample(dst *Image, at image.Rectangle, src *Image, box image.Rectangle, width, height int,
	window image.Rectangle) error {
	if r.Interpolation == Nearest {
		if err := src.Make(); err != nil {
			return err
		}
		r.nearest(dst, at, src, box, width, height, window)
		return nil
	}
	rows := r.plan(src, box, width, height, window)
	if src.Channels == 3 {
		r.across.Prepare()
	}
	var err error
	// As Pillow since 13: older ones always resize across first, and differ by a level then.
	if less := r.down.In - height; less > 0 && less > 2*(r.across.In-width) {
		err = r.downFirst(dst, at, &rows)
	} else {
		err = r.acrossFirst(dst, at, &rows)
	}
	if err != nil {
		return err
	}
	return rows.close()
}

// acrossFirst resamples all rows across, and then down to those of the result.
func (r *Resizer) acrossFirst(dst *Image, at image.Rectangle, rows *rows) error {
	ch, set := dst.Channels, kern.Or(r.kernels)
	n := at.Dx() * ch
	top, bottom := rows.needed.Min.Y, rows.needed.Max.Y
	r.mid = kern.Grow(r.mid, (bottom-top+1)*n+kern.Slack)
	for y := top; y < bottom; y++ {
		in, err := rows.at(y)
		if err != nil {
			return err
		}
		r.across.apply(set, r.mid[(y-top)*n:], in, ch)
	}
	for y := range at.Dy() {
		to := ((at.Min.Y+y)*dst.Width + at.Min.X) * ch
		r.taps.Set(r.down.Taps(y))
		set.Down(dst.Pix[to:to+n], r.mid[(r.down.Start[y]-top)*n:], &r.taps)
	}
	return nil
}

// downFirst computes each row of the result from the rows it depends on, then resamples it across.
func (r *Resizer) downFirst(dst *Image, at image.Rectangle, rows *rows) error {
	ch, set := dst.Channels, kern.Or(r.kernels)
	x0, n := ch*rows.needed.Min.X, ch*rows.needed.Dx()
	most := 2*slices.Max(r.down.Count) + 8 // rows that are kept
	r.mid = kern.Grow(r.mid, (most+1)*n+kern.Slack)
	r.line, r.out = kern.Grow(r.line, ch*r.across.In+kern.Slack), kern.Grow(r.out, ch*at.Dx()+kern.Slack)
	base := rows.needed.Min.Y // the first row in mid
	for y, next := 0, base; y < at.Dy(); y++ {
		first := r.down.Start[y]
		for ; next < first+r.down.Count[y]; next++ {
			if next == base+most {
				copy(r.mid, r.mid[(first-base)*n:most*n])
				base = first
			}
			in, err := rows.at(next)
			if err != nil {
				return err
			}
			copy(r.mid[(next-base)*n:], in[x0:x0+n])
		}
		r.taps.Set(r.down.Taps(y))
		set.Down(r.line[x0:x0+n], r.mid[(first-base)*n:], &r.taps)
		r.across.apply(set, r.out, r.line, ch)
		copy(dst.Pix[((at.Min.Y+y)*dst.Width+at.Min.X)*ch:], r.out[:ch*at.Dx()])
	}
	return nil
}

// plan sets the filters and returns the source rows.
func (r *Resizer) plan(src *Image, box image.Rectangle, width, height int, window image.Rectangle) rows {
	by := r.reduction(src, box, width, height)
	how, in, origin := r.Interpolation, box.Size(), box.Min
	x0, y0, x1, y1 := 0., 0., float64(in.X), float64(in.Y)
	if d := src.later; d != nil {
		origin = origin.Add(d.box.Min)
		if by > 1 {
			d.jpeg.Scale(by)
			in = image.Pt(d.planes.Width, d.planes.Height)
			part := func(i int) float64 { return float64(i) / float64(by) }
			x0, y0, x1, y1 = part(origin.X), part(origin.Y), part(origin.X+box.Dx()), part(origin.Y+box.Dy())
			origin = image.Point{}
		}
	}
	r.across.set(how, in.X, x0, x1, width, window.Min.X, window.Max.X)
	r.down.set(how, in.Y, y0, y1, height, window.Min.Y, window.Max.Y)
	return rowsOf(src, origin, in.X, image.Rect(r.across.first(), r.down.first(), r.across.end(),
		r.down.end()), &r.last)
}

// reduction returns 2, 4 or 8 if the box may be decoded that much smaller, else 1.
func (r *Resizer) reduction(src *Image, box image.Rectangle, width, height int) int {
	for by := 8; r.Fast && src.later != nil && by > 1; by /= 2 {
		if box.Dx() >= by*width && box.Dy() >= by*height {
			return by
		}
	}
	return 1
}

// nearest resamples by the nearest pixel, which PIL finds by adding up the step between samples.
func (r *Resizer) nearest(dst *Image, at image.Rectangle, src *Image, box image.Rectangle, width, height int,
	window image.Rectangle) {
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
