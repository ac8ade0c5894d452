package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// winograd runs a convolution of 3×3 taps with stride 1 by Winograd's algorithm F(4×4, 3×3): a tile of 4×4 pixels is
// computed from 36 values, each with a matrix product of its own. A block of tiles is transformed, multiplied and
// transformed back while it is in a cache.
type winograd struct {
	*product
	set     *kern.Set
	padded  int // rows of the product, rounded up to whole vectors
	columns int // of them at a time
	pieces  []winogradPiece
	blocks  []winogradBlock
	epilogue
	tiling
	sumBlocks int
}

// winogradPiece is the weights that are transformed at a time: a panel of columns for some channels.
type winogradPiece struct{ panel, channel, channels int }

// depth is the number of channels of a product that are summed at a time; then these sums are summed. Summing all of
// 512 channels in sequence has three times the error.
const depth = 64

// packChannels is the number of channels of a panel that are transformed at a time.
const packChannels = 16

// winogradBlock is a range of lines of tiles × a range of columns. If tiles are few the columns are divided too, which
// costs more transforms of the source.
type winogradBlock struct {
	extent
	number   int // of the lines of tiles
	from, to int // columns
}

func newWinograd(p *product, set *kern.Set, enough int) *winograd {
	w := &winograd{product: p, set: set, padded: set.Vectors(p.rows) * set.Lanes, epilogue: epilogue{other: -1}}
	const most = 64
	w.columns = min(w.padded, most)
	g := &p.grids[0].grid
	w.tiling.grid = g
	w.tiling = newTiling(g, 4*values*(w.channelsStride()+w.columns))
	extents := w.extents()
	chunks := work.Ceil(p.rows, w.columns)
	each := work.Ceil(chunks, work.Ceil(enough, len(extents))) * w.columns
	for j := 0; j < p.rows; j += each {
		for i, e := range extents {
			w.blocks = append(w.blocks, winogradBlock{e, i, j, min(j+each, p.rows)})
		}
	}
	w.sumBlocks = len(extents)
	for panel := range work.Ceil(p.rows, set.Columns()) {
		for c := 0; c < g.channels; c += packChannels {
			w.pieces = append(w.pieces, winogradPiece{panel, c, min(packChannels, g.channels-c)})
		}
	}
	return w
}

// channelsStride is the number of channels of a transformed tile, rounded up to whole vectors.
func (w *winograd) channelsStride() int {
	return w.set.Vectors(w.channels) * w.set.Lanes
}

// panelColumns is the number of columns of a panel.
func (w *winograd) panelColumns(panel int) int {
	return min(w.set.Columns(), w.rows-panel*w.set.Columns())
}

// panelWidth is panelColumns rounded up to whole vectors; panelStart is the start of the panel among the packed
// weights.
func (w *winograd) panelWidth(panel int) int {
	return w.set.Vectors(w.panelColumns(panel)) * w.set.Lanes
}
func (w *winograd) panelStart(panel int) int {
	return values * w.channels * panel * w.set.Columns()
}

// lower reserves the scratch of w in r and returns its phases: transforming the weights, then the blocks.
func (w *winograd) lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	workers := d.Workers
	keep := w.keeps(w.product)
	packed, biases := r.Keep(keep, values*w.channels*w.padded), r.Keep(keep, w.padded)
	zeros := r.Floats(w.srcW * w.srcC)
	lines := r.Each(workers, w.columnScratch(w.set, kern.Window))
	tiles := r.Each(workers, values*w.apart(w.channelsStride()))
	products := r.Each(workers, values*w.apart(w.columns))
	var turned []work.Part
	if w.weightRow != 1 {
		turned = r.Each(workers, kern.TileTaps*kern.TileTaps*packChannels*w.set.Columns())
	}
	w.epilogue.lower(r, keep, workers, w.padded, nhwc.RowsWith(w.pixels(), w.rows, 1), w.sumBlocks)
	spread := w.merged.spread(r, weights)

	return func(s *work.Storage) []work.Phase {
		weights, spreads := spread(s)
		k := &winogradKernel{
			winograd: w, args: make([]winogradArgs, workers),
			src: s.Floats(src), weights: weights, dst: s.Floats(dst),
			packed: s.Scratch(packed), biases: s.Scratch(biases),
			lines: s.Scratches(lines), tiles: s.Scratches(tiles), products: s.Scratches(products), turned: s.Scratches(turned),
		}
		k.windows = w.source(w.set, k.src, s.Scratch(zeros))
		if bias >= 0 {
			k.bias = s.Floats(bias)
		}
		for i := range spreads {
			spreads[i].Once = keep
		}
		before, after := w.epilogue.bind(s, keep, &k.boundEpilogue, w.product, w.padded)
		phases := append(append(spreads, before...), work.Phase{Blocks: 1, Run: func(int, int) { clear(k.windows.zeros) }},
			work.Phase{Blocks: 1, Run: k.begin, Once: keep}, work.Phase{Blocks: len(w.pieces), Run: k.pack, Once: keep},
			work.Phase{Blocks: len(w.blocks), Run: k.run})
		return append(phases, after...)
	}
}

