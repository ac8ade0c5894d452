package product

import (
	"math"
	"slices"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
)

// tiled runs a product on the kernels of package kern, as an implicit matrix product: its left side is never written
// out.
type tiled struct {
	*product
	set     *kern.Set
	targets []tiledTarget
	panels  int // of a group: columns of the widest tile, fewer in the last
	padded  int // columns of a group's panels, including unused ones
	pieces  []piece
	blocks  []tiledBlock

	weightsOf [][]int // by tap, if pixels are folded
	made      *made   // not nil if results are stored as bfloat16, or come from tiles

	epilogue
}

// tiledTarget is a target with its source tiles; both have the same grid.
type tiledTarget struct {
	halo
	to     *target
	depth  int // taps × channels, or words of them
	deep   int // rows of a panel before conversion to words: a bias, and channels rounded up to whole words
	packed int // start of its packed weights
	pieces int // before those of its panels
	offs   []int
	run    int         // taps that are read as one
	steps  []tileSteps // of tiles, by chunk of channels
}

// piece is a panel of weights: the unit of packing.
type piece struct{ target, group, panel int }

// tiledBlock is a range of pixels × a range of a group's panels.
type tiledBlock struct {
	extent
	number        int // of the range of pixels, among those of the target
	target, group int
	panel, panels int
	spans         []span
	tiles         []tileGroup // instead of spans
}

// vectorised reports whether the kernels pay for products and sums with the given channels and rows of a group: a
// depthwise convolution would leave most lanes empty.
func vectorised(groups, channels, rows int) bool {
	return groups == 1 || channels >= 8 && rows >= 8
}

// The largest number of channels of a tile, with several taps and with one.
const (
	tileChannels   = 64
	singleChannels = 512
)

// directChannels is the number of channels up to which a source is always read in place. Wider pixels are copied if they
// are a multiple of samePlace elements, 4 KiB, apart: those of a tile would compete for cache lines.
const (
	directChannels = 256
	samePlace      = 1024
)

func newTiled(p *product, set *kern.Set, blocks, workers int, stored bool) *tiled {
	p, weightsOf := p.fold(set)
	t := &tiled{product: p, set: set, panels: work.Ceil(p.rows, set.Columns()), weightsOf: weightsOf,
		epilogue: epilogue{other: -1}}
	t.padded = set.Vectors(p.rows) * set.Lanes
	size := 0
	for i := range p.grids {
		t.targets = append(t.targets, newTiledTarget(&p.grids[i], set, p.stored))
		g := &t.targets[i]
		g.packed = size
		if len(g.taps) == 0 {
			continue
		}
		size += g.deep * t.padded * p.groups
		g.pieces = len(t.pieces)
		for group := range p.groups {
			for panel := range t.panels {
				t.pieces = append(t.pieces, piece{i, group, panel})
			}
		}
	}
	if stored || set.Tiles != nil {
		t.made = new(made)
	}
	t.cutBlocks(blocks, workers)
	return t
}

// newTiledTarget locates the taps of a target in tiles.
func newTiledTarget(to *target, set *kern.Set, stored bool) tiledTarget {
	narrow := set.Narrow
	g := tiledTarget{to: to}
	if len(to.taps) == 0 {
		g.halo = halo{grid: &to.grid, block: to.cut()}
		return g
	}
	limit := tileChannels
	if len(to.taps) == 1 {
		limit = singleChannels
	}
	if set.Tiles != nil {
		return newTileTarget(to, set, stored)
	}
	g.halo = newHalo(&to.grid, to.taps, limit, narrow)
	if (g.srcC <= directChannels || g.srcC%samePlace != 0) && narrow == nil {
		g.readDirectly()
	}
	g.depth = len(g.taps) * narrow.Words(g.channels)
	g.deep = 1 + len(g.taps)*narrow.Whole(g.channels)
	runs := g.runs(g.taps)
	g.run = runs[0].count
	if len(runs)*g.run != len(g.taps) || slices.ContainsFunc(runs, func(r rowOfTaps) bool { return r.count != g.run }) {
		g.run = 1
	}
	for j := 0; j < len(g.taps); j += g.run {
		tap := g.taps[j]
		g.offs = append(g.offs, 4*((tap.row-g.row)*g.tileWidth+tap.col-g.col)*g.stride)
	}
	return g
}

