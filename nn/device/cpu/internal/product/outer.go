package product

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// outer is a sum of outer products over the pixels of a grid:
//
//	dst[k, g·rows + r] = Σ over pixels of a[pixel + tap, g·channels + c] · b[pixel, g·rows + r],  k = tap·channels + c
//
// Gradients of weights have this form. Both operands are transposed tile by tile, so that the sum runs along rows.
type outer struct {
	grid         // of b's pixels, with a as the source
	groups, rows int
	columns      int     // of dst and b: groups × rows
	merged       *merged // nil, or how the result of larger groups becomes that of groups
}

// The tile of dst that a block computes, and the pixels that are gathered at a time. The stride of gathered rows is a
// little longer than that: rows a power of two apart would compete for the same cache lines.
const (
	outerRows    = 128
	outerColumns = 128
	outerPixels  = 256
	outerStride  = outerPixels + 16
)

// outerBlock is a tile of dst in one group, summed over a range of units of pixels. With several ranges, each has its
// own copy of dst; sum adds the copies.
type outerBlock struct {
	split, group int
	from, to     int // units
	k, kn        int // rows of dst, or channels
	row, n       int // columns of dst in the group
}

// depth is the number of rows of dst.
func (o *outer) depth() int { return len(o.taps) * o.channels }

// blocks cuts the work into tiles of depth rows or channels, and the units of pixels into ranges. It makes enough
// blocks for a few dozen workers, but keeps ranges long and copies of dst small.
func (o *outer) blocks(depth, units int) (list []outerBlock, splits int) {
	const enough, copies = 48, 4 << 20
	tiles := o.groups * work.Ceil(depth, outerRows) * work.Ceil(o.rows, outerColumns)
	splits = max(1, min(work.Ceil(enough, tiles), work.Ceil(units, 2), copies/(o.depth()*o.columns)))
	size := work.Ceil(units, splits)
	for s := range splits {
		for g := range o.groups {
			for k := 0; k < depth; k += outerRows {
				for r := 0; r < o.rows; r += outerColumns {
					list = append(list, outerBlock{
						split: s, group: g, from: min(s*size, units), to: min((s+1)*size, units),
						k: k, kn: min(outerRows, depth-k), row: r, n: min(outerColumns, o.rows-r),
					})
				}
			}
		}
	}
	return list, splits
}

// vectorOuter returns the kernels of o, or nil for plain Go.
func (d Options) vectorOuter(o *outer) *kern.Set {
	if vectorised(o.groups, o.channels, o.rows) {
		return d.set()
	}
	return nil
}

// lower reserves the scratch of o in r and returns its phases. stored reports whether a and b are stored as bfloat16.
func (o *outer) lower(d Options, r *work.Room, a, b, dst int, stored [2]bool) func(s *work.Storage) []work.Phase {
	if k := d.groupsOuter(o); k != nil {
		return newGroupedOuter(o, k, d).lower(d, r, a, b, dst)
	}
	if merged, line := d.inTiles(o); merged != nil {
		return d.newTilesOuter(o, merged, line, stored[0], stored[1]).lower(d, r, a, b, dst)
	}
	if set := d.vectorOuter(o); set != nil {
		const channels = 8 // from which on it pays
		if o.merged != nil {
			return newTiledOuter(o, set, d.blocks()).lower(d, r, a, b, dst)
		}
		if o.isWinograd() && d.prefersWinograd(&o.grid, o.rows, channels) {
			return newWinogradOuter(o, set).lower(d, r, a, b, dst)
		}
		if !stored[0] && !stored[1] && o.isMatrix(set) {
			return newMatrixOuter(o, set, d.Workers).lower(d, r, a, b, dst)
		}
		return newTiledOuter(o, set, d.blocks()).lower(d, r, a, b, dst)
	}
	if o.depthwise() {
		return o.lowerDepthwise(d, r, a, b, dst)
	}
	workers := d.Workers
	k := outerKernel{outer: o, rounds: d.BFloat16, size: o.depth() * o.columns}
	rows, pixels, stride := o.depth(), outerPixels, outerStride
	sliding := o.slides()
	if sliding {
		k.bands = newBands(o)
		k.blocks, k.splits = o.blocks(o.channels, k.bands.count)
		rows, pixels, stride = o.channels, k.bands.source(k.bands.lines), k.bands.stride
	} else {
		k.blocks, k.splits = o.blocks(o.depth(), work.Ceil(o.pixels(), outerPixels))
	}
	var copies work.Part
	if k.splits > 1 {
		copies = r.Floats(k.splits * k.size)
	}
	left := r.Each(workers, min(outerRows, rows)*stride)
	right := r.Each(workers, min(outerColumns, o.rows)*stride)
	zeros := r.Floats(max(o.channels, o.rows))

	return func(s *work.Storage) []work.Phase {
		k := k
		k.a, k.b, k.dst, k.zeros = s.Floats(a), s.Floats(b), s.Floats(dst), s.Scratch(zeros)
		k.left, k.right = s.Scratches(left), s.Scratches(right)
		for range workers {
			k.offsets = append(k.offsets, make([]int32, pixels))
		}
		run := k.gathered
		if sliding {
			run = k.sliding
		}
		k.to = k.dst
		if k.splits > 1 {
			k.to = s.Scratch(copies)
		}
		phases := []work.Phase{{Blocks: 1, Run: func(int, int) { clear(k.zeros) }}, {Blocks: len(k.blocks), Run: run}}
		if k.splits > 1 {
			phases = append(phases, work.Phase{Blocks: work.Ceil(k.size, sumBlock), Run: k.sum})
		}
		return phases
	}
}

