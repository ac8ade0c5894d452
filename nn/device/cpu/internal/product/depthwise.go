package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// A depthwise convolution has a group for each channel. Its channels lie side by side in the source, the weights and
// the result, so its kernels run along channels, a line of pixels at a time: see kern.Taps.

// depthwise reports whether p is a depthwise convolution or its gradient with respect to the input.
func (p *product) depthwise() bool {
	return p.groups > 1 && p.rows == 1 && p.grids[0].channels == 1 && p.groups == p.dstC && p.weightGroup == 1
}

// depthwise reports whether o is a depthwise convolution's gradient with respect to the weights.
func (o *outer) depthwise() bool { return o.groups > 1 && o.rows == 1 && o.channels == 1 }

// stretch is a range of pixels of a line that lie under the same taps.
type stretch struct{ from, to int }

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

// within calls f for the taps inside the source at pixel j of line i of image n, with the byte offset of each tap's
// pixel in the source.
func (g *grid) within(n, i, j int, f func(t tap, bytes int)) {
	for _, t := range g.taps {
		row, col := i*g.rowStep+t.row, j*g.colStep+t.col
		if row >= 0 && row < g.srcH && col >= 0 && col < g.srcW {
			f(t, 4*((n*g.srcH+row)*g.srcW+col)*g.srcC)
		}
	}
}

// lineBlock is a range of lines of a grid, counted through all images.
type lineBlock struct{ grid, from, to int }

// lineBlocks cuts lines into about count ranges.
func lineBlocks(grid, lines, count int) (list []lineBlock) {
	size := max(1, work.Ceil(lines, count))
	for from := 0; from < lines; from += size {
		list = append(list, lineBlock{grid, from, min(from+size, lines)})
	}
	return list
}

// lowerDepthwise is lower for a depthwise p.
func (p *product) lowerDepthwise(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	var blocks []lineBlock
	stretches := make([][]stretch, len(p.grids))
	for i := range p.grids {
		g := &p.grids[i]
		blocks = append(blocks, lineBlocks(i, g.images*g.height, 2*d.blocks())...)
		stretches[i] = g.stretches()
	}
	zeros := r.Floats(p.dstC)
	return func(s *work.Storage) []work.Phase {
		x, w, y, init := s.Floats(src), s.Floats(weights), s.Floats(dst), s.Scratch(zeros)
		if s.Err != nil {
			return nil
		}
		if bias >= 0 {
			init = s.Floats(bias)
		}
		run := kern.TapsFor(d.Level).Products
		args := make([]kern.TapArgs, d.Workers)
		offs := make([][][2]int, d.Workers)
		lines := func(worker, block int) {
			b := blocks[block]
			g, a := &p.grids[b.grid], &args[worker]
			*a = kern.TapArgs{Src: &x[0], Weights: &w[0], Init: &init[0], Channels: p.dstC,
				StepDst: 4 * g.stepW * p.dstC, StepSrc: 4 * g.colStep * g.srcC}
			for line := b.from; line < b.to; line++ {
				n, i := line/g.height, line%g.height
				for _, part := range stretches[b.grid] {
					list := offs[worker][:0]
					g.within(n, i, part.from, func(t tap, bytes int) {
						list = append(list, [2]int{bytes, 4 * t.weight * p.weightTap})
					})
					offs[worker] = list
					at := ((n*p.dstH+i*g.stepH+g.offH)*p.dstW + part.from*g.stepW + g.offW) * p.dstC
					if len(list) == 0 {
						for j := range part.to - part.from {
							copy(y[at+j*g.stepW*p.dstC:][:p.dstC], init)
						}
						continue
					}
					a.Dst, a.Offs, a.Taps, a.Pixels = &y[at], &list[0], len(list), part.to-part.from
					run(a)
				}
			}
		}
		phases := []work.Phase{{Blocks: len(blocks), Run: lines}}
		if bias < 0 {
			phases = append([]work.Phase{{Blocks: 1, Run: func(int, int) { clear(init) }}}, phases...)
		}
		return phases
	}
}

// depthwiseCopies is the number of line ranges that are summed separately and then added.
const depthwiseCopies = 32

// lowerDepthwise is lower for a depthwise o.
func (o *outer) lowerDepthwise(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	size := len(o.taps) * o.columns
	blocks, stretches := lineBlocks(0, o.images*o.height, depthwiseCopies), o.stretches()
	copies := r.Floats(len(blocks) * size)
	return func(s *work.Storage) []work.Phase {
		x, dy, dw, sums := s.Floats(a), s.Floats(b), s.Floats(dst), s.Scratch(copies)
		if s.Err != nil {
			return nil
		}
		kernels := kern.TapsFor(d.Level).Sums
		args := make([]kern.TapArgs, d.Workers)
		offs := make([][][2]int, d.Workers)
		lines := func(worker, block int) {
			k, to := &args[worker], sums[block*size:][:size]
			clear(to)
			*k = kern.TapArgs{Src: &x[0], Dst: &to[0], Channels: o.columns, StepDst: 4 * o.columns,
				StepSrc: 4 * o.colStep * o.srcC}
			for line := blocks[block].from; line < blocks[block].to; line++ {
				n, i := line/o.height, line%o.height
				for _, part := range stretches {
					list := offs[worker][:0]
					o.within(n, i, part.from, func(t tap, bytes int) {
						list = append(list, [2]int{bytes, 4 * t.weight * o.columns})
					})
					offs[worker] = list
					k.Weights, k.Pixels = &dy[(line*o.width+part.from)*o.columns], part.to-part.from
					for len(list) > 0 {
						k.Taps = min(len(list), len(kernels)-1)
						k.Offs = &list[0]
						kernels[k.Taps](k)
						list = list[k.Taps:]
					}
				}
			}
		}
		sum := outerKernel{outer: o, size: size, splits: len(blocks), dst: dw, to: sums}
		return []work.Phase{{Blocks: len(blocks), Run: lines}, {Blocks: work.Ceil(size, sumBlock), Run: sum.sum}}
	}
}
