package product

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// product is a sum of matrix products that maps the channels of pixels to an image:
//
//	dst[pixel, g·rows + r] = Σ over taps t and channels c of src[pixel + t, g·channels + c] · w[t, c, r, g] + bias
//
// A convolution is one product, its gradient with respect to the input is one product for each phase of the stride, and
// a linear layer is one with a single pixel per image.
type product struct {
	grids []target

	groups, rows     int  // rows is the number of result channels of a group
	rounded          bool // the result is stored as bfloat16 in that mode
	dstH, dstW, dstC int

	fixed  bool    // weights and bias are the same in all runs
	stored bool    // the source is stored as bfloat16
	merged *merged // nil, or how the weights of groups become those of larger groups

	// The strides of the weights in memory.
	weightTap, weightRow, weightChannel, weightGroup int
}

// target is a grid whose pixel (n, i, j) computes pixel (n, i·stepH + offH, j·stepW + offW) of dst.
type target struct {
	grid
	stepH, stepW, offH, offW int
}

// whole reports whether pixels of the grid are pixels of dst, in the same order.
func (t *target) whole(p *product) bool {
	return t.stepH == 1 && t.stepW == 1 && t.height == p.dstH && t.width == p.dstW
}

// pixelTile is the number of pixels of a block.
const pixelTile = gemmRows

// productBlock is a part of a product: a range of pixels of a grid × a range of a group's rows.
type productBlock struct {
	grid, group   int
	pixel, pixels int
	row, rows     int
}

// blocks cuts a large enough product into several blocks for each of a few dozen workers.
func (p *product) blocks() []productBlock {
	tiles := 0
	for i := range p.grids {
		tiles += (p.grids[i].pixels() + pixelTile - 1) / pixelTile * p.groups
	}
	const enough = 32
	rows := max(16, (p.rows*tiles/enough+3)/4*4)
	var list []productBlock
	for i := range p.grids {
		n := p.grids[i].pixels()
		for q := 0; q < n; q += pixelTile {
			for g := range p.groups {
				for r := 0; r < p.rows; r += rows {
					list = append(list, productBlock{i, g, q, min(pixelTile, n-q), r, min(rows, p.rows-r)})
				}
			}
		}
	}
	return list
}

// panel is a chunk's weights for one group: rows × the chunk's inner dimension.
type panel struct {
	*chunk
	group int
	off   int // in the packed weights
}

// kernels returns the kernels of p, or nil for plain Go.
func (d Options) kernels(p *product) *kern.Set {
	if d.tileable(p) {
		return d.Tiles.Set()
	}
	if vectorised(p.groups, p.grids[0].channels, p.rows) {
		return d.set()
	}
	return nil
}

// lower reserves the scratch of p in r and returns its phases: packing the weights, then the blocks. bias is a value of
// the group or -1.
func (p *product) lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind {
	if d.kernels(p) != nil || p.depthwise() || d.groups(p) != nil {
		return d.vector(p).lower(d, r, src, weights, bias, dst)
	}
	prepare := p.prepare(d, r, 1)
	return func(s *work.Storage) []work.Phase {
		k := prepare(s)[0]
		k.src, k.weights, k.dst = s.Floats(src), s.Floats(weights), s.Floats(dst)
		if bias >= 0 {
			k.bias = s.Floats(bias)
		}
		return together([]*productKernel{k})
	}
}

// together joins the phases of the kernels of one product.
func together(kernels []*productKernel) []work.Phase {
	panels, blocks := len(kernels[0].panels)*kernels[0].packSplit(), len(kernels[0].blocks)
	return []work.Phase{
		{Blocks: len(kernels) * panels, Run: func(w, i int) { kernels[i/panels].pack(w, i%panels) }},
		{Blocks: len(kernels) * blocks, Run: func(w, i int) { kernels[i/blocks].run(w, i%blocks) }},
	}
}