// cutBlocks lists the blocks. If the pixels make fewer than enough blocks, the columns are divided too, which costs
// more copies of the source.
func (t *tiled) cutBlocks(enough, workers int) {
	extents := 0
	for i := range t.targets {
		g := &t.targets[i]
		extents += len(g.block.extents(g.grid)) * t.groups
	}
	parts := t.parts(extents, min(work.Ceil(enough, extents), t.panels), workers)
	if t.made != nil {
		const least = 2 // panels that are stored together
		parts = work.Ceil(t.panels, t.made.prepare(t, max(least, work.Ceil(t.panels, parts))))
	}
	for i := range t.targets {
		g := &t.targets[i]
		spans, tiles := map[extent][]span{}, map[extent][]tileGroup{}
		for part := range parts {
			first, end := t.part(part, parts)
			for n, e := range g.block.extents(g.grid) {
				for group := range t.groups { // their channels share cache lines
					at := e
					at.image = 0
					switch {
					case t.set.Tiles != nil && tiles[at] == nil:
						tiles[at] = t.tileGroups(g, e)
					case t.set.Tiles == nil && spans[at] == nil:
						spans[at] = t.spans(g, e)
					}
					t.blocks = append(t.blocks, tiledBlock{e, n, i, group, first, end - first, spans[at], tiles[at]})
				}
			}
		}
	}
}

// part is the panels of a part of the columns, from the first to before the end. Parts differ by one panel at most, or
// with made all but the last one are equal.
func (t *tiled) part(i, parts int) (first, end int) {
	if t.made != nil {
		return i * t.made.each, min((i+1)*t.made.each, t.panels)
	}
	return t.even(i, parts)
}

func (t *tiled) even(i, parts int) (first, end int) {
	return i * t.panels / parts, (i + 1) * t.panels / parts
}

// parts is the number of parts of the columns, most at most, with which the workers end soonest if each runs its share
// of the blocks, and among about equal ones the largest. A block costs its columns and copies of its source, which are
// counted as columns.
func (t *tiled) parts(extents, most, workers int) (best int) {
	const begin, copies = 2, 8
	each := begin
	if g := &t.targets[0]; !g.direct {
		each += copies / max(1, len(g.taps))
	}
	least := math.Inf(1)
	for parts := 1; parts <= most; parts++ {
		longest, blocks := 0., parts*extents
		for w := range workers {
			sum := 0
			for b := w * blocks / workers; b < (w+1)*blocks/workers; b++ {
				first, end := t.even(b/extents, parts)
				sum += each + min(end*t.set.Columns(), t.rows) - first*t.set.Columns()
			}
			longest = max(longest, float64(sum))
		}
		if longest <= 1.02*least {
			best, least = parts, min(least, longest)
		}
	}
	return best
}

// pairs reports whether a panel of n columns uses the kernels that read two elements of the source at a time.
func (g *tiledTarget) pairs(set *kern.Set, n int) bool {
	return g.narrow == nil && set.Vectors(n) == 1 && g.run*g.channels%2 == 0 // then each chunk's part is even too
}

// columns is the number of columns of a panel within its group, vectors the number of vectors that hold them.
func (t *tiled) columns(panel int) int { return min(t.set.Columns(), t.rows-panel*t.set.Columns()) }

// panel is the start of a panel of the packed weights: a bias for each column, then the weights in the order of the
// kernels' reads.
func (t *tiled) panel(g *tiledTarget, group, panel int) int {
	return g.packed + g.deep*(group*t.padded+panel*t.set.Columns())
}

