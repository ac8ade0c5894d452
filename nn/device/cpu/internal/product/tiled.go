package product

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
)

// tiled is a product by the kernels of package kern: an implicit matrix product, whose left side is never
// written out.
type tiled struct {
	*product
	set      *kern.Set
	families []family
	panels   int // of a group: columns of the widest tile, less in the last
	padded   int // columns of a group's panels, with those that are not used
	pieces   []piece
	blocks   []tiledBlock

	weightsOf [][]int // by tap, where pixels are folded
	made      *made   // not nil where results are stored as bfloat16

	epilogue
}

// family is targets whose pixels are computed from the same tiles.
type family struct {
	halo
	targets []tiledTarget
}

type tiledTarget struct {
	*target
	depth  int // taps × channels, or words of them
	deep   int // rows of a panel before its words are made: a bias, and channels that are whole words
	packed int // where the panels of its weights begin
	offs   []int
	run    int // taps that are read as one
}

// piece is the weights that are packed at a time: a panel.
type piece struct{ family, target, group, panel int }

// tiledBlock is a range of pixels × a range of a group's panels.
type tiledBlock struct {
	extent
	number        int // of the range of pixels, among those of the family
	family, group int
	panel, panels int
	spans         [][]span // by target
}

// span is the pixels of a tile of registers: where they lie from the first one of the block on, in elements.
type span struct {
	rows         int
	a, c         int
	jumpA, jumpC int  // of the pixels from kern.Half on
	reach        taps // that do not lie in the padding above or below
}

// taps is a range of offsets of a target.
type taps struct{ first, count int }

// vectorised says whether the kernels pay for products and sums with so many channels and rows in a group:
// a depthwise convolution would leave most lanes empty.
func vectorised(groups, channels, rows int) bool {
	return groups == 1 || channels >= 8 && rows >= 8
}

// The most channels of a tile, with several taps and with one.
const (
	tileChannels   = 64
	singleChannels = 512
)

// directChannels is the number of channels up to which a source is read in place: in longer rows the pixels of a
// tile compete for cache lines.
const directChannels = 256

func newTiled(p *product, set *kern.Set, blocks int, stored bool) *tiled {
	p, weightsOf := p.fold(set)
	t := &tiled{product: p, set: set, panels: work.Ceil(p.rows, set.Columns()), weightsOf: weightsOf, epilogue: epilogue{other: -1}}
	t.padded = set.Vectors(p.rows) * set.Lanes
	for i := range p.grids {
		g := &p.grids[i]
		f := slices.IndexFunc(t.families, func(f family) bool {
			o := f.targets[0]
			return o.images == g.images && o.height == g.height && o.width == g.width &&
				(len(o.taps) == 0) == (len(g.taps) == 0)
		})
		if f < 0 {
			f = len(t.families)
			t.families = append(t.families, family{})
		}
		t.families[f].targets = append(t.families[f].targets, tiledTarget{target: g})
	}
	size := 0
	for i := range t.families {
		t.families[i].prepare(set.Narrow)
		for j := range t.families[i].targets {
			g := &t.families[i].targets[j]
			g.packed = size
			if len(g.taps) == 0 {
				continue
			}
			size += g.deep * t.padded * p.groups
			for group := range p.groups {
				for panel := range t.panels {
					t.pieces = append(t.pieces, piece{i, j, group, panel})
				}
			}
		}
	}
	if stored {
		t.made = new(made)
	}
	t.cutBlocks(blocks)
	return t
}

// prepare finds the halo of a family and the taps of its targets in it.
func (f *family) prepare(narrow *kern.Narrow) {
	g := &f.targets[0].grid
	var all []tap
	for _, t := range f.targets {
		all = append(all, t.taps...)
	}
	if len(all) == 0 {
		f.halo = halo{grid: g, block: g.cut()}
		return
	}
	limit := tileChannels
	if len(all) == 1 {
		limit = singleChannels
	}
	f.halo = newHalo(g, all, limit, narrow)
	if g.srcC <= directChannels {
		f.readDirectly()
	}
	for i := range f.targets {
		t := &f.targets[i]
		t.depth = len(t.taps) * f.narrow.Words(t.channels)
		t.deep = 1 + len(t.taps)*f.narrow.Whole(t.channels)
		runs := f.runs(t.taps)
		t.run = runs[0].count
		if len(runs)*t.run != len(t.taps) || slices.ContainsFunc(runs, func(r rowOfTaps) bool { return r.count != t.run }) {
			t.run = 1
		}
		for j := 0; j < len(t.taps); j += t.run {
			tap := t.taps[j]
			t.offs = append(t.offs, 4*((tap.row-f.row)*f.tileWidth+tap.col-f.col)*f.stride)
		}
	}
}

