package product

import (
	"math"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// framedLines is the shape of a copy of some channels of the lines under a block, with zeros around them, so that all
// taps of all pixels lie inside.
type framedLines struct {
	*grid
	left, right int // columns of zeros
	top, span   int // the first source line under line 0 of the grid, and the lines under a line
	pitch       int // elements from a pixel to the next
}

// newFramedLines returns the shape under all grids together, which have the same steps and source.
func newFramedLines(grids []*grid, channels int) framedLines {
	f := framedLines{grid: grids[0], pitch: framePitch(channels), top: math.MaxInt}
	bottom := math.MinInt
	for _, g := range grids {
		left, right := g.beside()
		f.left, f.right = max(f.left, left), max(f.right, right)
		for _, t := range g.taps {
			f.top, bottom = min(f.top, t.row), max(bottom, t.row)
		}
	}
	f.span = bottom - f.top + 1
	return f
}

// framePitch is an odd number of cache lines: with an even one, the pixels of a line use only some of a cache's sets.
func framePitch(channels int) int {
	const line = 16
	return (work.Ceil(channels, line) | 1) * line
}

// line is the number of elements of a line, lines the number of lines under n lines of the grid.
func (f *framedLines) line() int       { return (f.left + f.srcW + f.right) * f.pitch }
func (f *framedLines) lines(n int) int { return (n-1)*f.rowStep + f.span }

// size is the number of elements under a block.
func (f *framedLines) size(c cut) int { return c.images * f.lines(c.lines) * f.line() }

// at is the place of a block's pixel, of image m, line i and column col, for a tap at row top and column 0.
func (f *framedLines) at(e extent, m, i, col int) int {
	return (m*f.lines(e.lines)+i*f.rowStep)*f.line() + (f.left+col*f.colStep)*f.pitch
}

// offset leads from the place of a pixel to that of its tap.
func (f *framedLines) offset(t tap) int { return (t.row-f.top)*f.line() + t.col*f.pitch }

// clearEnds clears the columns beside all lines; fill does not write them.
func (f *framedLines) clearEnds(to []float32) {
	for ; len(to) >= f.line(); to = to[f.line():] {
		clear(to[:f.left*f.pitch])
		clear(to[(f.left+f.srcW)*f.pitch : f.line()])
	}
}

// fill copies channels first to first+n under a block.
func (f *framedLines) fill(set *kern.Set, to, src []float32, e extent, first, n int) {
	line, lines := f.line(), f.lines(e.lines)
	for m := range e.images {
		for i := range lines {
			dst := to[(m*lines+i)*line:][:line]
			row := e.line*f.rowStep + f.top + i
			if row < 0 || row >= f.srcH {
				clear(dst)
				continue
			}
			from := src[((e.image+m)*f.srcH+row)*f.srcW*f.srcC+first:]
			_ = from[(f.srcW-1)*f.srcC+n-1]
			set.Copy(&dst[f.left*f.pitch], &from[0], f.srcW, n, 4*f.pitch, 4*f.srcC)
		}
	}
}

// fetch makes next prefetch the pixels under a block.
func (f *framedLines) fetch(next *ahead, src []float32, e extent, first, n int) {
	top := max(0, e.line*f.rowStep+f.top)
	end := min(f.srcH, e.line*f.rowStep+f.top+f.lines(e.lines))
	rows := (e.images-1)*f.srcH + end - top
	addRows(next, src, (e.image*f.srcH+top)*f.srcW*f.srcC+first, rows*f.srcW, n, f.srcC)
}
