package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/nhwc"
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
// pixel in x.
func (x *lines) within(n, i, j int, f func(t tap, bytes int)) {
	for _, t := range x.taps {
		row, col := i*x.rowStep+t.row, j*x.colStep+t.col
		if row >= 0 && row < x.srcH && col >= 0 && col < x.srcW {
			f(t, 4*(x.at(n, row)+col*x.srcC))
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

// channelwise runs a depthwise product, with an epilogue for each block of lines.
type channelwise struct {
	*product
	epilogue
}

func newChannelwise(p *product) *channelwise { return &channelwise{p, epilogue{other: -1}} }

func (c *channelwise) end() *epilogue { return &c.epilogue }

// endable reports whether an epilogue can follow a depthwise p: its result is one grid, in float32.
func (p *product) endable(d Options) bool {
	return p.depthwise() && !d.BFloat16 && len(p.grids) == 1 && p.grids[0].whole(p)
}

// cachedLines is the number of elements of a block that an epilogue follows: they stay in the second level cache.
const cachedLines = 1 << 15

const leastBlocks = 64

func (c *channelwise) lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	p := c.product
	var blocks []lineBlock
	stretches := make([][]stretch, len(p.grids))
	room, width, taps := 0, 0, 0
	for i := range p.grids {
		g := &p.grids[i]
		count, lines := 2*d.blocks(), g.images*g.height
		if !d.BFloat16 { // sums over blocks have the same bits for any number of workers
			count = max(leastBlocks, work.Ceil(lines, max(1, cachedLines/(g.width*p.dstC))))
		}
		blocks = append(blocks, lineBlocks(i, lines, count)...)
		stretches[i] = g.stretches()
		room, width = max(room, g.lineRoom()), max(width, g.width*p.dstC)
		for _, t := range g.taps {
			taps = max(taps, t.weight+1)
		}
	}
	c.epilogue.lower(r, d.Workers, p.groups, nhwc.RowsWith(p.grids[0].pixels(), p.dstC, 1), len(blocks))
	zeros := r.Floats(p.dstC)
	var made work.Part // the weights that are multiplied
	var rooms, lines []work.Part
	if d.BFloat16 || c.norm != nil {
		made = r.Floats(max(1, taps) * p.weightTap)
	}
	if d.BFloat16 {
		rooms, lines = r.Each(d.Workers, room), r.Each(d.Workers, width)
	}
	return func(s *work.Storage) []work.Phase {
		x, w, y, init := s.Pieces(src), s.Floats(weights), s.Pieces(dst), s.Scratch(zeros)
		if s.Err != nil {
			return nil
		}
		k := depthwise{product: p, stretches: stretches, blocks: blocks, run: kern.TapsFor(d.Level).Products,
			x: x, y: y, relu: c.relu, rooms: s.Scratches(rooms), made: s.Scratches(lines)}
		before, after := c.epilogue.bind(s, &k.boundEpilogue, p, 1)
		if s.Err != nil {
			return nil
		}
		var b []float32
		if bias >= 0 {
			b = s.Floats(bias)
		}
		from := w
		if d.BFloat16 || c.norm != nil {
			w = s.Scratch(made)
		}
		before = append(before, work.One(func() {
			clear(init)
			copy(init, b)
			switch {
			case k.gain != nil:
				for t := range len(w) / p.weightTap {
					k.vectors.Mul(w[t*p.weightTap:][:p.weightTap], from[t*p.weightTap:][:p.weightTap], k.gain)
				}
				k.vectors.Mul(init, init, k.gain)
				k.vectors.Add(init, init, k.shift)
			case d.BFloat16:
				copy(w, from)
				kern.RoundAll(w)
			}
		})...)
		k.w, k.init, k.workers = w, init, make([]depthwiseWorker, d.Workers)
		return append(append(before, work.Phase{Blocks: len(blocks), Run: k.block}), after...)
	}
}

// depthwise is a bound product of a depthwise convolution.
type depthwise struct {
	*product
	stretches   [][]stretch // by grid
	blocks      []lineBlock
	run         func(*kern.TapArgs)
	x, y        *work.Pieces
	w, init     []float32
	relu        bool
	rooms, made [][]float32 // by worker; none if the source is read in place
	workers     []depthwiseWorker
	boundEpilogue
}

// depthwiseWorker is the state of a worker.
type depthwiseWorker struct {
	args kern.TapArgs
	offs [][2]int
}

// block computes a block.
func (k *depthwise) block(worker, block int) {
	b, state := k.blocks[block], &k.workers[worker]
	g, a := &k.grids[b.grid], &state.args
	x := newLines(&g.grid, k.x, k.rooms, worker)
	step := g.stepW * k.dstC // from a pixel to the next
	stored := k.y.Stored() != nil
	if stored {
		step = k.dstC
	}
	*a = kern.TapArgs{Src: x.first(), Weights: &k.w[0], Init: &k.init[0], Channels: k.dstC,
		StepDst: 4 * step, StepSrc: 4 * g.colStep * g.srcC}
	for line := b.from; line < b.to; line++ {
		n, i := line/g.height, line%g.height
		x.fill(n, i)
		at := ((n*k.dstH+i*g.stepH+g.offH)*k.dstW + g.offW) * k.dstC
		var y []float32
		if stored {
			y = k.made[worker]
		} else {
			y = k.y.All()[at:]
		}
		for _, part := range k.stretches[b.grid] {
			list := state.offs[:0]
			x.within(n, i, part.from, func(t tap, bytes int) {
				list = append(list, [2]int{bytes, 4 * t.weight * k.weightTap})
			})
			state.offs = list
			if len(list) == 0 {
				for j := part.from; j < part.to; j++ {
					copy(y[j*step:][:k.dstC], k.init)
				}
				continue
			}
			a.Dst, a.Offs, a.Taps, a.Pixels = &y[part.from*step], &list[0], len(list), part.to-part.from
			k.run(a)
		}
		if stored {
			k.y.Store(y, step, at, g.width, k.dstC, g.stepW*k.dstC)
		}
	}
	if !k.relu && k.then == nil && k.add == nil {
		return
	}
	size := g.width * k.dstC
	at, all := b.from*size, k.y.All()[b.from*size:b.to*size]
	if k.relu {
		k.vectors.ReLU(all, all)
	}
	k.endColumns(worker, block, 0, k.dstC, at, k.dstC, (b.to-b.from)*g.width, all, k.dstC)
}

// depthwiseCopies is the number of line ranges that are summed separately and then added.
const depthwiseCopies = 32

// lowerDepthwise is lower for a depthwise o.
func (o *outer) lowerDepthwise(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	size := len(o.taps) * o.columns
	blocks, stretches := lineBlocks(0, o.images*o.height, depthwiseCopies), o.stretches()
	copies := r.Floats(len(blocks) * size)
	var rooms, grads []work.Part
	if d.BFloat16 {
		rooms, grads = r.Each(d.Workers, o.lineRoom()), r.Each(d.Workers, o.width*o.columns+lineTail)
	}
	return func(s *work.Storage) []work.Phase {
		from, dy, dw, sums := s.Pieces(a), s.Pieces(b), s.Floats(dst), s.Scratch(copies)
		rooms, grads := s.Scratches(rooms), s.Scratches(grads)
		if s.Err != nil {
			return nil
		}
		kernels := kern.TapsFor(d.Level).Sums
		workers := make([]depthwiseWorker, d.Workers)
		lines := func(worker, block int) {
			state, to := &workers[worker], sums[block*size:][:size]
			clear(to)
			x := newLines(&o.grid, from, rooms, worker)
			k := &state.args
			*k = kern.TapArgs{Src: x.first(), Dst: &to[0], Channels: o.columns, StepDst: 4 * o.columns,
				StepSrc: 4 * o.colStep * o.srcC}
			width := o.width * o.columns
			for line := blocks[block].from; line < blocks[block].to; line++ {
				n, i := line/o.height, line%o.height
				x.fill(n, i)
				var g []float32
				if d.BFloat16 {
					g = grads[worker]
					copyRounded(g, dy, line*width, width)
				} else {
					g = dy.All()[line*width:]
				}
				for _, part := range stretches {
					list := state.offs[:0]
					x.within(n, i, part.from, func(t tap, bytes int) {
						list = append(list, [2]int{bytes, 4 * t.weight * o.columns})
					})
					state.offs = list
					k.Weights, k.Pixels = &g[part.from*o.columns], part.to-part.from
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
