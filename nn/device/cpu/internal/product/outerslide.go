package product

import (
	"onlinerna/nn/device/cpu/internal/work"
)

// An outer with stride 1 need not gather a row for each tap. In a transposed band of the padded source, the pixels
// under any tap are those under the first one, shifted by a constant. The result's band has lines of the same length,
// padded with zeros, and the sum runs over all of it.

// slides reports whether sliding pays: the wasted sums over the padding must cost less than gathering.
func (o *outer) slides() bool {
	last := o.taps[len(o.taps)-1]
	padding := last.col - o.taps[0].col
	const gather = 7 // time to gather an element, in multiplications
	return len(o.taps) > 1 && o.rowStep == 1 && o.colStep == 1 && padding*o.rows <= gather*o.width
}

// bands cuts the images of a grid into bands of lines.
type bands struct {
	lines         int // of a band; the last one of an image may have fewer
	each, count   int // bands of an image, and of all
	row, col      int // the first tap
	above, beside int // additional lines and columns of the source's band
	width         int // columns of both bands: with padding
	stride        int // of the rows of the transposed source and result
}

func newBands(o *outer) bands {
	first, last := o.taps[0], o.taps[len(o.taps)-1]
	b := bands{row: first.row, col: first.col, above: last.row - first.row, beside: last.col - first.col}
	b.width = o.width + b.beside
	b.lines = min(o.height, work.Ceil(outerPixels+outerPixels/2, b.width))
	b.each = work.Ceil(o.height, b.lines)
	b.count = o.images * b.each
	b.stride = work.Ceil(b.source(b.lines), 16)*16 + 16
	return b
}

// source is the number of pixels of the source's band, padding included, over the given lines of the grid.
func (b *bands) source(lines int) int { return (lines + b.above) * b.width }

// sliding computes a block from a transposed band of a.
func (o *outerKernel) sliding(worker, block int) {
	b, s := &o.blocks[block], &o.bands
	left, right, offsets := o.left[worker], o.right[worker], o.offsets[worker]
	if b.from == b.to {
		for t := range o.taps {
			for i := range b.kn {
				clear(o.tile(b, t*o.channels+b.k+i)[:b.n])
			}
		}
	}
	for u := b.from; u < b.to; u++ {
		n, i := u/s.each, u%s.each*s.lines
		lines := min(s.lines, o.height-i)

		pixels := offsets[:s.source(lines)]
		frame(pixels, s.width, n, i+s.row, s.col, o.srcH, o.srcW)
		transpose(left, s.stride, o.a[b.group*o.channels+b.k:], o.srcC, o.zeros[:b.kn], pixels)
		o.round(left, s.stride, b.kn, len(pixels))

		pixels = offsets[:lines*s.width]
		frame(pixels, s.width, n, i, 0, o.height, o.width)
		transpose(right, s.stride, o.b[b.group*o.rows+b.row:], o.columns, o.zeros[:b.n], pixels)
		o.round(right, s.stride, b.n, len(pixels))

		for t, tap := range o.taps {
			at := (tap.row-s.row)*s.width + tap.col - s.col
			gemm(b.kn, b.n, len(pixels)-s.beside, left[at:], s.stride, right, s.stride, o.tile(b, t*o.channels+b.k), o.columns,
				u > b.from)
		}
	}
}

// frame numbers the pixels of image n in lines of the given width, from row and col on, with -1 outside the image.
func frame(dst []int32, width, n, row, col, height, imageWidth int) {
	for len(dst) > 0 {
		line := dst[:width]
		dst = dst[width:]
		for j := range line {
			line[j] = -1
			if uint(row) < uint(height) && uint(col+j) < uint(imageWidth) {
				line[j] = int32((n*height+row)*imageWidth + col + j)
			}
		}
		row++
	}
}