// lower reserves the scratch of t in r and returns its phases: packing the weights, then the blocks.
func (t *tiled) lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	size, tile := t.scratch()
	keep := t.keeps(t.product)
	packed := r.Keep(keep, size)
	tiles, split := r.Each(d.Workers, tile), splitRooms(r, t.set.Tiles, d.Workers)
	g := &t.targets[0]
	repeat := 1 // folded pixels are several of the activation
	if t.weightsOf != nil {
		repeat = len(t.weightsOf[0])
	}
	made, fresh := t.made.rooms(r, d.Workers), t.freshRooms(r, d.Workers)
	spread := t.merged.spread(r, weights)
	if t.made != nil && t.sums != nil {
		for range t.sums.reads {
			t.sums.rooms = append(t.sums.rooms, r.Each(d.Workers, sumRows*t.made.each*t.made.columns))
		}
	}
	t.epilogue.lower(r, keep, d.Workers, t.groups*t.padded, nhwc.RowsWith(g.pixels()*repeat, t.rows/repeat, repeat),
		len(g.block.extents(g.grid)))

	return func(s *work.Storage) []work.Phase {
		weights, spreads := spread(s)
		k := &tiledKernel{
			tiled: t, args: make([]workerArgs, d.Workers),
			src: s.Pieces(src), weights: weights, dst: s.Pieces(dst),
			packed: s.Scratch(packed), tiles: s.Scratches(tiles), rooms: s.Scratches(made),
			fresh: s.Scratches(fresh), splitters: newSplitters(t.set.Tiles, s.Scratches(split)),
			bad: make([]uint32, len(t.pieces)),
		}
		if bias >= 0 {
			k.bias = s.Floats(bias)
		}
		k.waits = t.made != nil
		before, after := k.epilogue.bind(s, keep, &k.boundEpilogue, k.product, k.padded)
		for i := range spreads {
			spreads[i].Once = keep
		}
		phases := append(spreads, before...)
		phases = append(phases, work.Phase{Blocks: len(t.pieces), Run: k.pack, Once: keep},
			work.Phase{Blocks: len(t.blocks), Run: k.run})
		return append(phases, after...)
	}
}

// scratch is the number of elements of the packed weights, and of a worker's source tile.
func (t *tiled) scratch() (size, tile int) {
	for i := range t.targets {
		g := &t.targets[i]
		size += g.deep * t.padded * t.groups
		if len(g.taps) > 0 {
			tile = max(tile, t.set.Planes()*g.size())
		}
	}
	return size, tile
}

// workerArgs are the arguments of a worker's kernel calls, on cache lines of their own.
type workerArgs struct {
	kern.Args
	tiles kern.TileArgs
	ahead ahead
	room  [kern.TileRows * kern.TileWidth]float32 // for tiles
	_     [128]byte
}

// tiledKernel is a bound tiled.
type tiledKernel struct {
	*tiled
	args          []workerArgs
	src, dst      *work.Pieces
	weights, bias []float32
	packed        []float32
	tiles, rooms  [][]float32 // by worker; rooms if results wait to be stored
	fresh         [][]float32 // by worker, for parts: sums of a chunk of channels
	splitters     []splitter  // by worker, for parts of float32
	bad           []uint32    // by piece: not 0 if a weight is not finite, for parts
	boundEpilogue
}

