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

// lineBlock is a range of lines, counted through all images.
type lineBlock struct{ from, to int }

// lineBlocks cuts lines into about count ranges.
func lineBlocks(lines, count int) (list []lineBlock) {
	size := max(1, work.Ceil(lines, count))
	for from := 0; from < lines; from += size {
		list = append(list, lineBlock{from, min(from+size, lines)})
	}
	return list
}

// The times of copying a pixel in those of multiplying it by a tap, measured with 5×5 and 7×7 taps: sums gain more by
// copies, since the kernels read and write them for each stretch of a line.
const copyingForProducts, copyingForSums = 12, 3

// channelwise runs a depthwise product, with an epilogue for each block of lines.
type channelwise struct {
	*product
	epilogue
}

func newChannelwise(p *product) *channelwise { return &channelwise{p, epilogue{other: -1}} }

func (c *channelwise) end() *epilogue { return &c.epilogue }

// endable reports whether an epilogue can follow p, which is depthwise or has kernels of groups: its result is one
// grid, in float32.
func (p *product) endable(d Options) bool {
	return (p.depthwise() || d.groups(p) != nil) && !d.BFloat16 && len(p.grids) == 1 && p.grids[0].whole(p)
}

// cachedLines is the number of elements of a block that an epilogue follows: they stay in the second level cache.
const cachedLines = 1 << 15

// leastBlocks is the least number of blocks of a product in float32.
const leastBlocks = 64

func (c *channelwise) lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	p := c.product
	under := make([]*linesUnder, len(p.grids))
	room, width, taps, height := 0, 0, 0, 0
	for i := range p.grids {
		g := &p.grids[i]
		under[i] = newLinesUnder(&g.grid, p.weightTap, d.BFloat16, copyingForProducts)
		room, width, height = max(room, under[i].room()), max(width, g.width*p.dstC), max(height, g.height)
		for _, t := range g.taps {
			taps = max(taps, t.weight+1)
		}
	}
	rows := p.grids[0].images * height
	count := 2 * d.blocks()
	if !d.BFloat16 { // sums over blocks have the same bits for any number of workers
		count = max(leastBlocks, work.Ceil(rows, max(1, cachedLines/width)))
	}
	blocks := lineBlocks(rows, count)
	keep := c.keeps(p)
	c.epilogue.lower(r, keep, d.Workers, p.groups, nhwc.RowsWith(p.grids[0].pixels(), p.dstC, 1), len(blocks))
	zeros := r.Keep(keep, p.dstC)
	var made work.Part // the weights that are multiplied
	var rooms, results []work.Part
	if d.BFloat16 || c.folded != nil {
		made = r.Keep(keep, max(1, taps)*p.weightTap)
	}
	if room > 0 {
		rooms = r.Each(d.Workers, len(p.grids)*room)
	}
	if d.BFloat16 {
		results = r.Each(d.Workers, width)
	}
	return func(s *work.Storage) []work.Phase {
		x, w, y, init := s.Pieces(src), s.Floats(weights), s.Pieces(dst), s.Scratch(zeros)
		if s.Err != nil {
			return nil
		}
		k := depthwise{product: p, blocks: blocks, height: height, run: kern.TapsFor(d.Level).Products, y: y, relu: c.relu,
			made: s.Scratches(results)}
		before, after := c.epilogue.bind(s, keep, &k.boundEpilogue, p, 1)
		if s.Err != nil {
			return nil
		}
		var b []float32
		if bias >= 0 {
			b = s.Floats(bias)
		}
		from := w
		if d.BFloat16 || c.folded != nil {
			w = s.Scratch(made)
		}
		before = append(before, work.Phase{Blocks: 1, Once: keep, Run: func(int, int) {
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
		}})
		k.w, k.init, k.workers = w, init, make([]depthwiseWorker, d.Workers)
		for i := range k.workers {
			for j := range p.grids {
				var copies []float32
				if room > 0 {
					copies = s.Scratch(rooms[i])[j*room:][:room]
				}
				k.workers[i].x = append(k.workers[i].x, lines{linesUnder: under[j], src: x, copy: copies})
			}
		}
		return append(append(before, work.Phase{Blocks: len(blocks), Run: k.block}), after...)
	}
}

// depthwise is a bound product of a depthwise convolution.
type depthwise struct {
	*product
	blocks  []lineBlock
	height  int // of the highest grid
	run     func(*kern.TapArgs)
	y       *work.Pieces
	w, init []float32
	relu    bool
	made    [][]float32 // by worker, if results are stored as bfloat16
	workers []depthwiseWorker
	boundEpilogue
}

// depthwiseWorker is the state of a worker, on cache lines of its own.
type depthwiseWorker struct {
	args kern.TapArgs
	x    []lines // by grid
	_    [128]byte
}

