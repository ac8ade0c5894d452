package product

import (
	"math"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
)

// A convolution in groups of a few channels multiplies little with each number that it reads, so copies of the source
// for each group would take as long as the products. Kernels of kern.Groups read a copy with the channels of many
// groups. They go through the pixels of a whole block for one group, whose weights stay in the first level cache.

// grouped runs a product in groups, with an epilogue for each block.
type grouped struct {
	*product
	kernels *kern.Groups
	set     *kern.Set
	frame   framedLines
	block   cut
	runs    []kern.GroupProducts // by grid
	parts   []groupPart
	extents []extent
	epilogue
}

// groupPart is a range of vectors of results, and the channels that they read.
type groupPart struct {
	vector, vectors   int
	channel, channels int
}

// inGroups returns the kernels for groups of the given channels and rows of results, or nil. With less than two taps,
// and with more channels than most, other kernels are faster.
func (d Options) inGroups(groups, channels, rows, taps int) *kern.Groups {
	const most = 24
	if groups == 1 || taps <= 1 || d.BFloat16 || max(channels, rows) > most {
		return nil
	}
	return kern.GroupsFor(d.Level, groups, channels, rows)
}

// groups returns the kernels of p, or nil.
func (d Options) groups(p *product) *kern.Groups {
	taps := 0
	for i := range p.grids {
		taps += len(p.grids[i].taps)
	}
	if p.merged != nil || d.Tiles != nil && d.tileable(p) {
		return nil
	}
	return d.inGroups(p.groups, p.grids[0].channels, p.rows, taps)
}

// frameElements is about the number of elements of a frame: a quarter of a second level cache of 1 MiB.
const frameElements = 1 << 16

// groupParts cuts the vectors of results into parts: into least if there are enough groups, and into so many that a
// frame has at most about frameElements; size is that of a frame with all channels.
func groupParts(lanes, groups, channels, rows, size, least int) (list []groupPart) {
	const whole = 16 // results: the longest vector of a kernel, and vec.Padded of an epilogue's sums
	unit := 1        // groups
	for unit*rows%whole != 0 {
		unit++
	}
	units := work.Ceil(groups, unit)
	parts := min(units, max(work.Ceil(size, frameElements), least))
	for i := range parts {
		lo, hi := i*units/parts*unit, min((i+1)*units/parts*unit, groups)
		list = append(list, groupPart{lo * rows / lanes, (hi - lo) * rows / lanes, lo * channels, (hi - lo) * channels})
	}
	return list
}

// widest is the largest number of channels of a part.
func widest(parts []groupPart) (channels int) {
	for _, part := range parts {
		channels = max(channels, part.channels)
	}
	return channels
}

// groupTimes are the times of a multiply-add, relative to that at the peak, by whether kernels run along lines and
// by the pixels of a run. They are measured with AVX2 and AVX-512.
var groupTimes = map[bool]map[int]float64{
	false: {1: 4, 4: 1.4, 7: 1.3},
	true:  {4: 1.1, 7: 1.15},
}

// groupProducts chooses the kernel with which the lines of a grid take the least time.
func groupProducts(k *kern.Groups, g *grid) (best kern.GroupProducts) {
	along := g.colStep == 1 && g.inThrees()
	least := math.Inf(1)
	for _, p := range k.Products {
		time := groupTimes[p.Along][p.Pixels] * float64(work.Ceil(g.width, p.Pixels)*p.Pixels)
		if p.Pixels <= g.width && (along || !p.Along) && time < least {
			best, least = p, time
		}
	}
	return best
}

// inThrees reports whether each kern.AlongTaps taps lie side by side in a line.
func (g *grid) inThrees() bool {
	for i, t := range g.taps {
		if first := g.taps[i-i%kern.AlongTaps]; t.row != first.row || t.col != first.col+i%kern.AlongTaps {
			return false
		}
	}
	return len(g.taps)%kern.AlongTaps == 0
}

