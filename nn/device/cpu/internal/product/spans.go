package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// span is the pixels of a tile of registers, as offsets in elements from the first pixel of the block.
type span struct {
	rows         int
	a, c         int
	jumpA, jumpC int  // of the pixels from kern.Half on
	reach        taps // taps outside the padding above and below
}

// taps is a range of offsets of a target.
type taps struct{ first, count int }

// spans cuts the pixels of a block into tiles of registers.
func (t *tiled) spans(g *tiledTarget, e extent) []span {
	if len(g.taps) == 0 {
		return nil
	}
	var list []span
	stepA, stepC := g.right*g.stride, t.stepC(g)
	line := func(a, c, pixels int, reach taps) {
		parts := work.Ceil(pixels, t.set.Rows)
		for k := range parts {
			x, end := k*pixels/parts, (k+1)*pixels/parts
			list = append(list, span{end - x, a + x*stepA, c + x*stepC, kern.Half * stepA, kern.Half * stepC, reach})
		}
	}
	if g.contiguous() && (t.made != nil || g.to.whole(t.product)) {
		line(0, 0, e.images*e.lines*g.width, taps{0, len(g.offs)})
		return list
	}
	pairs := g.width == kern.Half && t.set.Rows == 2*kern.Half
	single := map[taps]int{} // spans of one line that wait for another one
	for n := range e.images {
		for i := range e.lines {
			a, c := g.at(n, i, 0), (n*t.dstH+i*g.to.stepH)*t.dstW*t.dstC
			if t.made != nil {
				c = (n*e.lines + i) * g.width * stepC
			}
			reach := g.reach(e.line + i)
			if k, ok := single[reach]; ok {
				s := &list[k]
				s.rows, s.jumpA, s.jumpC = 2*kern.Half, a-s.a, c-s.c
				delete(single, reach)
				continue
			}
			if pairs {
				single[reach] = len(list)
			}
			line(a, c, g.width, reach)
		}
	}
	return list
}

// reach is the taps of g inside the source for a line of the grid, at least one.
func (g *tiledTarget) reach(line int) taps {
	r := taps{count: len(g.offs)}
	outside := func(k int) bool {
		row := line*g.rowStep + g.taps[k*g.run].row
		return row < 0 || row >= g.srcH
	}
	for r.count > 1 && outside(r.first) {
		r.first++
		r.count--
	}
	for r.count > 1 && outside(r.first+r.count-1) {
		r.count--
	}
	return r
}
