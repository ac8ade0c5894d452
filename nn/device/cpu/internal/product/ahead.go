package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// ahead prefetches the operands of the next block into the second level cache while tiles of this block are computed: a
// few cache lines after each tile.
type ahead struct {
	set     *kern.Set
	parts   [2]fetched
	part    int // that is being fetched
	lines   int // for a tile
	pending int // lines that earlier tiles left to the next one
}

// fetched is rows of an array, in bytes.
type fetched struct {
	at            unsafe.Pointer // of the next row
	rows, stride  int
	lines, column int // of a row; the next one
}

const (
	lineBytes  = 64
	leastLines = 4             // that are fetched at a time
	denseBytes = 2 * lineBytes // rows no further apart are fetched with what lies between them

	// farElements is the length of a source of which parts may not be in any cache.
	farElements = 4 << 20
)

// start forgets what was to be fetched.
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
	f.parts[i] = fetched{unsafe.Pointer(&x[at]), rows, size * stride, work.Ceil(size*width, lineBytes), 0}
}

// addPieces is addRows for an activation.
func (f *ahead) addPieces(x *work.Pieces, at, rows, width, stride int) {
	if s := x.Stored(); s != nil {
		addRows(f, s, at, rows, width, stride)
		return
	}
	addRows(f, x.All(), at, rows, width, stride)
}

// addSource adds n channels, from first on, of the source under a block, but not what taps reach around it. With
// strides, where most of it may not be read, it adds nothing.
func (f *ahead) addSource(h *halo, src *work.Pieces, e extent, first, n int) {
	if h.rowStep != 1 || h.colStep != 1 {
		return
	}
	pixels := ((e.images-1)*h.srcH + min(e.lines, h.srcH-e.line)) * h.srcW
	f.addPieces(src, (e.image*h.srcH+e.line)*h.srcW*h.srcC+first, pixels, n, h.srcC)
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
		f.set.Fetch((*byte)(unsafe.Add(x.at, x.column*lineBytes)), n)
		f.pending -= n
		if x.column += n; x.column == x.lines {
			x.column = 0
			x.rows--
			x.at = unsafe.Add(x.at, x.stride)
		}
	}
}

// far reports whether parts of the source may not be in any cache.
func (g *grid) far() bool { return g.images*g.srcH*g.srcW*g.srcC > farElements }

// far reports whether parts of an operand may not be in any cache.
func (o *outer) far() bool { return o.grid.far() || o.pixels()*o.columns > farElements }