// prepare reserves the scratch of copies products like p in r. The caller sets their operands and results.
func (p *product) prepare(d Options, r *work.Room, copies int) func(s *work.Storage) []*productKernel {
	var panels []panel
	first := make([]int, len(p.grids)) // panel of a grid
	chunks := make([][]chunk, len(p.grids))
	size, depth := 0, 0
	for i := range p.grids {
		first[i] = len(panels)
		chunks[i] = p.grids[i].chunks()
		for g := range p.groups {
			for j := range chunks[i] {
				c := &chunks[i][j]
				panels = append(panels, panel{c, g, size})
				size += c.ld * p.rows
				depth = max(depth, c.ld)
			}
		}
	}
	packed := make([]work.Part, copies)
	for i := range packed {
		packed[i] = r.Floats(size)
	}
	gathered := r.Each(d.Workers, pixelTile*depth)
	blocks := p.blocks()
	columns := 0
	for _, b := range blocks {
		columns = max(columns, b.rows)
	}
	var tiles []work.Part
	if slices.ContainsFunc(p.grids, func(t target) bool { return !t.whole(p) }) {
		tiles = r.Each(d.Workers, pixelTile*columns)
	} else {
		tiles = make([]work.Part, d.Workers)
	}

	return func(s *work.Storage) []*productKernel {
		kernels := make([]*productKernel, copies)
		for i := range kernels {
			kernels[i] = &productKernel{
				product: p, rounds: d.BFloat16, blocks: blocks, panels: panels, first: first, chunks: chunks,
				packed: s.Scratch(packed[i]), gathered: s.Scratches(gathered), tiles: s.Scratches(tiles),
			}
		}
		return kernels
	}
}

// productKernel is a bound product.
type productKernel struct {
	*product
	rounds bool // the factors
	blocks []productBlock
	panels []panel
	first  []int
	chunks [][]chunk

	src, weights, bias, dst []float32
	packed                  []float32
	gathered, tiles         [][]float32 // by worker
}

// packRows is the number of rows of a panel that are packed at a time.
const packRows = 16

func (k *productKernel) packSplit() int { return (k.rows + packRows - 1) / packRows }

// pack copies some rows of a panel.
func (k *productKernel) pack(_, block int) {
	split := k.packSplit()
	c := k.panels[block/split]
	r := block % split * packRows
	n := min(packRows, k.rows-r)
	dst := k.packed[c.off+r*c.ld:][:n*c.ld]
	for t, tap := range c.taps {
		channels := c.k / len(c.taps)
		w := k.weights[tap.weight*k.weightTap+c.group*k.weightGroup+r*k.weightRow:]
		if k.weightChannel == 1 {
			for i := range n {
				copy(dst[i*c.ld+t*channels:][:channels], w[i*k.weightRow:])
			}
			continue
		}
		for j := range channels {
			column := dst[t*channels+j:]
			for i := range n {
				column[i*c.ld] = w[j*k.weightChannel+i*k.weightRow]
			}
		}
	}
	for i := range n {
		clear(dst[i*c.ld+c.k : (i+1)*c.ld])
	}
	if k.rounds {
		kern.RoundAll(dst)
	}
}

// run computes a block.
func (k *productKernel) run(worker, block int) {
	b := k.blocks[block]
	t := &k.grids[b.grid]
	chunks := k.chunks[b.grid]
	whole := t.whole(k.product)
	column := b.group*k.rows + b.row
	var c []float32
	var ldc int
	if whole {
		c, ldc = k.dst[b.pixel*k.dstC+column:], k.dstC
	} else {
		c, ldc = k.tiles[worker], b.rows
	}
	if len(chunks) == 0 {
		for i := range b.pixels {
			clear(c[i*ldc:][:b.rows])
		}
	}
	for i := range chunks {
		ch := &chunks[i]
		w := k.packed[k.panels[k.first[b.grid]+b.group*len(chunks)+i].off+b.row*ch.ld:]
		if t.direct() && !k.rounds {
			a := k.src[b.pixel*t.srcC+b.group*t.channels:]
			gemm(b.pixels, b.rows, ch.k, a, t.srcC, w, ch.ld, c, ldc, false)
			continue
		}
		a := k.gathered[worker]
		t.rows(a, ch, k.src, b.group*t.channels, b.pixel, b.pixels)
		if k.rounds {
			kern.RoundAll(a[:b.pixels*ch.ld])
		}
		gemm(b.pixels, b.rows, ch.ld, a, ch.ld, w, ch.ld, c, ldc, i > 0)
	}
	if k.bias != nil {
		bias := k.bias[column:][:b.rows]
		for i := range b.pixels {
			row := c[i*ldc:][:len(bias)]
			for j, v := range bias {
				row[j] += v
			}
		}
	}
	if !whole {
		k.scatter(t, b, c)
	}
}

// scatter copies a tile to its pixels of dst.
func (k *productKernel) scatter(t *target, b productBlock, tile []float32) {
	n, i, j := t.at(b.pixel)
	for q := range b.pixels {
		pixel := (n*k.dstH+i*t.stepH+t.offH)*k.dstW + j*t.stepW + t.offW
		copy(k.dst[pixel*k.dstC+b.group*k.rows+b.row:][:b.rows], tile[q*b.rows:])
		n, i, j = t.next(n, i, j)
	}
}
