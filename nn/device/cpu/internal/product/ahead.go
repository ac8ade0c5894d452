package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// ahead prefetches memory into the second level cache while tiles of a block are computed: what the block ends with,
// then the operands of the next block. Kernels of products fetch cache lines while they multiply. Other kernels do not:
// a few lines are fetched between their calls.
type ahead struct {
	set     *kern.Set
	parts   [mostAhead]rowsAhead
	part    int // that is being fetched
	lines   int // for a tile
	pending int // lines that earlier tiles left to the next one
	asked   int // lines that the last kernel was to fetch
}

// mostAhead is the largest number of arrays: three operands of the epilogue, the result, an addend, the next source.
const mostAhead = 6

// rowsAhead are rows of an array that wait to be prefetched. Distances are in bytes.
type rowsAhead struct {
	first     unsafe.Pointer
	rows      int // 0 when all lines are fetched
	stride    int // from a row to the next
	lines     int // cache lines of a row
	row, line int // the next one
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
	f.parts[i] = rowsAhead{
		first: unsafe.Pointer(&x[at]), rows: rows, stride: size * stride, lines: work.Ceil(size*width, lineBytes),
	}
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

// at is the address of the next line.
func (x *rowsAhead) at() unsafe.Pointer { return unsafe.Add(x.first, x.row*x.stride+x.line*lineBytes) }

// next tells a kernel what to fetch in its next call, after what it fetched in the last one: the lines of a row, or a
// line of each of several rows.
func (f *ahead) next(a *kern.Args) {
	if f.asked > 0 {
		x, n := &f.parts[f.part], f.asked-max(0, a.AheadLines)
		if x.rows == 1 {
			x.line += n
		} else if x.row += n; x.row == x.rows {
			x.row = 0
			x.line++
		}
		if x.line == x.lines {
			x.rows = 0
		}
	}
	for f.part < len(f.parts) && f.parts[f.part].rows == 0 {
		f.part++
	}
	if f.part == len(f.parts) {
		f.asked, a.Ahead, a.AheadStep, a.AheadLines = 0, nil, 0, 0
		return
	}
	x := &f.parts[f.part]
	f.asked, a.AheadStep = x.rows-x.row, x.stride
	if x.rows == 1 {
		f.asked, a.AheadStep = x.lines-x.line, lineBytes
	}
	a.Ahead, a.AheadLines = x.at(), f.asked
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
		n := min(f.pending, x.lines-x.line)
		f.set.Fetch((*byte)(x.at()), n)
		f.pending -= n
		if x.line += n; x.line == x.lines {
			x.line = 0
			x.row++
		}
		if x.row == x.rows {
			x.rows = 0
		}
	}
}

// far reports whether the source is too large to stay in a cache.
func (g *grid) far() bool { return g.images*g.srcH*g.srcW*g.srcC > farElements }

// far reports whether an operand is too large to stay in a cache.
func (o *outer) far() bool { return o.grid.far() || o.pixels()*o.columns > farElements }
