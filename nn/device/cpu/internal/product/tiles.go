package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
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
)

// newTileTarget is newTiledTarget for tiles. A source that is stored as bfloat16 is read in place where rows of it are
// whole steps.
func newTileTarget(to *target, set *kern.Set, stored bool) tiledTarget {
	limit := tilesChannels
	if len(to.taps) == 1 {
		limit = tilesSingleChannels
	}
	g := tiledTarget{to: to, halo: newHalo(&to.grid, to.taps, limit, set.Narrow), run: 1}
	if stored && g.channels%kern.TileDepth == 0 && g.srcC%kern.TileDepth == 0 {
		g.readDirectly()
		if g.direct {
			g.chunk = g.channels
		}
	}
	g.depth = len(g.taps) * g.narrow.Words(g.channels)
	g.deep = 1 + len(g.taps)*g.narrow.Whole(g.channels)
	for c := 0; c < g.channels; c += g.chunk {
		words := g.narrow.Words(min(g.chunk, g.channels-c))
		var steps []int
		for _, tap := range g.taps {
			at := ((tap.row-g.row)*g.tileWidth + tap.col - g.col) * g.stride
			for w := 0; w < words; w += kern.TileWidth {
				steps = append(steps, 4*(at+w))
			}
		}
		g.steps = append(g.steps, steps)
	}
	return g
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
	a := &k.args[worker].tiles
	a.StepA, a.StepC = 4*g.right*g.stride, 4*k.stepC(g)
	for i, steps := range g.steps {
		c := i * g.chunk
		n := min(g.chunk, g.channels-c)
		first := b.group*g.channels + c
		if g.direct {
			a.A, a.StepA = &k.src.Stored()[g.source(b.extent, first)], 2*g.srcC
		} else {
			tile := k.tiles[worker]
			g.fill(k.set, tile, k.src, b.extent, first, n)
			a.A = (*uint16)(unsafe.Pointer(&tile[0]))
		}
		a.Steps, a.Depth = &steps[0], len(steps)
		for j := b.panel; j < b.panel+b.panels; j++ {
			columns := k.columns(j)
			vectors := k.set.Vectors(columns)
			width := vectors * k.set.Lanes
			panel := k.packed[k.panel(g, b.group, j):]
			dst, add := k.room(worker, g, b, j, c == 0)
			a.Init, a.Add = nil, 0
			switch {
			case c > 0 || add != nil:
				a.Add = 1
				if c == 0 {
					k.addInit(add, k.made.step(g), panel[:columns], b.images*b.lines*g.width)
				}
			case k.bias != nil || k.gain != nil:
				a.Init = &panel[0]
			}
			a.B = (*uint32)(unsafe.Pointer(&panel[width*(1+len(g.taps)*g.narrow.Words(c))]))
			a.C, a.StepB = &dst[0], 4*width
			for l := range b.tiles {
				s := &b.tiles[l]
				a.Config = kern.Configure(s.rows, columns)
				a.Spans, a.Pairs = &s.spans[0], len(s.spans)
				k.set.Tiles.Products[vectors](a)
			}
			if i+1 == len(g.steps) && k.made.last(b, j) {
				k.store(worker, g, b, j)
			}
		}
	}
}

// addInit adds init to rows that are step apart, if there is any.
func (k *tiledKernel) addInit(rows []float32, step int, init []float32, n int) {
	if k.bias == nil && k.gain == nil {
		return
	}
	for r := range n {
		row := rows[r*step:][:len(init)]
		k.vectors.Add(row, row, init)
	}
}

// packWords packs a panel of n columns for tiles without an intermediate copy if neighbouring weights are those of
// neighbouring columns, and reports whether it did.
func (k *tiledKernel) packWords(g *tiledTarget, p piece, dst []float32, n int) bool {
	if k.set.Tiles == nil || k.gain != nil || k.weightsOf != nil || k.weightRow != 1 || n%kern.TileWidth != 0 {
		return false
	}
	w := k.weights[p.group*k.weightGroup+p.panel*k.set.Columns():]
	for c := 0; c < g.channels; c += g.chunk {
		channels := min(g.chunk, g.channels-c)
		for _, t := range g.taps {
			from := w[t.weight*k.weightTap+c*k.weightChannel:]
			if pairs := channels / 2; pairs > 0 {
				_ = from[(channels-1)*k.weightChannel+n-1]
				g.narrow.PairRows(&dst[0], &from[0], &from[k.weightChannel], pairs, n, 4*n, 8*k.weightChannel)
			}
			if channels%2 != 0 {
				last := from[(channels-1)*k.weightChannel:][:n]
				g.narrow.PairRows(&dst[channels/2*n], &last[0], &kern.Zeros[0], 1, n, 0, 0)
			}
			whole := g.narrow.Words(channels)
			clear(dst[(channels+1)/2*n : whole*n])
			dst = dst[whole*n:]
		}
	}
	return true
}