// cutBlocks lists the blocks. Where there are few pixels, for enough of them the columns are shared out too, which costs
// more copies of the source.
func (t *tiled) cutBlocks(enough int) {
	const least = 2 // panels of a block
	extents := 0
	for i := range t.families {
		f := &t.families[i]
		extents += len(f.block.extents(f.grid)) * t.groups
	}
	each := max(least, work.Ceil(t.panels, work.Ceil(enough, extents)))
	if t.made != nil {
		each = t.made.prepare(t, each)
	}
	for i := range t.families {
		f := &t.families[i]
		spans := map[extent][][]span{}
		for j := 0; j < t.panels; j += each {
			for group := range t.groups {
				for n, e := range f.block.extents(f.grid) {
					at := e
					at.image = 0
					if spans[at] == nil {
						for k := range f.targets {
							spans[at] = append(spans[at], t.spans(f, &f.targets[k], e))
						}
					}
					t.blocks = append(t.blocks, tiledBlock{e, n, i, group, j, min(each, t.panels-j), spans[at]})
				}
			}
		}
	}
}

// spans cuts the pixels of a block into tiles of registers.
func (t *tiled) spans(f *family, g *tiledTarget, e extent) []span {
	if len(g.taps) == 0 {
		return nil
	}
	var list []span
	stepA, stepC := f.right*f.stride, t.stepC(f, g)
	line := func(a, c, pixels int, reach taps) {
		parts := work.Ceil(pixels, t.set.Rows)
		for k := range parts {
			x, end := k*pixels/parts, (k+1)*pixels/parts
			list = append(list, span{end - x, a + x*stepA, c + x*stepC, kern.Half * stepA, kern.Half * stepC, reach})
		}
	}
	if f.contiguous() && (t.made != nil || g.whole(t.product)) {
		line(0, 0, e.images*e.lines*f.width, taps{0, len(g.offs)})
		return list
	}
	pairs := f.width == kern.Half && t.set.Rows == 2*kern.Half
	single := map[taps]int{} // spans of one line that wait for another one
	for n := range e.images {
		for i := range e.lines {
			a, c := f.at(n, i, 0), (n*t.dstH+i*g.stepH)*t.dstW*t.dstC
			if t.made != nil {
				c = (n*e.lines + i) * f.width * stepC
			}
			reach := f.reach(g, e.line+i)
			if k, ok := single[reach]; ok {
				s := &list[k]
				s.rows, s.jumpA, s.jumpC = 2*kern.Half, a-s.a, c-s.c
				delete(single, reach)
				continue
			}
			if pairs {
				single[reach] = len(list)
			}
			line(a, c, f.width, reach)
		}
	}
	return list
}

