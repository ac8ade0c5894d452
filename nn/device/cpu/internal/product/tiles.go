package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// tiles reports whether products with the given channels and rows of a group run in tiles.
func (d Options) tiles(channels, rows int) bool {
	return d.Tiles != nil && min(channels, rows) >= kern.TileWidth
}

// The largest number of channels that are copied at a time for tiles, with several taps and with one: fewer stores of
// unfinished sums, and a copy that still stays in the second level cache.
const (
	tilesChannels       = 512
	tilesSingleChannels = 2048
	// The same for float32 in two or three parts.
	partsChannels       = 256
	partsSingleChannels = 768
)

// tileable reports whether p runs in tiles: with enough channels, or with few that lie side by side under each line of
// taps, as in a first convolution. In parts of float32 it also has to be faster so.
func (d Options) tileable(p *product) bool {
	if d.Tiles != nil && d.Tiles.Parts > 0 && (p.merged != nil || !d.partsPay(p)) {
		return false
	}
	if d.tiles(p.grids[0].channels, p.rows) {
		return true
	}
	return d.tiles(kern.TileWidth, p.rows) && p.groups == 1 && len(p.grids) == 1 && p.weightRow == 1 &&
		p.grids[0].tapColumns() > 1
}

// newTileTarget is newTiledTarget for tiles. A source that is stored as bfloat16 is read in place where rows of it are
// whole steps. Few channels lie without gaps: a step then has the channels of several taps of a line, and behind the
// last one whatever follows, times 0.
func newTileTarget(to *target, set *kern.Set, stored bool) tiledTarget {
	limits := [2]int{tilesChannels, tilesSingleChannels}
	if set.Tiles.Parts > 0 {
		limits = [2]int{partsChannels, partsSingleChannels}
	}
	limit := limits[0]
	if len(to.taps) == 1 {
		limit = limits[1]
	}
	narrow := set.Narrow
	few := to.channels < kern.TileWidth
	if few {
		n := *narrow
		n.Block, narrow = 0, &n
	}
	g := tiledTarget{to: to, halo: newHalo(&to.grid, to.taps, limit, narrow), run: 1}
	if stored && g.channels%kern.TileDepth == 0 && g.srcC%kern.TileDepth == 0 {
		g.readDirectly()
		if g.direct {
			g.chunk = g.channels
		}
	}
	runs := make([]rowOfTaps, len(g.taps))
	for i, tap := range g.taps {
		runs[i] = rowOfTaps{tap, 1, ((tap.row-g.row)*g.tileWidth + tap.col - g.col) * g.stride}
	}
	if few {
		runs = g.runs(g.taps)
		g.run = runs[0].count
	}
	var chunks [][]int
	for c := 0; c < g.channels; c += g.chunk {
		words := g.run * g.narrow.Words(min(g.chunk, g.channels-c))
		var offs []int
		for _, r := range runs {
			for w := 0; w < words; w += kern.TileWidth {
				offs = append(offs, 4*(r.off+w))
			}
		}
		chunks = append(chunks, offs)
		g.depth += kern.TileWidth * len(offs)
	}
	for _, offs := range chunks {
		g.steps = append(g.steps, g.stepsOf(set.Tiles, offs))
	}
	g.deep = 1 + set.Planes()*g.depth
	return g
}

// tileSteps are the steps of a chunk of channels, by the number of tiles of columns.
type tileSteps struct {
	steps [3][]kern.TileStep
	rows  int // of words of a part
}

// stepsOf returns the steps of a chunk with the given places in the source. Parts of the source are tiles, one behind
// the other, and so are the words of parts of the weights.
func (g *tiledTarget) stepsOf(t *kern.Tiles, offs []int) tileSteps {
	s := tileSteps{rows: kern.TileWidth * len(offs)}
	for columns := 1; columns <= 2; columns++ {
		row := 4 * columns * kern.TileWidth
		s.steps[columns] = t.Steps(len(offs), func(i, a, b int) kern.TileStep {
			return kern.TileStep{A: offs[i] + 4*a*g.size(), B: row * (b*g.depth + i*kern.TileWidth)}
		})
	}
	return s
}

// tileGroup is pixels of a block: spans of equally many rows, in pairs.
type tileGroup struct {
	rows  int
	spans [][2]kern.TileSpan
}