// winogradArgs are the arguments of a worker's kernel calls, on cache lines of their own.
type winogradArgs struct {
	spread  kern.Spread
	product kern.Args
	collect kern.Collect
	off     int // 0, the only offset of product
	_       [128]byte
}

// winogradKernel is a bound winograd.
type winogradKernel struct {
	*winograd
	args                    []winogradArgs
	src, weights, bias, dst []float32
	packed                  []float32 // for each of the 36 values: panels of columns for each channel
	biases                  []float32 // a whole number of vectors
	windows                 windows
	lines, tiles, products  [][]float32
	turned                  [][]float32
	boundEpilogue
}

// begin sets the biases.
func (k *winogradKernel) begin(int, int) {
	clear(k.biases)
	copy(k.biases, k.bias)
	if k.gain != nil {
		k.vectors.Scale(k.biases, k.biases, k.gain)
		k.vectors.Add(k.biases, k.biases, k.shift)
	}
}

// pack transforms the weights of a piece.
func (k *winogradKernel) pack(worker, block int) {
	p := k.pieces[block]
	channels := k.channels
	n, width := k.panelColumns(p.panel), k.panelWidth(p.panel)
	dst := k.packed[k.panelStart(p.panel):][:values*channels*width]
	taps := k.taps
	from := k.weights[p.panel*k.set.Columns()*k.weightRow+p.channel*k.weightChannel:]
	row, column, channel := (taps[3].weight-taps[0].weight)*k.weightTap, (taps[1].weight-taps[0].weight)*k.weightTap,
		k.weightChannel
	first := taps[0].weight * k.weightTap
	if k.weightRow != 1 {
		size := p.channels * width
		for i, t := range taps {
			k.set.Transpose(k.turned[worker][i*size:], width, from[t.weight*k.weightTap:], k.weightRow, n, p.channels)
		}
		from, first, row, column, channel = k.turned[worker], 0, kern.TileTaps*size, size, width
	}
	a := &k.args[worker].spread
	a.Columns, a.StepC, a.Tiles = kern.TileTaps, 4*column, 1
	a.To, a.Scratch = &k.lines[worker][0], &k.lines[worker][0]
	a.StepP = 4 * channels * width
	for c := range p.channels {
		for j := 0; j < n; j += k.set.Lanes {
			a.Mask = kern.Mask(min(k.set.Lanes, n-j))
			for i := range kern.TileTaps {
				a.Rows[i] = &from[first+i*row+c*channel+j]
			}
			a.Dst = &dst[(p.channel+c)*width+j]
			k.set.Winograd.Weight(a)
		}
	}
	if k.gain != nil {
		gain := k.gain[p.panel*k.set.Columns():][:width]
		for v := range values {
			x := dst[(v*channels+p.channel)*width:][:p.channels*width]
			k.vectors.Scale(x, x, gain)
		}
	}
}

// run computes a block.
func (k *winogradKernel) run(worker, block int) {
	b := &k.blocks[block]
	args := &k.args[worker]
	k.spread(k.set, &args.spread, &k.windows, k.lines[worker], b.extent, 0, k.channels, k.tiles[worker],
		k.channelsStride())
	count := b.images * b.lines * k.perLine
	for j := b.from; j < b.to; j += k.columns {
		k.multiply(worker, j, count)
		k.collect(worker, b.extent, j)
	}
	if k.then != nil || k.add != nil {
		line, lines := b.line*kern.TileResults, b.lines*kern.TileResults
		lines = min(lines, k.dstH-line)
		from := (b.image*k.dstH + line) * k.dstW * k.dstC
		k.endColumns(worker, b.number, b.from, b.to, from, k.dstC, ((b.images-1)*k.dstH+lines)*k.dstW, k.dst[from+b.from:],
			k.dstC)
	}
}

// multiply sets the products of a worker for count columns from j on.
func (k *winogradKernel) multiply(worker, j, count int) {
	args := &k.args[worker]
	a := &args.product
	tiles, products := k.tiles[worker], k.products[worker]
	channels, stride := k.channels, k.channelsStride()
	stepV, stepM := k.apart(stride), k.apart(k.columns)
	a.Offs, a.Taps = &args.off, 1
	a.StepA, a.JumpA = 4*stride, 4*kern.Half*stride
	a.StepC, a.JumpC = 4*k.columns, 4*kern.Half*k.columns
	a.Init, a.Mask = &kern.Zeros[0], kern.Mask(k.set.Columns())
	end := min(j+k.columns, k.rows)
	parts := work.Ceil(count, k.set.Rows)
	for v := range values {
		for p := j / k.set.Columns(); p*k.set.Columns() < end; p++ {
			width := k.panelWidth(p)
			vectors := width / k.set.Lanes
			a.Mask = kern.Mask(width)
			b := k.packed[k.panelStart(p)+v*channels*width:]
			kernels := k.set.Products[vectors]
			for i := range parts {
				m, to := i*count/parts, (i+1)*count/parts
				a.C, a.From = &products[v*stepM+m*k.columns+p*k.set.Columns()-j], nil
				for c := 0; c < channels; c += depth {
					a.A, a.B, a.Depth = &tiles[v*stepV+m*stride+c], &b[c*width], min(depth, channels-c)
					kernels[to-m](a)
					a.From = a.C
				}
			}
		}
	}
}