// run computes a block.
func (k *tiledKernel) run(worker, block int) {
	b := &k.blocks[block]
	g := &k.targets[b.target]
	if len(g.taps) == 0 {
		k.clear(g, b)
		return
	}
	if k.set.Tiles != nil {
		k.runTiles(worker, g, b)
		return
	}
	a := &k.args[worker]
	a.StepA, a.StepC = 4*g.right*g.stride, 4*k.stepC(g)
	for c := 0; c < g.channels; c += g.chunk {
		n := min(g.chunk, g.channels-c)
		first := b.group*g.channels + c
		a.ahead.start(k.set)
		if c+n == g.channels {
			k.fetchResults(&a.ahead, b)
		}
		if g.far() {
			k.fetchAfter(&a.ahead, block, c+n)
		}
		a.ReLU = 0
		if k.relu && c+n == g.channels {
			a.ReLU = 1
		}
		source := k.tiles[worker]
		if g.direct {
			source = k.src.All()[g.source(b.extent, first):]
		} else {
			g.fill(k.set, nil, source, k.src, b.extent, first, n)
		}
		for j := b.panel; j < b.panel+b.panels; j++ {
			columns := k.columns(j)
			vectors := k.set.Vectors(columns)
			width := vectors * k.set.Lanes
			panel := k.packed[k.panel(g, b.group, j):]
			a.Init = &panel[0]
			if c > 0 {
				a.Init = &kern.Zeros[0]
			}
			weights := panel[width*(1+len(g.taps)*g.narrow.Words(c)):]
			a.Mask = kern.Mask(columns)
			var dst, add []float32
			if k.made != nil {
				dst, add = k.room(worker, g, b, j, c == 0)
			} else {
				at := k.place(g, b, 0, 0) + j*k.set.Columns()
				dst = k.dst.All()[at:]
				if k.added != nil {
					add = k.added.All()[at:]
				}
			}
			if c > 0 {
				add = dst
			}
			depth := g.run * g.narrow.Words(n)
			kernels := k.set.Products[vectors]
			a.Depth = depth
			if g.pairs(k.set, columns) {
				kernels = k.set.Pairs
				a.Depth = depth / 2
			}
			for l := range b.spans {
				s := &b.spans[l]
				a.Offs, a.Taps = &g.offs[s.reach.first], s.reach.count
				a.B = &weights[s.reach.first*depth*width]
				a.A, a.JumpA = &source[s.a], 4*s.jumpA
				a.C, a.JumpC = &dst[s.c], 4*s.jumpC
				a.From = nil
				if add != nil {
					a.From = &add[s.c]
				}
				a.ahead.next(&a.Args)
				kernels[s.rows](&a.Args)
			}
			if k.made != nil && c+n == g.channels && k.made.last(b, j) {
				k.store(worker, g, b, j)
			}
		}
	}
	if k.made == nil && (k.then != nil || k.add != nil) {
		k.end(worker, b)
	}
}

// fetchResults adds to next what the epilogue of a block reads, then the results and their addend, which kernels fetch
// as they begin: what fits into besideCache.
func (k *tiledKernel) fetchResults(next *ahead, b *tiledBlock) {
	g := &k.targets[b.target]
	if !g.to.whole(k.product) {
		return
	}
	columns := min(b.panels*k.set.Columns(), k.rows-b.panel*k.set.Columns())
	at := k.place(g, b, 0, 0) + b.panel*k.set.Columns()
	rows, room := b.images*b.lines*g.width, besideCache
	fetch := func(x *work.Pieces) {
		if room -= 4 * rows * columns; room >= 0 {
			next.addPieces(x, at, rows, columns, k.dstC)
		}
	}
	for _, x := range k.reads {
		fetch(x)
	}
	fetch(k.dst)
	if k.added != nil {
		fetch(k.added)
	}
}

// fetchAfter adds to next the source of the next chunk of channels of a block, which begins at c, or of the next block.
func (k *tiledKernel) fetchAfter(next *ahead, block, c int) {
	b := &k.blocks[block]
	g := &k.targets[b.target]
	if c == g.channels {
		if block++; block == len(k.blocks) {
			return
		}
		b, c = &k.blocks[block], 0
		if g = &k.targets[b.target]; len(g.taps) == 0 {
			return
		}
	}
	next.addSource(&g.halo, k.src, b.extent, b.group*g.channels+c, min(g.chunk, g.channels-c))
}

// stepC is the distance between pixels of a target in the memory that receives the results.
func (t *tiled) stepC(g *tiledTarget) int {
	if t.made != nil {
		return t.made.step(g)
	}
	return g.to.stepW * t.dstC
}

// place is the start in dst of a line of an image of a block, for the block's group.
func (t *tiled) place(g *tiledTarget, b *tiledBlock, image, line int) int {
	row := (b.image+image)*t.dstH + (b.line+line)*g.to.stepH + g.to.offH
	return (row*t.dstW+g.to.offW)*t.dstC + b.group*t.rows
}

// clear zeroes the pixels of a block that no tap reaches.
func (k *tiledKernel) clear(g *tiledTarget, b *tiledBlock) {
	column := b.panel * k.set.Columns()
	n := min(b.panels*k.set.Columns(), k.rows-b.panel*k.set.Columns())
	for m := range b.images {
		for l := range b.lines {
			at := k.place(g, b, m, l) + column
			for j := range g.width {
				if to := at + j*g.to.stepW*k.dstC; k.dst.Stored() != nil {
					clear(k.dst.Stored()[to:][:n])
				} else {
					clear(k.dst.All()[to:][:n])
				}
			}
		}
	}
}
