package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// along returns the kernels of a depthwise o along whole lines, by the number of lines of taps, or nil.
func (o *outer) along(d Options) []func(*kern.TapArgs) {
	k := kern.TapsFor(d.Level).Along
	if d.BFloat16 || o.colStep >= len(k) || o.width < kern.AlongPixels || o.srcW != o.colStep*o.width ||
		!o.inThrees() || !o.centred() || len(o.taps)/kern.AlongTaps >= len(k[o.colStep]) {
		return nil
	}
	return k[o.colStep]
}

// centred reports whether the middle one of each kern.AlongTaps taps lies on the pixel itself: kernels of nine taps in
// a line have others, too.
func (o *outer) centred() bool {
	for i, t := range o.taps {
		if t.col != i%kern.AlongTaps-kern.AlongTaps/2 {
			return false
		}
	}
	return true
}

// lowerAlong is lowerDepthwise with kernels along whole lines.
func (o *outer) lowerAlong(kernels []func(*kern.TapArgs), d Options, r *work.Room, a, b,
	dst int) func(s *work.Storage) []work.Phase {
	size := len(o.taps) * o.columns
	blocks := lineBlocks(o.images*o.height, depthwiseCopies)
	copies := r.Floats(len(blocks) * size)
	line := o.srcW * o.srcC
	var offs [][2]int
	for _, t := range o.taps {
		offs = append(offs, [2]int{4 * (t.row*line + t.col*o.srcC), 4 * t.weight * o.columns})
	}
	next := []int{4 * o.rowStep * line, 4 * o.width * o.columns}
	return func(s *work.Storage) []work.Phase {
		x, dy, dw, sums := s.Floats(a), s.Floats(b), s.Floats(dst), s.Scratch(copies)
		if s.Err != nil {
			return nil
		}
		workers := make([]depthwiseWorker, d.Workers)
		run := func(worker, block int) {
			k, to := &workers[worker].args, sums[block*size:][:size]
			clear(to)
			*k = kern.TapArgs{Dst: &to[0], Src: &x[0], Channels: o.columns, Pixels: o.width, StepDst: 4 * o.columns,
				StepSrc: 4 * o.colStep * o.srcC, Next: &next[0]}
			for i := blocks[block].from; i < blocks[block].to; i++ {
				top := i % o.height * o.rowStep
				lo, hi := 0, len(o.taps)
				for lo < hi && top+o.taps[lo].row < 0 {
					lo += kern.AlongTaps
				}
				for lo < hi && top+o.taps[hi-1].row >= o.srcH {
					hi -= kern.AlongTaps
				}
				if lo < hi {
					k.Weights, k.Offs = &dy[i*o.width*o.columns], &offs[lo]
					k.At = 4 * (i/o.height*o.srcH + top) * line
					kernels[(hi-lo)/kern.AlongTaps](k)
				}
			}
		}
		sum := outerKernel{outer: o, size: size, splits: len(blocks), dst: dw, to: sums}
		return []work.Phase{{Blocks: len(blocks), Run: run}, {Blocks: work.Ceil(size, sumBlock), Run: sum.sum}}
	}
}