func newGrouped(p *product, kernels *kern.Groups, d Options) *grouped {
	k := &grouped{product: p, kernels: kernels, set: d.set(), epilogue: epilogue{other: -1}}
	channels := p.groups * p.grids[0].channels
	var grids []*grid
	for i := range p.grids {
		grids = append(grids, &p.grids[i].grid)
		k.runs = append(k.runs, groupProducts(k.kernels, &p.grids[i].grid))
	}
	all := newFramedLines(grids, channels)
	k.block = p.grids[0].cut()
	k.extents = k.block.extents(&p.grids[0].grid)
	k.parts = groupParts(k.kernels.Lanes, p.groups, p.grids[0].channels, p.rows, all.size(k.block),
		work.Ceil(d.blocks(), len(k.extents)))
	k.frame = newFramedLines(grids, widest(k.parts))
	return k
}

func (k *grouped) end() *epilogue { return &k.epilogue }

// depth is the number of rows of packed weights of a vector, over all grids.
func (k *grouped) depth() (rows int) {
	for i := range k.grids {
		rows += len(k.grids[i].taps) * k.grids[i].channels
	}
	return rows
}

func (k *grouped) lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	p := k.product
	keep := k.keeps(p)
	vectors := p.dstC / k.kernels.Lanes
	k.epilogue.lower(r, keep, d.Workers, p.dstC, nhwc.RowsWith(p.grids[0].pixels(), p.dstC, 1), len(k.extents))
	packed, inits := r.Keep(keep, k.depth()*p.dstC), r.Keep(keep, p.dstC)
	frames := r.Each(d.Workers, k.frame.size(k.block))
	return func(s *work.Storage) []work.Phase {
		b := &groupedKernel{grouped: k, src: s.Floats(src), weights: s.Floats(weights), dst: s.Floats(dst)}
		if s.Err != nil {
			return nil
		}
		b.packed, b.init = s.Scratch(packed), s.Scratch(inits)
		before, after := k.epilogue.bind(s, keep, &b.boundEpilogue, p, p.rows)
		if bias >= 0 {
			b.bias = s.Floats(bias)
		}
		if s.Err != nil {
			return nil
		}
		for i := range p.grids {
			var offs []int
			for _, t := range p.grids[i].taps {
				offs = append(offs, 4*k.frame.offset(t))
			}
			b.offs = append(b.offs, offs)
		}
		runs := 0
		for i := range p.grids {
			runs = max(runs, k.block.images*k.block.lines*work.Ceil(p.grids[i].width, k.runs[i].Pixels)+1)
		}
		b.workers = groupedWorkers(s.Scratches(frames), runs)
		return append(append(before, work.Phase{Blocks: vectors, Once: keep, Run: b.pack},
			work.Phase{Blocks: len(k.extents) * len(k.parts), Run: b.run}), after...)
	}
}

// groupedKernel is a bound grouped.
type groupedKernel struct {
	*grouped
	src, weights, bias, dst []float32
	packed                  []float32 // by vector of results, grid, tap and channel
	init                    []float32
	offs                    [][]int // in bytes, of the taps of each grid
	workers                 []groupedWorker
	boundEpilogue
}

// groupedWorker is the state of a worker, on cache lines of its own.
type groupedWorker struct {
	args  kern.GroupArgs
	frame []float32
	runs  [][2]int
	ahead ahead
	_     [128]byte
}

// groupedWorkers are workers with room for some runs.
func groupedWorkers(frames [][]float32, runs int) (list []groupedWorker) {
	for _, f := range frames {
		list = append(list, groupedWorker{frame: f, runs: make([][2]int, 0, runs)})
	}
	return list
}

// pack packs the weights of a vector of results.
func (k *groupedKernel) pack(_, vector int) {
	lanes := k.kernels.Lanes
	first := vector * lanes
	to := k.packed[vector*k.depth()*lanes:][:k.depth()*lanes]
	init := k.init[first:][:lanes]
	clear(init)
	if k.bias != nil {
		copy(init, k.bias[first:])
	}
	all := to
	for i := range k.grids {
		channels := k.grids[i].channels
		for _, t := range k.grids[i].taps {
			k.packTap(to[:channels*lanes], t.weight, first, channels)
			to = to[channels*lanes:]
		}
	}
	if k.gain != nil {
		gain := k.gain[first:][:lanes]
		k.vectors.Scale(all, all, gain)
		k.vectors.Mul(init, init, gain)
		k.vectors.Add(init, init, k.shift[first:][:lanes])
	}
}