// reach is the taps of g that lie in the source for a line of the grid; one at least.
func (f *family) reach(g *tiledTarget, line int) taps {
	r := taps{count: len(g.offs)}
	outside := func(k int) bool {
		row := line*f.rowStep + g.taps[k*g.run].row
		return row < 0 || row >= f.srcH
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

// pairs says whether a panel of n columns is for the kernels that read two elements of the source at a time.
func (f *family) pairs(g *tiledTarget, set *kern.Set, n int) bool {
	return f.narrow == nil && set.Vectors(n) == 1 && g.run*f.channels%2 == 0 // and so is what a chunk has of them
}

// columns is how many columns of a group a panel has, vectors how many vectors they take.
func (t *tiled) columns(panel int) int { return min(t.set.Columns(), t.rows-panel*t.set.Columns()) }

// panel is where a panel of the packed weights begins: a bias for each column, then the weights in the order in
// which the kernels read them.
func (t *tiled) panel(g *tiledTarget, group, panel int) int {
	return g.packed + g.deep*(group*t.padded+panel*t.set.Columns())
}

// lower adds the scratch that t needs to r and returns its phases: packing the weights, then the blocks.
func (t *tiled) lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	size, tile := 0, 0
	for i := range t.families {
		f := &t.families[i]
		for _, g := range f.targets {
			size += g.deep * t.padded * t.groups
		}
		if len(f.targets[0].taps) > 0 {
			tile = max(tile, f.size())
		}
	}
	packed := r.Floats(size)
	tiles := r.Each(d.Workers, tile)
	f := &t.families[0]
	repeat := 1 // folded pixels are several of the activation
	if t.weightsOf != nil {
		repeat = len(t.weightsOf[0])
	}
	var made []work.Part
	if t.made != nil {
		made = r.Each(d.Workers, t.made.size)
	}
	if t.made != nil && t.sums != nil {
		for range t.sums.others {
			t.sums.rooms = append(t.sums.rooms, r.Each(d.Workers, sumRows*t.made.each*t.made.columns))
		}
	}
	t.epilogue.lower(r, d.Workers, t.groups*t.padded, nhwc.RowsWith(f.pixels()*repeat, t.rows/repeat, repeat), len(f.block.extents(f.grid)))

	return func(s *work.Storage) []work.Phase {
		k := &tiledKernel{
			tiled: t, args: make([]workerArgs, d.Workers),
			src: s.Pieces(src), weights: s.Floats(weights), dst: s.Pieces(dst),
			packed: s.Scratch(packed), tiles: s.Scratches(tiles), rooms: s.Scratches(made),
		}
		if bias >= 0 {
			k.bias = s.Floats(bias)
		}
		k.waits = t.made != nil
		before, after := k.epilogue.bind(s, &k.boundEpilogue, k.product, k.padded)
		phases := append(before, work.Phase{Blocks: len(t.pieces), Run: k.pack}, work.Phase{Blocks: len(t.blocks), Run: k.run})
		return append(phases, after...)
	}
}

// workerArgs are the arguments of the kernels that a worker calls, away from those of the others.
type workerArgs struct {
	kern.Args
	_ [128]byte
}

// tiledKernel is a bound tiled.
type tiledKernel struct {
	*tiled
	args          []workerArgs
	src, dst      *work.Pieces
	weights, bias []float32
	packed        []float32
	tiles, rooms  [][]float32 // by worker; rooms where results wait to be stored
	boundEpilogue
}

// run computes a block.
func (k *tiledKernel) run(worker, block int) {
	b := &k.blocks[block]
	f := &k.families[b.family]
	if len(f.targets[0].taps) == 0 {
		k.clear(f, b)
		return
	}
	a := &k.args[worker].Args
	a.StepA = 4 * f.right * f.stride
	for c := 0; c < f.channels; c += f.chunk {
		n := min(f.chunk, f.channels-c)
		a.ReLU = 0
		if k.relu && c+n == f.channels {
			a.ReLU = 1
		}
		first := b.group*f.channels + c
		source := k.tiles[worker]
		if f.direct {
			source = k.src.All()[f.source(b.extent, first):]
		} else {
			f.fill(k.set, source, k.src, b.extent, first, n)
		}
		for i := range f.targets {
			g := &f.targets[i]
			a.StepC = 4 * k.stepC(f, g)
			for j := b.panel; j < b.panel+b.panels; j++ {
				columns := k.columns(j)
				vectors := k.set.Vectors(columns)
				width := vectors * k.set.Lanes
				panel := k.packed[k.panel(g, b.group, j):]
				a.Init = &panel[0]
				if c > 0 {
					a.Init = &kern.Zeros[0]
				}
				weights := panel[width*(1+len(g.taps)*f.narrow.Words(c)):]
				a.Mask = kern.Mask(columns)
				var dst, add []float32
				if k.made != nil {
					dst, add = k.room(worker, f, b, i, j, c == 0)
				} else {
					at := k.place(b, g, 0, 0) + j*k.set.Columns()
					dst = k.dst.All()[at:]
					if k.added != nil {
						add = k.added.All()[at:]
					}
				}
				if c > 0 {
					add = dst
				}
				depth := g.run * f.narrow.Words(n)
				kernels := k.set.Products[vectors]
				a.Depth = depth
				if f.pairs(g, k.set, columns) {
					kernels = k.set.Pairs
					a.Depth = depth / 2
				}
				for l := range b.spans[i] {
					s := &b.spans[i][l]
					a.Offs, a.Taps = &g.offs[s.reach.first], s.reach.count
					a.B = &weights[s.reach.first*depth*width]
					a.A, a.JumpA = &source[s.a], 4*s.jumpA
					a.C, a.JumpC = &dst[s.c], 4*s.jumpC
					a.From = nil
					if add != nil {
						a.From = &add[s.c]
					}
					kernels[s.rows](a)
				}
				if k.made != nil && c+n == f.channels && k.made.last(b, j) {
					k.store(worker, f, b, i, j)
				}
			}
		}
	}
	if k.made == nil && (k.then != nil || k.add != nil) {
		k.end(worker, b)
	}
}

// stepC is from a pixel of a target to the next where it is made.
func (t *tiled) stepC(f *family, g *tiledTarget) int {
	if t.made != nil {
		return t.made.step(f)
	}
	return g.stepW * t.dstC
}

// place is where a line of an image of a block of a target begins in dst, with the block's group.
func (t *tiled) place(b *tiledBlock, g *tiledTarget, image, line int) int {
	row := (b.image+image)*t.dstH + (b.line+line)*g.stepH + g.offH
	return (row*t.dstW+g.offW)*t.dstC + b.group*t.rows
}

// clear zeroes the pixels of a block that no tap reaches.
func (k *tiledKernel) clear(f *family, b *tiledBlock) {
	column := b.panel * k.set.Columns()
	n := min(b.panels*k.set.Columns(), k.rows-b.panel*k.set.Columns())
	for i := range f.targets {
		g := &f.targets[i]
		for m := range b.images {
			for l := range b.lines {
				at := k.place(b, g, m, l) + column
				for j := range f.width {
					if to := at + j*g.stepW*k.dstC; k.made != nil {
						clear(k.dst.Stored()[to:][:n])
					} else {
						clear(k.dst.All()[to:][:n])
					}
				}
			}
		}
	}
}