// collect transforms the products of a block back, for the columns from j on.
func (k *winogradKernel) collect(worker int, b extent, j int) {
	a := &k.args[worker].collect
	lanes := k.set.Lanes
	products := k.products[worker]
	a.Scratch = &k.lines[worker][0]
	a.Floor = &kern.Lowest[0]
	if k.relu {
		a.Floor = &kern.Zeros[0]
	}
	a.StepT, a.StepP = 4*k.columns, 4*k.apart(k.columns)
	a.StepC, a.StepRow, a.StepTile = 4*k.dstC, 4*k.dstW*k.dstC, 4*kern.TileResults*k.dstC
	a.Columns = k.dstW
	tile := 0
	for n := range b.images {
		for l := range b.lines {
			line := (b.line + l) * kern.TileResults
			a.Rows = min(kern.TileResults, k.dstH-line)
			for c := j; c < min(j+k.columns, k.rows); c += lanes {
				at := ((b.image+n)*k.dstH+line)*k.dstW*k.dstC + c
				a.Src, a.Dst, a.Bias = &products[tile*k.columns+c-j], &k.dst[at], &k.biases[c]
				a.From = nil
				if k.added != nil {
					a.From = &k.added.All()[at]
				}
				tail := 0
				if c+lanes > k.rows {
					tail = 1
				}
				a.Mask = kern.Mask(min(lanes, k.rows-c))
				k.set.Winograd.Result[tail](a)
			}
			tile += k.perLine
		}
	}
}

// vectorProduct is a product by vector kernels: tiled or winograd.
type vectorProduct interface {
	way
	end() *epilogue
}

func (t *tiled) end() *epilogue    { return &t.epilogue }
func (w *winograd) end() *epilogue { return &w.epilogue }

// vector chooses the implementation of a product that has kernels.
func (d Options) vector(p *product) vectorProduct {
	if k := d.groups(p); k != nil {
		return newGrouped(p, k, d)
	}
	set := d.kernels(p)
	if set == nil {
		return newChannelwise(p)
	}
	if set.Tiles == nil && p.isWinograd() && d.prefersWinograd(&p.grids[0].grid, p.rows, set.Lanes) {
		return newWinograd(p, set, d.blocks())
	}
	return newTiled(p, set, d.shares(), d.Workers, d.BFloat16 && p.rounded)
}

// isWinograd reports whether p is a convolution, or a gradient with respect to its input, that winograd supports.
func (p *product) isWinograd() bool {
	if p.groups != 1 || len(p.grids) != 1 || !p.grids[0].whole(p) {
		return false
	}
	return p.grids[0].square()
}

// square reports whether the taps of g are 3×3 adjacent pixels, at each pixel of the source.
func (g *grid) square() bool {
	if g.rowStep != 1 || g.colStep != 1 || len(g.taps) != kern.TileTaps*kern.TileTaps {
		return false
	}
	for i, t := range g.taps {
		if t.row != g.taps[0].row+i/kern.TileTaps || t.col != g.taps[0].col+i%kern.TileTaps {
			return false
		}
	}
	return true
}

// isWinograd reports whether o is the gradient with respect to the weights of such a convolution.
func (o *outer) isWinograd() bool { return o.groups == 1 && o.square() }

// prefersWinograd reports whether Winograd's algorithm may be used and is faster, for a product of a grid with the
// given rows. The limits are from BenchmarkWinograd on amd64; NEON uses the same numbers. With fewer channels or rows
// than least the transforms cost more than the products save, and with few tiles the transforms of the weights do. If
// much of the tiles lies outside the image, there is nothing to save.
func (d Options) prefersWinograd(g *grid, rows, least int) bool {
	const pixels = 8 // of a tile on average, at least
	n := g.images * tilesOf(g.height, g.width)
	return d.Winograd && !d.BFloat16 && (d.AlwaysWinograd ||
		min(g.channels, rows) >= least && n >= leastTiles && g.pixels() >= pixels*n)
}

const leastTiles = 40

// tilesOf is the number of tiles of an image.
func tilesOf(height, width int) int {
	return work.Ceil(height, kern.TileResults) * work.Ceil(width, kern.TileResults)
}

// SameWay reports whether a convolution gives the same bits for n images as for fewer: whether their number does not
// decide on Winograd's algorithm. Shapes are those of its weights and of its result.
func SameWay(o op.Conv2D, n, fewer int, weights, result op.Shape) bool {
	tiles := tilesOf(result[2], result[3])
	return o.Groups > 1 || weights[2]*weights[3] != kern.TileTaps*kern.TileTaps ||
		fewer*tiles >= leastTiles || n*tiles < leastTiles
}
