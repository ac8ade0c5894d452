package product

import (
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
}

const (
	// tilesPixelsMost is about the most pixels of a chunk: a panel of pairs stays in the first level cache beside rows of A.
	tilesPixelsMost = 384
	// tilesSums is about the time to load and store a tile of sums, in steps.
	tilesSums = 2
)

// cutChunks lists the chunks. Those of equal shape share their lists.
func (t *tilesOuter) cutChunks() {
	for _, tap := range t.taps {
		t.sets = append(t.sets, []tilesTap{{weight: tap.weight}})
	}
	g := t.grid
	if g.direct() {
		g.width, g.height, g.images = g.pixels(), 1, 1
		g.srcW, g.srcH = g.width, 1
		n := work.Ceil(g.width, tilesPixelsMost)
		size := work.Ceil(work.Ceil(g.width, n), kern.TileDepth) * kern.TileDepth
		for p := 0; p < g.width; p += size {
			m := min(size, g.width-p)
			lists := [][]int32{count(m)}
			t.chunks = append(t.chunks, t.chunk(m, tilesPixels{p, m, lists}, tilesPixels{p, m, lists}))
		}
		return
	}
	type shape struct{ images, line, lines int }
	known := map[shape]tilesPixels{}
	for _, e := range tilesCut(&g).extents(&g) {
		n := e.images * e.lines * g.width
		s := shape{e.images, e.line, e.lines}
		a, ok := known[s]
		if !ok {
			a = tapPixels(&g, e)
			known[s] = a
		}
		a.first += e.image * g.srcH * g.srcW
		b := tilesPixels{(e.image*g.height + e.line) * g.width, n, [][]int32{count(n)}}
		t.chunks = append(t.chunks, t.chunk(n, a, b))
	}
}

// chunk is the chunk of n pixels with those of a and b.
func (t *tilesOuter) chunk(n int, a, b tilesPixels) tilesChunk {
	c := tilesChunk{work.Ceil(n, kern.TileDepth), a, b}
	if t.flipped {
		c.left, c.right = b, a
	}
	return c
}

// count lists n pixels, followed by zeros for whole blocks.
func count(n int) []int32 {
	list := make([]int32, work.Ceil(n, kern.TileDepth)*kern.TileDepth)
	for i := range list {
		list[i] = int32(i)
		if i >= n {
			list[i] = -1
		}
	}
	return list
}

// tapPixels lists, for each tap, the source pixels under the pixels of an extent.
func tapPixels(g *grid, e extent) tilesPixels {
	n := e.images * e.lines * g.width
	lo, hi := g.images*g.srcH*g.srcW, 0
	var p tilesPixels
	for _, tap := range g.taps {
		list := count(n)
		for q := range n {
			m, i, j := q/(e.lines*g.width), e.line+q/g.width%e.lines, q%g.width
			row, col := i*g.rowStep+tap.row, j*g.colStep+tap.col
			list[q] = -1
			if uint(row) < uint(g.srcH) && uint(col) < uint(g.srcW) {
				at := (m*g.srcH+row)*g.srcW + col
				list[q] = int32(at)
				lo, hi = min(lo, at), max(hi, at+1)
			}
		}
		p.lists = append(p.lists, list)
	}
	p.first, p.count = min(lo, hi), max(1, hi-lo)
	for _, list := range p.lists {
		for q, at := range list {
			if at >= 0 {
				list[q] -= int32(p.first)
			}
		}
	}
	return p
}

// tilesCut is the cut of a grid with the fewest steps.
func tilesCut(g *grid) cut {
	steps := func(pixels int) int { return work.Ceil(pixels, kern.TileDepth) + tilesSums }
	best, least := cut{1, 1}, 0
	try := func(c cut) {
		sum := 0
		for _, e := range c.extents(g) {
			sum += steps(e.images * e.lines * g.width)
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
