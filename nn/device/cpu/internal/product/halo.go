package product

import (
	"cmp"
	"slices"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// blockPixels is about the number of pixels of a block: enough to read the weights rarely, and few enough that the
// source under them stays in the second level cache.
const blockPixels = 230

// vectorsOfBlock is the number of pixels of a block of images of one pixel, and half of that of more words than
// wideVector: their tile stays in a second level cache of 512 KiB.
const (
	vectorsOfBlock = 224
	wideVector     = 288
)

// besideCache is about the size in bytes of the result of a block and of the other operands of its epilogue, which have
// to stay in the second level cache. Fewer pixels than leastPixels, four tiles of AVX-512, would read the weights too
// often.
const (
	besideCache = 1 << 20
	leastPixels = 56
)

// besides returns p with blocks whose epilogue reads n operands beside the result.
func (p *product) besides(n int) *product {
	q := *p
	q.grids = slices.Clone(p.grids)
	for i := range q.grids {
		q.grids[i].most = min(blockPixels, max(leastPixels, besideCache/(4*(1+n)*p.rows)))
	}
	return &q
}

// cut is the size of a block of a grid: whole images, or lines of one image.
type cut struct{ images, lines int }

func (g *grid) cut() cut {
	pixels := cmp.Or(g.most, blockPixels)
	lines := max(1, pixels/g.width)
	if lines < g.height {
		return cut{1, work.Ceil(g.height, work.Ceil(g.height, lines))}
	}
	if g.height*g.width == 1 { // whole tiles of 14 or 16 rows
		return cut{min(g.images, vectorsOfBlock), 1}
	}
	images := min(g.images, max(1, pixels/(g.height*g.width)))
	return cut{work.Ceil(g.images, work.Ceil(g.images, images)), g.height}
}

// extent is the images and lines of a block.
type extent struct{ image, images, line, lines int }

// extents lists the blocks of a grid.
func (c cut) extents(g *grid) []extent {
	var list []extent
	for n := 0; n < g.images; n += c.images {
		for i := 0; i < g.height; i += c.lines {
			list = append(list, extent{n, min(c.images, g.images-n), i, min(c.lines, g.height-i)})
		}
	}
	return list
}

// halo maps the pixels of a block to the source pixels under each tap. The pixels are either in a tile, a copy of some
// channels of the source's lines with the padding around them, or in the source itself.
type halo struct {
	*grid       // its taps are not used
	block  cut  // the images and lines of a whole block
	direct bool // the source itself is read

	row, col             int // source pixel in the corner of the tile of the block at pixel 0
	skipRows, skipCols   int // from a pixel of the tile to the next one in the source
	down, right          int // from a pixel of the grid to the next one in the tile
	tileLines, tileWidth int // of each image in the tile

	chunk  int // channels at a time
	stride int // words from a pixel of the tile to the next

	narrow *kern.Narrow // not nil if words hold channels in bfloat16
}

// few is the number of channels up to which the pixels of a tile lie without gaps, so that a line of taps is one long
// row of the product.
const few = 32

// newHalo returns the halo of a grid with the given taps, with at most limit channels at a time.
func newHalo(g *grid, taps []tap, limit int, narrow *kern.Narrow) halo {
	h := halo{grid: g, block: g.cut(), narrow: narrow}
	top, left := taps[0].row, taps[0].col
	bottom, right := top, left
	for _, t := range taps {
		top, bottom = min(top, t.row), max(bottom, t.row)
		left, right = min(left, t.col), max(right, t.col)
	}
	h.row, h.col = top, left
	h.skipRows, h.down = 1, g.rowStep
	if top == bottom {
		h.skipRows, h.down = g.rowStep, 1
	}
	h.skipCols, h.right = 1, g.colStep
	if left == right {
		h.skipCols, h.right = g.colStep, 1
	}
	h.tileLines = (h.block.lines-1)*h.down + bottom - top + 1
	h.tileWidth = (g.width-1)*h.right + right - left + 1

	h.chunk = g.channels
	if g.channels > limit {
		h.chunk = narrow.Whole(work.Ceil(work.Ceil(g.channels, work.Ceil(g.channels, limit)), 16) * 16)
	}
	// Pixels a power of two apart would compete for the same cache lines.
	h.stride = work.Ceil(h.narrow.Words(h.chunk), 16)*16 + 16
	if h.block.images == vectorsOfBlock && g.height*g.width == 1 && h.stride > wideVector {
		h.block.images /= 2
	}
	if g.channels <= few {
		h.stride = h.narrow.Words(g.channels)
	}
	return h
}

// readDirectly makes h read the source itself if possible.
func (h *halo) readDirectly() {
	if h.row == 0 && h.col == 0 && h.down == 1 && h.right == 1 && h.skipRows == 1 && h.skipCols == 1 &&
		h.tileWidth == h.width && h.tileLines == h.block.lines && h.height == h.srcH && h.width == h.srcW {
		h.direct = true
		h.stride = h.srcC
	}
}

// size is the number of words of a tile, with room for the last vector that is written.
func (h *halo) size() int {
	if h.direct {
		return 0
	}
	return h.block.images*h.tileLines*h.tileWidth*h.stride + 16
}

// contiguous reports whether the source pixels under a tap of neighbouring grid pixels are neighbours, even across
// lines and images.
func (h *halo) contiguous() bool {
	return h.down == 1 && h.right == 1 && h.tileWidth == h.width && h.tileLines == h.block.lines
}

// at is the position of the source pixel under the first tap of a pixel of the block.
func (h *halo) at(n, i, j int) int {
	return ((n*h.tileLines+i*h.down)*h.tileWidth + j*h.right) * h.stride
}

// merged reports whether adjacent taps are contiguous.
func (h *halo) merged() bool { return h.stride == h.narrow.Words(h.chunk) && h.chunk == h.channels }

// rowOfTaps are count taps that are read as one.
type rowOfTaps struct {
	first tap
	count int
	off   int // words from the pixel under the corner
}

// runs groups the taps as they are read: one by one, or a line at a time.
func (h *halo) runs(taps []tap) []rowOfTaps {
	var list []rowOfTaps
	for _, t := range taps {
		if i := len(list) - 1; i >= 0 && h.merged() {
			if l := &list[i]; l.first.row == t.row && l.first.col+l.count == t.col {
				l.count++
				continue
			}
		}
		off := ((t.row-h.row)*h.tileWidth + t.col - h.col) * h.stride
		list = append(list, rowOfTaps{t, 1, off})
	}
	return list
}

// source is the start of the block in a source that is read directly.
func (h *halo) source(e extent, first int) int {
	return (e.image*h.height+e.line)*h.width*h.srcC + first
}

// fill copies channels first to first+n of the source under a block to the tile: to one for each of the parts of s, one
// behind the other, unless s is nil.
func (h *halo) fill(set *kern.Set, s *splitter, tile []float32, src *work.Pieces, e extent, first, n int) {
	line := h.tileWidth * h.stride
	lo := min(h.tileWidth, work.Ceil(max(0, -h.col), h.skipCols)) // pixels of a line that lie in the source
	hi := max(lo, min(h.tileWidth, work.Floor(h.srcW-1-h.col, h.skipCols)+1))
	lines := (e.lines-1)*h.down + h.tileLines - (h.block.lines-1)*h.down
	// Images of one pixel are a line of pixels.
	if h.srcH*h.srcW == 1 && h.tileLines*h.tileWidth == 1 && h.row == 0 && h.skipCols == 1 && lo < hi {
		h.copyLine(set, s, tile, src, e.image*h.srcC+first, e.images, n)
		return
	}
	for m := range e.images {
		for i := range lines {
			dst := tile[(m*h.tileLines+i)*line:]
			row := e.line*h.rowStep + h.row + i*h.skipRows
			if row < 0 || row >= h.srcH || lo == hi {
				h.clear(s, dst, 0, line)
				continue
			}
			h.clear(s, dst, 0, lo*h.stride)
			h.clear(s, dst, hi*h.stride, line)
			at := (((e.image+m)*h.srcH+row)*h.srcW+h.col+lo*h.skipCols)*h.srcC + first
			h.copyLine(set, s, dst[lo*h.stride:], src, at, hi-lo, n)
		}
	}
}

// clear clears words lo to hi of the tile, or of those of all parts.
func (h *halo) clear(s *splitter, tile []float32, lo, hi int) {
	clear(tile[lo:hi])
	for p := 1; s != nil && p < s.tiles.Parts; p++ {
		clear(tile[p*h.size()+lo : p*h.size()+hi])
	}
}

// copyLine copies n channels of some pixels, from element at of the source on.
func (h *halo) copyLine(set *kern.Set, s *splitter, dst []float32, from *work.Pieces, at, pixels, n int) {
	step := h.skipCols * h.srcC
	if s != nil {
		s.words(h.narrow, dst, h.size(), h.stride, from.All()[at:], pixels, n, step)
		return
	}
	dst = dst[:pixels*h.stride]
	if x := from.Stored(); x != nil { // writes behind a pixel are overwritten
		widen := from.Widen
		if h.narrow != nil {
			widen = h.narrow.Stored
		}
		_ = x[at+(pixels-1)*step+n-1]
		widen(&dst[0], &x[at], pixels, n, 4*h.stride, 2*step)
		return
	}
	src := from.All()[at:]
	switch {
	case h.narrow != nil: // writes behind a pixel are overwritten
		_ = src[(pixels-1)*step+n-1]
		h.narrow.Copy(&dst[0], &src[0], pixels, n, 4*h.stride, 4*step)
	case step == h.stride && n == h.stride:
		copy(dst, src)
	default: // likewise
		_ = src[(pixels-1)*step+n-1]
		set.Copy(&dst[0], &src[0], pixels, n, 4*h.stride, 4*step)
	}
}