// block computes a block.
func (k *depthwise) block(worker, block int) {
	b, state := k.blocks[block], &k.workers[worker]
	for i := range k.grids {
		state.x[i].image = -1
	}
	state.args = kern.TapArgs{Weights: &k.w[0], Init: &k.init[0], Channels: k.dstC}
	for line := b.from; line < b.to; line++ {
		for i := range k.grids {
			if l := line % k.height; l < k.grids[i].height {
				k.line(worker, i, line/k.height, l)
			}
		}
	}
	if !k.relu && k.then == nil && k.add == nil {
		return
	}
	size := k.grids[0].width * k.dstC
	at, all := b.from*size, k.y.All()[b.from*size:b.to*size]
	if k.relu {
		k.vectors.ReLU(all, all)
	}
	k.endColumns(worker, block, 0, k.dstC, at, k.dstC, (b.to-b.from)*k.grids[0].width, all, k.dstC)
}

// line computes line i of a grid.
func (k *depthwise) line(worker, grid, n, i int) {
	state, g := &k.workers[worker], &k.grids[grid]
	x, a := &state.x[grid], &state.args
	at := ((n*k.dstH+i*g.stepH+g.offH)*k.dstW + g.offW) * k.dstC
	step := g.stepW * k.dstC // from a pixel to the next
	var y []float32
	stored := k.y.Stored() != nil
	if stored {
		y, step = k.made[worker], k.dstC
	} else {
		y = k.y.All()[at:]
	}
	parts, lo, hi := x.to(a, n, i)
	a.StepDst = 4 * step
	for j, part := range x.parts {
		var list [][2]int
		if hi > lo {
			list = parts[j].rows(lo, hi)
		}
		if len(list) == 0 {
			for j := part.from; j < part.to; j++ {
				copy(y[j*step:][:k.dstC], k.init)
			}
			continue
		}
		a.Next, a.Nexts = &parts[j].next[0], 0
		if grid == 0 { // the others read the same lines
			a.Nexts = parts[j].nexts
		}
		a.Dst, a.Offs, a.Taps, a.Pixels = &y[part.from*step], &list[0], len(list), part.to-part.from
		k.run(a)
	}
	if stored {
		k.y.Store(y, step, at, g.width, k.dstC, g.stepW*k.dstC)
	}
}

// depthwiseCopies is the number of line ranges that are summed separately and then added.
const depthwiseCopies = 32

// lowerDepthwise is lower for a depthwise o.
func (o *outer) lowerDepthwise(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	if kernels := o.along(d); kernels != nil {
		return o.lowerAlong(kernels, d, r, a, b, dst)
	}
	size := len(o.taps) * o.columns
	under := newLinesUnder(&o.grid, o.columns, d.BFloat16, copyingForSums)
	blocks := lineBlocks(o.images*o.height, depthwiseCopies)
	for _, parts := range under.under {
		for i := range parts { // the second offset is of dy
			parts[i].next = []int{parts[i].next[0], 4 * o.width * o.columns}
		}
	}
	copies := r.Floats(len(blocks) * size)
	var rooms, grads []work.Part
	if under.copied {
		rooms = r.Each(d.Workers, under.room())
	}
	if d.BFloat16 {
		grads = r.Each(d.Workers, o.width*o.columns+lineTail)
	}
	return func(s *work.Storage) []work.Phase {
		from, dy, dw, sums := s.Pieces(a), s.Pieces(b), s.Floats(dst), s.Scratch(copies)
		rooms, grads := s.Scratches(rooms), s.Scratches(grads)
		if s.Err != nil {
			return nil
		}
		kernels := kern.TapsFor(d.Level).Sums
		workers := make([]depthwiseWorker, d.Workers)
		run := func(worker, block int) {
			k, to := &workers[worker].args, sums[block*size:][:size]
			clear(to)
			x := lines{linesUnder: under, src: from, image: -1}
			if under.copied {
				x.copy = rooms[worker]
			}
			*k = kern.TapArgs{Dst: &to[0], Channels: o.columns, StepDst: 4 * o.columns}
			width := o.width * o.columns
			for line := blocks[block].from; line < blocks[block].to; line++ {
				parts, lo, hi := x.to(k, line/o.height, line%o.height)
				if lo == hi {
					continue
				}
				var g []float32
				if d.BFloat16 {
					g = grads[worker]
					copyRounded(g, dy, line*width, width)
				} else {
					g = dy.All()[line*width:]
				}
				for j, part := range x.parts {
					p := &parts[j]
					k.Weights, k.Pixels, k.Next = &g[part.from*o.columns], part.to-part.from, &p.next[0]
					for list := p.rows(lo, hi); len(list) > 0; list = list[k.Taps:] {
						k.Taps = min(len(list), len(kernels)-1)
						k.Offs = &list[0]
						kernels[k.Taps](k)
					}
				}
			}
		}
		sum := outerKernel{outer: o, size: size, splits: len(blocks), dst: dw, to: sums}
		return []work.Phase{{Blocks: len(blocks), Run: run}, {Blocks: work.Ceil(size, sumBlock), Run: sum.sum}}
	}
}
