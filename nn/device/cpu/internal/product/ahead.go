package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// ahead prefetches memory into the second level cache while tiles of a block are computed: what the block ends with,
// then the operands of the next block. Kernels of products fetch cache lines while they multiply; between calls of
// others, a few lines are fetched after each tile.
type ahead struct {
	set     *kern.Set
	parts   [mostAhead]rowsAhead
	part    int // that is being fetched
	lines   int // for a tile
	pending int // lines that earlier tiles left to the next one
}

// mostAhead is the largest number of arrays: the result, an addend, three operands of the epilogue, the next source.
const mostAhead = 6

// rowsAhead are rows of an array that wait to be prefetched. Distances are in bytes.
type rowsAhead struct {
	first         unsafe.Pointer // row
	row           int            // the next row, behind the first
	rows, stride  int            // that wait; from a row to the next
	lines, column int            // cache lines of a row; the next one
}

const (
	lineBytes  = 64
	leastLines = 4             // that are fetched at a time
	denseBytes = 2 * lineBytes // rows no further apart are fetched with the gaps between them

	// farElements is the length up to which an operand is taken to stay in the last level cache.
	farElements = 4 << 20
)

// start empties f.
func (f *ahead) start(set *kern.Set) { *f = ahead{set: set} }

// addRows adds rows of width elements, stride apart, from element at of x on.
func addRows[T float32 | uint16](f *ahead, x []T, at, rows, width, stride int) {
	if rows <= 0 {
		return
	}
	size := int(unsafe.Sizeof(x[at]))
	if size*stride <= denseBytes || width == stride {
		rows, width = 1, (rows-1)*stride+width
	}
	i := 0
	for f.parts[i].rows > 0 {
		i++
	}
	f.parts[i] = rowsAhead{unsafe.Pointer(&x[at]), 0, rows, size * stride, work.Ceil(size*width, lineBytes), 0}
}

// addPieces is addRows for an activation.
func (f *ahead) addPieces(x *work.Pieces, at, rows, width, stride int) {
	if s := x.Stored(); s != nil {
		addRows(f, s, at, rows, width, stride)
		return
	}
	addRows(f, x.All(), at, rows, width, stride)
}

// addSource adds n channels, from first on, of the source pixels of a block, without the halo. For strides other than 1
// it adds nothing: most pixels may be unused.
func (f *ahead) addSource(h *halo, src *work.Pieces, e extent, first, n int) {
	if h.rowStep != 1 || h.colStep != 1 {
		return
	}
	pixels := ((e.images-1)*h.srcH + min(e.lines, h.srcH-e.line)) * h.srcW
	f.addPieces(src, (e.image*h.srcH+e.line)*h.srcW*h.srcC+first, pixels, n, h.srcC)
}

// next makes the kernel call with a fetch lines. Rows are fetched line by line down all rows, if there are several.
func (f *ahead) next(a *kern.Args) {
	for f.part < len(f.parts) && f.parts[f.part].rows == 0 {
		f.part++
	}
	if f.part == len(f.parts) {
		a.Ahead, a.AheadStep = nil, 0
		return
	}
	x, n := &f.parts[f.part], f.set.Fetched(a)
	a.Ahead = unsafe.Add(x.first, x.row+x.column*lineBytes)
	if x.rows == 1 {
		a.AheadStep, a.AheadLines = lineBytes, x.lines-x.column
		x.column += n
	} else {
		a.AheadStep, a.AheadLines = x.stride, x.rows-x.row/x.stride
		if x.row += x.stride * n; x.row >= x.stride*x.rows {
			x.row = 0
			x.column++
		}
	}
	if x.column >= x.lines {
		f.part++
	}
}

// over spreads the lines over a number of tiles.
func (f *ahead) over(tiles int) {
	total := 0
	for i := range f.parts {
		total += f.parts[i].rows * f.parts[i].lines
	}
	f.lines = work.Ceil(total, tiles)
}

// tile fetches the lines of a tile.
func (f *ahead) tile() {
	if f.pending += f.lines; f.pending >= leastLines {
		f.fetch()
	}
}

func (f *ahead) fetch() {
	for f.pending > 0 {
		if f.part == len(f.parts) {
			f.lines, f.pending = 0, 0
			return
		}
		x := &f.parts[f.part]
		if x.rows == 0 {
			f.part++
			continue
		}
		n := min(f.pending, x.lines-x.column)
		f.set.Fetch((*byte)(unsafe.Add(x.first, x.row+x.column*lineBytes)), n)
		f.pending -= n
		if x.column += n; x.column == x.lines {
			x.column = 0
			x.rows--
			x.row += x.stride
		}
	}
}

// far reports whether the source is too large to stay in a cache.
func (g *grid) far() bool { return g.images*g.srcH*g.srcW*g.srcC > farElements }

// far reports whether an operand is too large to stay in a cache.
func (o *outer) far() bool { return o.grid.far() || o.pixels()*o.columns > farElements }