// packTap writes the weights of a tap for a vector of results from first on, a row for each channel.
func (k *groupedKernel) packTap(to []float32, tap, first, channels int) {
	lanes := k.kernels.Lanes
	for lane := 0; lane < lanes; {
		group, row := (first+lane)/k.rows, (first+lane)%k.rows
		n := min(k.rows-row, lanes-lane)
		w := k.weights[tap*k.weightTap+group*k.weightGroup+row*k.weightRow:]
		if n == lanes && k.weightChannel == 1 {
			k.set.Transpose(to, lanes, w, k.weightRow, n, channels)
			return
		}
		for c := range channels {
			for i := range n {
				to[c*lanes+lane+i] = w[c*k.weightChannel+i*k.weightRow]
			}
		}
		lane += n
	}
}

// run computes a block: the pixels of an extent for a part of the vectors.
func (k *groupedKernel) run(worker, block int) {
	number := block / len(k.parts)
	e, part, s := k.extents[number], k.parts[block%len(k.parts)], &k.workers[worker]
	k.frame.clearEnds(s.frame)
	k.frame.fill(k.set, s.frame, k.src, e, part.channel, part.channels)
	row := 0 // of the packed weights of a vector
	for i := range k.grids {
		if s.runs = k.runsOf(s.runs[:0], i, e); len(s.runs) > 0 {
			k.multiply(s, i, e, part, row)
		}
		row += len(k.grids[i].taps) * k.grids[i].channels
	}
	if k.then != nil || k.add != nil {
		lo, hi := part.vector*k.kernels.Lanes, (part.vector+part.vectors)*k.kernels.Lanes
		from := (e.image*k.dstH + e.line) * k.dstW * k.dstC
		k.endColumns(worker, number, lo, hi, from, k.dstC, e.images*e.lines*k.dstW, k.dst[from+lo:], k.dstC)
	}
}

// multiply computes the runs of a grid, whose weights begin at a row of the packed ones.
func (k *groupedKernel) multiply(s *groupedWorker, grid int, e extent, part groupPart, row int) {
	g, a, lanes := &k.grids[grid], &s.args, k.kernels.Lanes
	from := ((e.image*k.dstH+e.line*g.stepH+g.offH)*k.dstW + g.offW) * k.dstC
	*a = kern.GroupArgs{Taps: len(g.taps), Depth: g.channels, Runs: &s.runs[0],
		StepSrc: 4 * g.colStep * k.frame.pitch, StepDst: 4 * g.stepW * k.dstC}
	if k.relu {
		a.ReLU = 1
	}
	for v := part.vector; v < part.vector+part.vectors; v++ {
		dst, init := k.dst[from+v*lanes:], k.init[v*lanes:][:lanes]
		if a.Taps == 0 {
			k.fillRuns(s.runs, grid, dst, init)
			continue
		}
		if k.added != nil {
			a.From = &k.added.All()[from+v*lanes]
		}
		a.Dst, a.Init, a.Offs, a.Count = &dst[0], &init[0], &k.offs[grid][0], len(s.runs)
		a.Src, a.Weights = &s.frame[v*lanes/k.rows*g.channels-part.channel], &k.packed[(v*k.depth()+row)*lanes]
		k.runs[grid].Run(a)
	}
}

// runsOf lists the runs of a grid in a block, an even number: offsets in bytes in the frame, and in dst from the first
// pixel of the grid in the block.
func (k *groupedKernel) runsOf(list [][2]int, grid int, e extent) [][2]int {
	g, size := &k.grids[grid], k.runs[grid].Pixels
	for m := range e.images {
		for i := range min(e.lines, g.height-e.line) {
			for j := range work.Ceil(g.width, size) {
				col := min(j*size, g.width-size) // the last run may overlap the one before
				list = append(list, [2]int{4 * k.frame.at(e, m, i, col),
					4 * ((m*k.dstH+i*g.stepH)*k.dstW + col*g.stepW) * k.dstC})
			}
		}
	}
	if len(list)%2 == 1 {
		list = append(list, list[len(list)-1])
	}
	return list
}

// fillRuns sets the pixels of runs of a grid without taps, as gradients of inputs have them.
func (k *groupedKernel) fillRuns(runs [][2]int, grid int, dst, init []float32) {
	for _, r := range runs {
		for p := range k.runs[grid].Pixels {
			copy(dst[r[1]/4+p*k.grids[grid].stepW*k.dstC:], init)
		}
	}
}