// outerKernel is a bound outer.
type outerKernel struct {
	*outer
	rounds       bool  // the factors
	bands        bands // for sliding
	blocks       []outerBlock
	size, splits int
	a, b, dst    []float32
	to           []float32 // dst, or the copies of it
	zeros        []float32
	left, right  [][]float32 // by worker
	offsets      [][]int32   // by worker
}

// tile is the start of the block's part of dst, or of its copy, in row k.
func (o *outerKernel) tile(b *outerBlock, k int) []float32 {
	return o.to[b.split*o.size+k*o.columns+b.group*o.rows+b.row:]
}

// gathered computes a block from gathered rows of a, one for each tap and channel.
func (o *outerKernel) gathered(worker, block int) {
	b := &o.blocks[block]
	left, right, offsets := o.left[worker], o.right[worker], o.offsets[worker]
	c := o.tile(b, b.k)
	if b.from == b.to {
		for i := range b.kn {
			clear(c[i*o.columns:][:b.n])
		}
	}
	for u := b.from; u < b.to; u++ {
		p := u * outerPixels
		m := min(outerPixels, o.pixels()-p)
		o.gather(left, outerStride, o.a, b.group*o.channels, p, m, b.k, b.kn, offsets, o.zeros)
		for i := range m {
			offsets[i] = int32(p + i)
		}
		transpose(right, outerStride, o.b[b.group*o.rows+b.row:], o.columns, o.zeros[:b.n], offsets[:m])
		o.round(left, outerStride, b.kn, m)
		o.round(right, outerStride, b.n, m)
		gemm(b.kn, b.n, m, left, outerStride, right, outerStride, c, o.columns, u > b.from)
	}
}

// round rounds rows of factors if they are bfloat16.
func (o *outerKernel) round(x []float32, stride, rows, width int) {
	if o.rounds {
		for i := range rows {
			kern.RoundAll(x[i*stride:][:width])
		}
	}
}

// sumBlock is the number of elements of dst that are summed at a time.
const sumBlock = 4096

// sum adds up the copies.
func (o *outerKernel) sum(_, block int) {
	lo := block * sumBlock
	hi := min(lo+sumBlock, o.size)
	dst := o.dst[lo:hi]
	copy(dst, o.to[lo:hi])
	for s := 1; s < o.splits; s++ {
		for i, v := range o.to[s*o.size+lo : s*o.size+hi] {
			dst[i] += v
		}
	}
}

func (d Options) convGradWeight(s work.Step, o op.Conv2DGradWeight) (*work.Lowering, error) {
	x, y := s.InType(0).Shape, s.InType(1).Shape
	w := convWindow(o.Conv2D, s.OutType().Shape)
	return d.outer(s, &outer{
		grid:   w.forwardGrid(x, y),
		groups: w.groups, rows: y[1] / w.groups, columns: y[1],
	}, s.In[0], s.In[1])
}

func (d Options) linearGradWeight(s work.Step, _ op.LinearGradWeight) (*work.Lowering, error) {
	n, in, out := s.InType(0).Shape[0], s.InType(0).Shape[1], s.InType(1).Shape[1]
	return d.outer(s, &outer{grid: vectors(n, out), groups: 1, rows: in, columns: in}, s.In[1], s.In[0])
}

// outer lowers a step that sums outer products of two activations: the gradient of a weight.
func (d Options) outer(s work.Step, o *outer, a, b int) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	o = d.mergeOuter(o)
	var r work.Room
	stored := [2]bool{work.IsStored(s.Values[a]), work.IsStored(s.Values[b])}
	l := work.Result(s, work.Layout(s.OutType(), device.Weight), o.lower(d, &r, a, b, s.Out, stored))
	l.Workspace = r.Bytes
	if t, _ := d.inTiles(o); t != nil || d.vectorOuter(o) != nil && d.groupsOuter(o) == nil || o.depthwise() {
		l.Kernel.Take(0, a, b)
	}
	return l, nil
}
