package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// linesUnder is the shape of the lines of a source under a line of a grid: in the source itself, or in copies, which
// may be rounded to bfloat16 and have zeros at both ends, so that all pixels lie under all taps. Line r is copied to
// place r modulo span.
type linesUnder struct {
	*grid
	copied, rounded bool
	left, right     int // columns of zeros
	top, span       int // the source lines under line 0 of the grid
	parts           []stretch
	under           [][]partTaps // by place of the first line, which is 0 for the source itself, and by part
}

// stretch is a range of pixels of a line that lie under the same taps.
type stretch struct{ from, to int }

// partTaps are the taps of a part of a line, row by row, as offsets in bytes: from the first of the lines, and of their
// weights.
type partTaps struct {
	offs  [][2]int
	above []int // by row, the number of taps above it
	next  []int // offsets of the pixels that are new in the next line of the grid; then 0
	nexts int
}

// rows is the taps of rows lo to hi.
func (p *partTaps) rows(lo, hi int) [][2]int { return p.offs[p.above[lo]:p.above[hi]] }

// lineTail is room behind a line for a partial last vector.
const lineTail = 16

// newLinesUnder returns the lines under a grid. The weights of its taps are weight elements apart. If rounded is set,
// the lines are rounded to bfloat16. Copying a pixel takes the time of as many taps as copying says.
func newLinesUnder(g *grid, weight int, rounded bool, copying int) *linesUnder {
	x := &linesUnder{grid: g, rounded: rounded, parts: g.stretches()}
	if x.copied = rounded || g.framePays(copying); x.copied {
		x.left, x.right = g.beside()
		x.parts = []stretch{{0, g.width}}
	}
	if len(g.taps) > 0 {
		x.top = g.taps[0].row
		bottom := x.top
		for _, t := range g.taps {
			x.top, bottom = min(x.top, t.row), max(bottom, t.row)
		}
		x.span = bottom - x.top + 1
	}
	places := 1
	if x.copied {
		places = x.span
	}
	for place := range places {
		var list []partTaps
		for _, part := range x.parts {
			list = append(list, x.tapsOf(part, place, weight))
		}
		x.under = append(x.under, list)
	}
	return x
}

// tapsOf is the taps under part if the first line is at the given place.
func (x *linesUnder) tapsOf(part stretch, place, weight int) (p partTaps) {
	for row := range x.span + 1 {
		p.above = append(p.above, len(p.offs))
		for _, t := range x.taps {
			if col := part.from*x.colStep + t.col; t.row == x.top+row && col >= -x.left && col < x.srcW+x.right {
				at := t.row * x.stride()
				if x.copied {
					at = (place + row) % x.span * x.stride()
				}
				p.offs = append(p.offs, [2]int{4 * (at + (x.left+col)*x.srcC), 4 * t.weight * weight})
			}
		}
	}
	for row := range x.rowStep {
		for col := range x.colStep {
			at := (x.top+x.span+row)*x.stride() + (part.from*x.colStep+col)*x.srcC
			p.next = append(p.next, 4*at)
		}
	}
	if p.nexts = len(p.next); x.copied {
		p.nexts = 0
		clear(p.next)
	}
	p.next = append(p.next, 0)
	return p
}

// beside is the number of columns outside the source, at both ends of a line, that lie under taps.
func (g *grid) beside() (left, right int) {
	for _, t := range g.taps {
		left, right = max(left, -t.col), max(right, (g.width-1)*g.colStep+t.col-(g.srcW-1))
	}
	return left, right
}

// framePays reports whether copies of the lines with zeros at both ends, under all taps, take less time than pixels at
// the ends under some of the taps.
func (g *grid) framePays(copying int) bool {
	ends := g.width
	for _, s := range g.stretches() {
		if s.to > s.from+1 {
			ends -= s.to - s.from
		}
	}
	return ends*len(g.taps) > copying*g.srcW
}

// stretches cuts the lines of g: pixels whose taps all lie inside the source's columns form one stretch, every other
// pixel one of its own.
func (g *grid) stretches() (list []stretch) {
	lo, hi := 0, g.width
	for _, t := range g.taps {
		lo = max(lo, work.Ceil(max(0, -t.col), g.colStep))
		hi = min(hi, work.Floor(g.srcW-1-t.col, g.colStep)+1)
	}
	if hi <= lo {
		lo, hi = g.width, g.width
	}
	for j := range lo {
		list = append(list, stretch{j, j + 1})
	}
	if lo < hi {
		list = append(list, stretch{lo, hi})
	}
	for j := hi; j < g.width; j++ {
		list = append(list, stretch{j, j + 1})
	}
	return list
}

// stride is the distance between lines.
func (x *linesUnder) stride() int {
	if x.copied {
		return (x.left+x.srcW+x.right)*x.srcC + lineTail
	}
	return x.srcW * x.srcC
}

// room is the number of elements of copies, for a worker.
func (x *linesUnder) room() int {
	if !x.copied {
		return 0
	}
	return x.span * x.stride()
}

// lines are a worker's lines under those of a grid. It copies each line once while it goes down an image.
type lines struct {
	*linesUnder
	src   *work.Pieces
	copy  []float32
	image int // of the copies; -1 before the first
	next  int // lines of the image before next are copied, or no longer needed
}

// to sets the source of a: the lines under line i of an image, and their taps; rows lo to hi of them are inside the
// source.
func (x *lines) to(a *kern.TapArgs, image, i int) (parts []partTaps, lo, hi int) {
	row := i*x.rowStep + x.top
	lo = min(max(0, -row), x.span)
	hi = max(lo, min(x.span, x.srcH-row))
	a.StepSrc = 4 * x.colStep * x.srcC
	if !x.copied {
		a.Src, a.At = &x.src.All()[0], 4*(image*x.srcH+i*x.rowStep)*x.stride()
		return x.under[0], lo, hi
	}
	if x.span == 0 {
		return nil, 0, 0
	}
	x.fill(image, row)
	a.Src, a.At = &x.copy[0], 0
	return x.under[(row%x.span+x.span)%x.span], lo, hi
}

// fill copies the lines of an image from row on.
func (x *lines) fill(image, row int) {
	width, from := x.srcW*x.srcC, x.left*x.srcC
	if x.image < 0 {
		for i := range x.span {
			line := x.copy[i*x.stride():][:x.stride()]
			clear(line[:from])
			clear(line[from+width:])
		}
	}
	if x.image != image {
		x.image, x.next = image, 0
	}
	for x.next = max(x.next, row); x.next < min(row+x.span, x.srcH); x.next++ {
		to, at := x.copy[x.next%x.span*x.stride()+from:], (image*x.srcH+x.next)*width
		if x.rounded {
			copyRounded(to, x.src, at, width)
			clear(to[width:][:lineTail])
		} else {
			copy(to, x.src.All()[at:][:width])
		}
	}
}

// copyRounded copies elements, rounded to bfloat16. It writes whole vectors.
func copyRounded(dst []float32, src *work.Pieces, from, n int) {
	src.Copy(dst, n, from, 1, n, n)
	if src.Stored() == nil {
		kern.RoundAll(dst[:n])
	}
}
