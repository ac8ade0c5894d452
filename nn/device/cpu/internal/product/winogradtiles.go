package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// tiling is a partition of a grid's pixels into tiles.
type tiling struct {
	*grid
	lines, perLine int // lines of tiles of an image, and tiles of each
	block          cut // of lines of tiles
}

// values is the number of values of a tile in the transformed domain.
const values = kern.Window * kern.Window

// winogradCache is about the size in bytes of the transformed tiles of a block, which have to stay in the second level
// cache.
const winogradCache = 640 << 10

// newTiling cuts a grid into blocks of tiles; bytes is the size of a transformed tile.
func newTiling(g *grid, bytes int) tiling {
	t := tiling{grid: g, lines: work.Ceil(g.height, kern.TileResults), perLine: work.Ceil(g.width, kern.TileResults)}
	const least = 28 // tiles that share a read of the weights
	most := max(least, winogradCache/bytes)
	each := t.lines * t.perLine
	if most < each {
		lines := max(1, most/t.perLine)
		t.block = cut{1, work.Ceil(t.lines, work.Ceil(t.lines, lines))}
		return t
	}
	const enough = 32 // blocks
	images := min(g.images, max(work.Ceil(least, each), min(most/each, work.Ceil(g.images, enough))))
	t.block = cut{work.Ceil(g.images, work.Ceil(g.images, images)), t.lines}
	return t
}

// tiles is the number of tiles of a whole block.
func (t *tiling) tiles() int { return t.block.images * t.block.lines * t.perLine }

// extents lists the blocks.
func (t *tiling) extents() []extent {
	return t.block.extents(&grid{images: t.images, height: t.lines})
}

// apart is the distance in elements from a value of all tiles of a block to the next value; each tile has n elements.
// Values a power of two apart would compete for the same cache lines.
func (t *tiling) apart(n int) int { return t.tiles()*n + 16 }

// columnScratch is the number of elements of scratch for the columns of a line of tiles.
func (t *tiling) columnScratch(set *kern.Set, in int) int {
	return ((t.perLine-1)*kern.TileResults + in) * kern.ColumnVectors * set.Lanes
}

// windows are the inputs of the transforms of tiles: squares of pixels of an image, four pixels apart.
type windows struct {
	run                     func(*kern.Spread)
	size                    int       // of a square
	row, col                int       // of the first pixel of the first square
	height, width, channels int       // of an image
	x                       []float32 // the images, NHWC
	zeros                   []float32 // a line of an image, for the lines above and below it
}

// source returns the windows of the source of a convolution.
func (g *grid) source(set *kern.Set, x, zeros []float32) windows {
	return windows{set.Winograd.Source, kern.Window, g.taps[0].row, g.taps[0].col, g.srcH, g.srcW, g.srcC, x, zeros}
}

// spread transforms n channels of a block of windows, from first on. The values of a tile are in panels of the
// given number of columns; each panel has all tiles, and the last one may be narrower.
func (t *tiling) spread(set *kern.Set, a *kern.Spread, w *windows, scratch []float32, b extent, first, n int,
	dst []float32, columns int) {
	lanes, tiles := set.Lanes, t.tiles()
	padded := set.Vectors(n) * lanes
	// The columns of a line of windows inside the image. The others are zeros.
	width := (t.perLine-1)*kern.TileResults + w.size
	lo := min(width, max(0, -w.col))
	hi := max(lo, min(width, w.width-w.col))
	column := kern.ColumnVectors * lanes
	clear(scratch[:lo*column])
	clear(scratch[hi*column : width*column])
	a.Columns, a.StepC, a.Ahead = hi-lo, 4*w.channels, 4*kern.TileResults*w.width*w.channels
	a.Scratch = &scratch[0]
	if hi > lo {
		a.To = &scratch[lo*column]
	}
	a.Tiles, a.StepP = t.perLine, 4*t.apart(padded)
	tile := 0
	for m := range b.images {
		for l := range b.lines {
			row := (b.line+l)*kern.TileResults + w.row
			for c := 0; c < n; c += lanes {
				for i := range w.size {
					a.Rows[i] = &w.zeros[first+c]
					if y := row + i; y >= 0 && y < w.height && hi > lo {
						a.Rows[i] = &w.x[(((b.image+m)*w.height+y)*w.width+lo+w.col)*w.channels+first+c]
					}
				}
				panel := c / columns
				panelWidth := min(columns, padded-panel*columns)
				a.Mask, a.StepT = kern.Mask(min(lanes, n-c)), 4*panelWidth
				a.Dst = &dst[panel*columns*tiles+tile*panelWidth+c%columns]
				w.run(a)
			}
			tile += t.perLine
		}
	}
}
