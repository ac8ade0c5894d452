package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// groupedOuter runs an outer in groups of a few channels on the kernels of kern.Groups.
type groupedOuter struct {
	*outer
	kernels *kern.Groups
	set     *kern.Set
	frame   framedLines
	block   cut
	extents []extent
	parts   []groupPart
	splits  int // ranges of extents; each but the first has its own copy of dst
	calls   []groupCall
}

// groupCall is a kernel for the taps from first on.
type groupCall struct {
	first int
	run   func(*kern.GroupArgs)
}

// groupsOuter returns the kernels of o, or nil.
func (d Options) groupsOuter(o *outer) *kern.Groups {
	if t, _ := d.inTiles(o); o.merged != nil || t != nil {
		return nil
	}
	return d.inGroups(o.groups, o.channels, o.rows, len(o.taps))
}

// groupedPixels is about the number of source pixels under a block of sums: those of a group stay in the first level
// cache.
const groupedPixels = 256

func newGroupedOuter(o *outer, kernels *kern.Groups, d Options) *groupedOuter {
	k := &groupedOuter{outer: o, kernels: kernels, set: d.set()}
	each := groupedPixels / (o.width * o.rowStep * o.colStep)
	k.block = cut{images: max(1, min(o.images, each/o.height)), lines: work.Ceil(o.height, work.Ceil(o.height, max(1, each)))}
	k.extents = k.block.extents(&o.grid)
	all := newFramedLines([]*grid{&o.grid}, o.groups*o.channels)
	const enough = 32 // tasks
	size := o.depth() * o.columns
	read := o.images*o.srcH*o.srcW*o.srcC + o.pixels()*o.columns
	k.splits = max(1, min(enough, len(k.extents), read/(4*size))) // copies cost less than operands
	k.parts = groupParts(kernels.Lanes, o.groups, o.channels, o.rows, all.size(k.block), work.Ceil(enough, k.splits))
	k.splits = min(k.splits, work.Ceil(enough, len(k.parts)))
	k.splits = work.Ceil(len(k.extents), work.Ceil(len(k.extents), k.splits))
	k.frame = newFramedLines([]*grid{&o.grid}, widest(k.parts))
	k.cutTaps()
	return k
}

// cutTaps divides the taps of each line among kernels.
func (k *groupedOuter) cutTaps() {
	sums, along := k.kernels.Sums, k.kernels.SumsAlong
	for first := 0; first < len(k.taps); {
		n := 1
		for first+n < len(k.taps) && k.taps[first+n].row == k.taps[first].row {
			n++
		}
		n = work.Ceil(n, work.Ceil(n, len(sums)-1))
		run := sums[n]
		beside := k.taps[first+n-1].col-k.taps[first].col == n-1
		if n == len(sums)-1 && beside && k.colStep < len(along) && k.width >= kern.AlongPixels {
			run = along[k.colStep]
		}
		k.calls = append(k.calls, groupCall{first, run})
		first += n
	}
}

// lower reserves the scratch of k in r and returns its phases.
func (k *groupedOuter) lower(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	size := k.outer.depth() * k.columns
	frames := r.Each(d.Workers, k.frame.size(k.block))
	copies := r.Floats((k.splits - 1) * size)
	return func(s *work.Storage) []work.Phase {
		t := &groupedOuterKernel{groupedOuter: k, size: size, a: s.Floats(a), b: s.Floats(b), dst: s.Floats(dst),
			copies: s.Scratch(copies)}
		if s.Err != nil {
			return nil
		}
		for _, tap := range k.taps {
			t.offs = append(t.offs, 4*k.frame.offset(tap))
		}
		t.workers = groupedWorkers(s.Scratches(frames), k.block.images*k.block.lines)
		phases := []work.Phase{{Blocks: k.splits * len(k.parts), Run: t.run}}
		if k.splits > 1 {
			phases = append(phases, work.Phase{Blocks: work.Ceil(size, sumBlock), Run: t.sum})
		}
		return phases
	}
}

// groupedOuterKernel is a bound groupedOuter.
type groupedOuterKernel struct {
	*groupedOuter
	size      int // elements of dst
	a, b, dst []float32
	copies    []float32 // of dst, for each split but the first
	offs      []int     // in bytes, of the taps
	workers   []groupedWorker
}

// run computes a part of the vectors over a range of extents.
func (k *groupedOuterKernel) run(worker, task int) {
	split, part, s := task/len(k.parts), k.parts[task%len(k.parts)], &k.workers[worker]
	dst := k.dst
	if split > 0 {
		dst = k.copies[(split-1)*k.size:][:k.size]
	}
	lanes := k.kernels.Lanes
	lo, hi := part.vector*lanes, (part.vector+part.vectors)*lanes
	s.args = kern.GroupArgs{Pixels: k.width, StepSrc: 4 * k.colStep * k.frame.pitch, StepDst: 4 * k.columns,
		StepWeights: 4 * k.columns, StepTap: 4 * k.channels * k.columns}
	each := work.Ceil(len(k.extents), k.splits)
	k.frame.clearEnds(s.frame)
	list := k.extents[split*each : min((split+1)*each, len(k.extents))]
	for i, e := range list {
		k.frame.fill(k.set, s.frame, k.a, e, part.channel, part.channels)
		s.args.Add = min(i, 1)
		s.ahead.start(k.set)
		if i+1 < len(list) && k.outer.far() {
			next := list[i+1]
			k.frame.fetch(&s.ahead, k.a, next, part.channel, part.channels)
			addRows(&s.ahead, k.b, (next.image*k.height+next.line)*k.width*k.columns+lo, next.images*next.lines*k.width,
				hi-lo, k.columns)
			s.ahead.over(part.vectors)
		}
		s.runs = s.runs[:0]
		for m := range e.images {
			for line := range e.lines {
				s.runs = append(s.runs, [2]int{4 * k.frame.at(e, m, line, 0), 4 * (m*k.height + line) * k.width * k.columns})
			}
		}
		s.args.Runs, s.args.Count = &s.runs[0], len(s.runs)
		y := k.b[(e.image*k.height+e.line)*k.width*k.columns:]
		for v := part.vector; v < part.vector+part.vectors; v++ {
			k.vector(s, y, dst, v, v*lanes/k.rows*k.channels-part.channel)
			s.ahead.tile()
		}
	}
}

// vector adds the sums of a block for vector v of the columns, whose channels begin at element from of a pixel.
func (k *groupedOuterKernel) vector(s *groupedWorker, y, dst []float32, v, from int) {
	column := v * k.kernels.Lanes
	s.args.Weights = &y[column]
	for _, c := range k.calls {
		s.args.Offs = &k.offs[c.first]
		for channel := 0; channel < k.channels; channel += kern.GroupDepth {
			s.args.Src = &s.frame[from+channel]
			s.args.Dst = &dst[(k.taps[c.first].weight*k.channels+channel)*k.columns+column]
			c.run(&s.args)
		}
	}
}

// sum adds the copies to dst.
func (k *groupedOuterKernel) sum(_, block int) {
	lo := block * sumBlock
	hi := min(lo+sumBlock, k.size)
	for i := range k.splits - 1 {
		k.set.Add(&k.dst[lo], &k.copies[i*k.size+lo : i*k.size+hi][0], hi-lo)
	}
}
