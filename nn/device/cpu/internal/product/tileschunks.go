package product

import (
	"math"
	"slices"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// tilesChunk is the pixels that are summed as one: lines of an image, or whole images.
type tilesChunk struct {
	blocks      int // of kern.TileDepth pixels
	left, right tilesPixels
}

// tilesPixels is count pixels of an operand, from pixel first on, and lists of pixels among them: numbers from the
// first, negative for zeros.
type tilesPixels struct {
	first, count int
	lists        [][]int32
	lines        tilesLines // instead, of a copy
}

const (
	// tilesPixelsMost is about the most pixels of a chunk: a panel of pairs stays in the first level cache beside rows of A.
	tilesPixelsMost = 384
	// tilesSums is about the time to load and store a tile of sums, in steps.
	tilesSums = 2
)

// cutChunks lists the chunks: of the ways to bring pixels into tiles, those that take the least time.
func (t *tilesOuter) cutChunks() {
	if t.line != nil {
		t.chunks, t.sets = t.lineChunks()
		return
	}
	if t.direct() {
		t.chunks, t.sets = t.contiguousChunks(), [][]tilesTap{{{weight: t.taps[0].weight}}}
		return
	}
	t.chunks, t.sets = t.gatheredChunks()
	if len(t.taps) > 1 && t.rowStep == 1 && t.colStep == 1 {
		if chunks, sets := t.flatChunks(); t.time(chunks) < t.time(t.chunks) {
			t.chunks, t.sets = chunks, sets
		}
	}
}

// time is about the time of chunks in cycles, for each channel on the right: of products, and of making pairs.
func (t *tilesOuter) time(chunks []tilesChunk) (cycles float64) {
	const products, pair = 350, .5 // multiply-adds in a cycle, and cycles
	for _, c := range chunks {
		cycles += float64(len(t.tiles.Terms())*c.blocks*kern.TileDepth*len(t.taps)*min(t.left.channels, tilesRows)) / products
		for _, l := range c.right.lists {
			cycles += pair * float64(t.tiles.Planes()*len(l)/2)
		}
	}
	return cycles
}

// contiguousChunks are for pixels of both operands that lie in the same order.
func (t *tilesOuter) contiguousChunks() (chunks []tilesChunk) {
	n := t.pixels()
	size := work.Even(n, tilesPixelsMost, kern.TileDepth)
	for p := 0; p < n; p += size {
		m := min(size, n-p)
		x := tilesPixels{first: p, count: m, lists: [][]int32{numbers(m, func(q int) int { return q })}}
		chunks = append(chunks, tilesChunk{work.Ceil(m, kern.TileDepth), x, x})
	}
	return chunks
}

// gatheredChunks have pairs of pixels for each tap.
func (t *tilesOuter) gatheredChunks() ([]tilesChunk, [][]tilesTap) {
	g := &t.grid
	return t.tapChunks(func(e extent, image, i, j int, tap tap) int {
		return g.sourcePixel(image, (e.line+i)*g.rowStep+tap.row, j*g.colStep+tap.col)
	})
}

// tapChunks have pairs for each tap: source is the pixel of a under it, for a pixel of a block.
func (t *tilesOuter) tapChunks(source func(e extent, image, i, j int, tap tap) int) ([]tilesChunk, [][]tilesTap) {
	g := &t.grid
	var sets [][]tilesTap
	for _, tap := range g.taps {
		sets = append(sets, []tilesTap{{weight: tap.weight}})
	}
	size := func(e extent) int { return e.images * e.lines * g.width }
	return t.chunksOf(size, func(e extent) (a, b [][]int32) {
		for _, tap := range g.taps {
			a = append(a, numbers(size(e), func(q int) int {
				return source(e, q/(e.lines*g.width), q/g.width%e.lines, q%g.width, tap)
			}))
		}
		return a, [][]int32{numbers(size(e), func(q int) int { return q })}
	}), sets
}

// flatChunks are for stride 1. Lines, and images of a chunk, lie one behind the other with so many zeros between them that
// a tap is a shift, of a from the corner of the window. A shift by an even number of pixels is one of pairs; for odd
// ones there is a second set of pairs.
func (t *tilesOuter) flatChunks() ([]tilesChunk, [][]tilesTap) {
	g := &t.grid
	top, left := g.taps[0].row, g.taps[0].col
	bottom, right := top, left
	for _, tap := range g.taps {
		top, bottom, left, right = min(top, tap.row), max(bottom, tap.row), min(left, tap.col), max(right, tap.col)
	}
	// As padding is the same on both sides, the zeros behind a line are those before the next one.
	width, height := g.width+max(0, right), g.height+max(0, bottom)
	var sets [2][]tilesTap
	var longest [2]int
	for _, tap := range g.taps {
		shift := (tap.row-top)*width + tap.col - left
		odd := shift % 2
		sets[odd] = append(sets[odd], tilesTap{tap.weight, shift / 2})
		longest[odd] = max(longest[odd], shift/2)
	}
	size := func(e extent) int { return ((e.images-1)*height+e.lines-1)*width + g.width }
	// place is the line of an image at a position, and the column.
	place := func(e extent, p int) (image, line, column int) {
		if line = p / width; e.images > 1 {
			image, line = line/height, line%height
		}
		return image, line, p % width
	}
	chunks := t.chunksOf(size, func(e extent) (a, b [][]int32) {
		whole := work.Ceil(size(e), kern.TileDepth) * kern.TileDepth
		for odd, shift := range longest {
			if len(sets[odd]) == 0 {
				continue
			}
			a = append(a, numbers(whole+2*shift, func(q int) int {
				image, line, column := place(e, q+odd)
				if image >= e.images {
					return -1
				}
				return g.sourcePixel(image, e.line+line+top, column+left)
			})[:whole+2*shift])
		}
		return a, [][]int32{numbers(size(e), func(q int) int {
			image, line, column := place(e, q)
			if line >= e.lines || column >= g.width {
				return -1
			}
			return (image*e.lines+line)*g.width + column
		})}
	})
	return chunks, slices.DeleteFunc(sets[:], func(s []tilesTap) bool { return len(s) == 0 })
}

// sourcePixel is the number of a source pixel of an image, or negative outside.
func (g *grid) sourcePixel(image, row, col int) int {
	if uint(row) >= uint(g.srcH) || uint(col) >= uint(g.srcW) {
		return -1
	}
	return (image*g.srcH+row)*g.srcW + col
}

// numbers lists the numbers of n pixels, followed by zeros for whole blocks.
func numbers(n int, number func(q int) int) []int32 {
	list := make([]int32, work.Ceil(n, kern.TileDepth)*kern.TileDepth)
	for i := range list {
		list[i] = -1
		if i < n {
			list[i] = int32(number(i))
		}
	}
	return list
}

// chunksOf returns chunks that take the fewest steps for the given number of positions in an extent. lists returns the
// pixels of a and b in an extent, as numbers from its first image and from its first line. Extents of equal shape share
// them.
func (t *tilesOuter) chunksOf(size func(e extent) int, lists func(e extent) (a, b [][]int32)) (chunks []tilesChunk) {
	g := &t.grid
	known := map[extent][2]tilesPixels{}
	for _, e := range tilesCut(g, size).extents(g) {
		shape := e
		shape.image = 0
		x, ok := known[shape]
		if !ok {
			a, b := lists(e)
			x = [2]tilesPixels{newTilesPixels(a), newTilesPixels(b)}
			known[shape] = x
		}
		a, b := x[0], x[1]
		if t.line != nil {
			a.lines = t.line.of(e)
		}
		a.first += e.image * g.srcH * g.srcW
		b.first += (e.image*g.height + e.line) * g.width
		if t.flipped {
			a, b = b, a
		}
		chunks = append(chunks, tilesChunk{work.Ceil(size(e), kern.TileDepth), a, b})
	}
	return chunks
}

// newTilesPixels changes lists to numbers from the first pixel that any of them has.
func newTilesPixels(lists [][]int32) tilesPixels {
	lo, hi := int32(math.MaxInt32), int32(0)
	for _, list := range lists {
		for _, at := range list {
			if at >= 0 {
				lo, hi = min(lo, at), max(hi, at+1)
			}
		}
	}
	if hi == 0 {
		lo = 0
	}
	for _, list := range lists {
		for q, at := range list {
			if at >= 0 {
				list[q] = at - lo
			}
		}
	}
	return tilesPixels{first: int(lo), count: max(1, int(hi-lo)), lists: lists}
}

// tilesCut is the cut of a grid with the fewest steps.
func tilesCut(g *grid, size func(e extent) int) cut {
	best, least := cut{1, 1}, 0
	try := func(c cut) {
		sum := 0
		for _, e := range c.extents(g) {
			sum += work.Ceil(size(e), kern.TileDepth) + tilesSums
		}
		if least == 0 || sum < least {
			best, least = c, sum
		}
	}
	for lines := 1; lines < g.height && (lines == 1 || lines*g.width <= tilesPixelsMost); lines++ {
		try(cut{1, lines})
	}
	for images := 1; images <= g.images && (images*g.height*g.width <= tilesPixelsMost || images*g.height == 1); images++ {
		try(cut{images, g.height})
	}
	return best
}