// tileGroups cuts the pixels of a block into tiles. The last span of an odd number is computed twice.
func (t *tiled) tileGroups(g *tiledTarget, e extent) []tileGroup {
	if len(g.taps) == 0 {
		return nil
	}
	spans := map[int][]kern.TileSpan{}
	stepA, stepC := 4*g.right*g.stride, 4*t.stepC(g)
	if g.direct {
		stepA = 2 * g.srcC
	}
	line := func(a, c, pixels int) {
		parts := work.Ceil(pixels, kern.TileRows)
		for k := range parts {
			x, end := k*pixels/parts, (k+1)*pixels/parts
			spans[end-x] = append(spans[end-x], kern.TileSpan{A: a + x*stepA, C: c + x*stepC})
		}
	}
	if g.contiguous() {
		line(0, 0, e.images*e.lines*g.width)
	} else {
		for n := range e.images {
			for i := range e.lines {
				line(4*g.at(n, i, 0), (n*e.lines+i)*g.width*stepC, g.width)
			}
		}
	}
	var list []tileGroup
	for rows := kern.TileRows; rows > 0; rows-- {
		s := spans[rows]
		if len(s) == 0 {
			continue
		}
		group := tileGroup{rows: rows}
		for i := 0; i < len(s); i += 2 {
			group.spans = append(group.spans, [2]kern.TileSpan{s[i], s[min(i+1, len(s)-1)]})
		}
		list = append(list, group)
	}
	return list
}

// runTiles computes a block.
func (k *tiledKernel) runTiles(worker int, g *tiledTarget, b *tiledBlock) {
	a, s := &k.args[worker].tiles, of(k.splitters, worker)
	if s != nil {
		s.bad = 0
	}
	a.StepA, a.StepC = 4*g.right*g.stride, 4*k.stepC(g)
	words := 1 // rows of a panel: a bias, then words
	for i, steps := range g.steps {
		c := i * g.chunk
		n := min(g.chunk, g.channels-c)
		first := b.group*g.channels + c
		if g.direct {
			a.A, a.StepA = &k.src.Stored()[g.source(b.extent, first)], 2*g.srcC
		} else {
			tile := k.tiles[worker]
			if g.run > 1 {
				clear(tile[:k.set.Planes()*g.size()]) // elements behind the last pixel must be finite
			}
			g.fill(k.set, s, tile, k.src, b.extent, first, n)
			a.A = (*uint16)(unsafe.Pointer(&tile[0]))
		}
		for j := b.panel; j < b.panel+b.panels; j++ {
			columns := k.columns(j)
			vectors := k.set.Vectors(columns)
			width := vectors * k.set.Lanes
			panel := k.packed[k.panel(g, b.group, j):]
			a.Steps, a.Depth = &steps.steps[vectors][0], len(steps.steps[vectors])
			dst, _ := k.room(worker, g, b, j, false)
			a.Init, a.Add, a.C = nil, 0, &dst[0]
			switch {
			case s != nil && c > 0:
				a.C = &k.fresh[worker][k.made.at(g, b, j)]
			case s != nil:
			case c > 0:
				a.Add = 1
			case k.bias != nil:
				a.Init = &panel[0]
			}
			a.B = (*uint32)(unsafe.Pointer(&panel[width*words]))
			for l := range b.tiles {
				t := &b.tiles[l]
				a.Config = kern.Configure(t.rows, columns)
				a.Spans, a.Pairs = &t.spans[0], len(t.spans)
				k.set.Tiles.Products[vectors](a)
			}
			if s != nil && c > 0 {
				k.addRows(g, b, dst, k.fresh[worker][k.made.at(g, b, j):], k.stepC(g), columns)
			}
			if i+1 < len(g.steps) {
				continue
			}
			if s != nil && k.bias != nil {
				k.addRows(g, b, dst, panel, 0, columns)
			}
			if s != nil && s.bad|k.bad[g.pieces+b.group*k.panels+j] != 0 {
				k.again(worker, g, b, j)
			}
			if k.made.last(b, j) {
				k.store(worker, g, b, j)
			}
		}
		words += steps.rows
	}
}

// packTiles writes a panel of n columns for tiles: a row of biases, then words of two channels in the order of steps,
// for each part of float32 if s is not nil. room is a worker's.
func (k *tiledKernel) packTiles(s *splitter, g *tiledTarget, p piece, panel, room []float32, n, width int) {
	init := panel[:width]
	clear(init)
	first := p.panel * k.set.Columns()
	if k.bias != nil {
		copy(init[:n], k.bias[p.group*k.rows+first:])
	}
	dst, plane := panel[width:], g.depth*width
	w := k.weights[p.group*k.weightGroup+first*k.weightRow:]
	for c := 0; c < g.channels; c += g.chunk {
		channels := min(g.chunk, g.channels-c)
		words := g.narrow.Words(channels)
		for t := 0; t < len(g.taps); t += g.run {
			for _, tap := range g.taps[t : t+g.run] {
				from := w[tap.weight*k.weightTap+c*k.weightChannel:]
				switch {
				case s != nil && k.weightRow == 1:
					k.splitRows(s, g, dst, from, plane, channels, n, width)
				case s != nil:
					k.splitColumns(s, g, dst, from, room, plane, channels, n, width)
				case k.weightRow == 1:
					k.set.Tiles.PackedRows(g.narrow, dst, from, room, k.weightChannel, channels, n, width)
				default:
					k.set.Tiles.PackedColumns(g.narrow, dst, from, room, k.weightRow, channels, n, width)
				}
				dst = dst[words*width:]
			}
			if odd := g.run * words % kern.TileWidth; odd > 0 {
				for p := range k.set.Planes() {
					clear(dst[p*plane:][:(kern.TileWidth-odd)*width])
				}
				dst = dst[(kern.TileWidth-odd)*width:]
			}
		}
	}
}

// finish applies the folded normalisation, the addition and the ReLU to columns lo to hi of a block, whose sums are the
// rows of x, step apart. It scales sums and not weights, since the sums wait in memory anyway, and reports whether it
// stored the result too.
func (k *tiledKernel) finish(worker int, g *tiledTarget, b *tiledBlock, lo, hi int, x []float32, step int) (stored bool) {
	if k.gain == nil && k.added == nil && !k.relu {
		return false
	}
	var gain, shift []float32
	if k.gain != nil {
		at := b.group * k.padded
		gain, shift = k.gain[at+lo:at+hi], k.shift[at+lo:at+hi]
	}
	half, dst := vec.StoredFor(k.level), k.dst.Stored()
	if half != nil && dst != nil && gain != nil && k.then == nil && k.add == nil &&
		(k.added == nil || k.added.Stored() != nil) {
		k.lines(g, b, func(pixel, at, pixels, stride int) {
			to, from := dst[at+lo:], x[pixel*step:]
			switch {
			case k.added != nil && k.relu:
				half.AffineAddReLUMade(to, k.added.Stored()[at+lo:], from, gain, shift, hi-lo, stride, step, pixels)
			case k.added != nil:
				half.AffineAddMade(to, k.added.Stored()[at+lo:], from, gain, shift, hi-lo, stride, step, pixels)
			case k.relu:
				half.AffineReLUMade(to, from, gain, shift, hi-lo, stride, step, pixels)
			default:
				half.AffineMade(to, from, gain, shift, hi-lo, stride, step, pixels)
			}
		})
		return true
	}
	room := k.args[worker].room[:]
	k.lines(g, b, func(pixel, at, pixels, stride int) {
		for i := range pixels {
			row := x[(pixel+i)*step:][:hi-lo]
			var other []float32
			if k.added != nil {
				other = room[:hi-lo]
				k.added.Copy(other, hi-lo, at+lo+i*stride, 1, hi-lo, stride)
			}
			k.finishRow(row, other, gain, shift)
		}
	})
	return false
}

var finishZeros [tileColumns]float32

// finishRow finishes a row. other, and gain with shift, may be nil.
func (k *tiledKernel) finishRow(row, other, gain, shift []float32) {
	v, zeros := k.vectors, finishZeros[:len(row)]
	switch {
	case gain == nil:
		if other != nil {
			v.Add(row, row, other)
		}
		if k.relu {
			v.ReLU(row, row)
		}
	case other != nil && k.relu:
		v.NormalizeAddReLU(row, row, other, zeros, gain, shift)
	case other != nil:
		v.NormalizeAdd(row, row, other, zeros, gain, shift)
	case k.relu:
		v.NormalizeReLU(row, row, zeros, gain, shift)
	default:
		v.Normalize(row, row, zeros, gain, shift)
	}
}
