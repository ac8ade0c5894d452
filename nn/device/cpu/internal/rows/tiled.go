package rows

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// tiled computes the products of a multiplier in tiles, of factors that are rounded to bfloat16.
type tiled struct {
	*kern.Tiles
	*kern.BFloat16
	args         kern.TileArgs
	left, turned []uint16 // rows for A
	room         []float32
	rows         []int32 // 0, 1, … and -1 behind the last row that is turned
	spans        [][2]kern.TileSpan
	steps        []kern.TileStep
}

// The columns of a panel of B: of two tiles.
const panelColumns = 2 * kern.TileWidth

// deep rounds a depth up to whole steps.
func deep(n int) int { return work.Ceil(n, kern.TileDepth) * kern.TileDepth }

// tiledRoom is the scratch of a worker: for products of at most rows rows of depth numbers, and for outer products of
// them.
type tiledRoom struct {
	rows, depth        int
	most               int // rows of any product
	left, turned, room []work.Part
}

// tiledRoom takes room for workers. wide is the most rows of an outer product, or 0.
func (k Kernels) tiledRoom(r *work.Room, workers, rows, depth, wide int) tiledRoom {
	t := tiledRoom{rows: rows, depth: depth, most: max(rows, wide)}
	if k.Tiles == nil {
		return t
	}
	t.left = r.Each(workers, rows*deep(depth)/2)
	t.turned = r.Each(workers, work.Eights(wide)*deep(rows)/2)
	t.room = r.Each(workers, kern.TileWidth*kern.TileRows)
	return t
}

// multiplier returns that of a worker.
func (k Kernels) multiplier(s *work.Storage, t tiledRoom, worker int) multiplier {
	m := multiplier{set: k.Set}
	if k.Tiles == nil {
		return m
	}
	m.tiles = &tiled{
		Tiles: k.Tiles, BFloat16: k.BFloat16,
		left: halves(s.Scratch(t.left[worker])), turned: halves(s.Scratch(t.turned[worker])),
		room: s.Scratch(t.room[worker]), rows: make([]int32, deep(t.rows)),
		spans: make([][2]kern.TileSpan, 0, work.Ceil(t.most, 2*kern.TileRows)+2),
		steps: make([]kern.TileStep, work.Ceil(max(t.depth, t.rows), kern.TileDepth)),
	}
	return m
}

// halves is x as numbers of two bytes.
func halves(x []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

// panels calls f for the panels of b: with their words, the first column, the number of columns and of tiles.
func (t *tiled) panels(b factor, f func(words []float32, j, columns, tiles int)) {
	for j := 0; j < b.n; j += panelColumns {
		columns := min(panelColumns, b.n-j)
		tiles := work.Ceil(columns, kern.TileWidth)
		f(b.x[deep(b.depth)/2*j:], j, columns, tiles)
	}
}

// pack packs b by a pack of Tiles, with its rows or columns step numbers apart.
func (t *tiled) pack(b factor, src []float32, stride, step int,
	pack func(n *kern.Narrow, dst, from, room []float32, stride, depth, columns, width int)) {
	t.panels(b, func(words []float32, j, columns, tiles int) {
		pack(&t.Tiles.Narrow, words, src[j*step:], t.room, stride, b.depth, columns, tiles*kern.TileWidth)
	})
}

// narrow rounds rows of width numbers to rows of stride numbers, with zeros behind the first ones.
func (t *tiled) narrow(a []float32, lda, rows, width, stride int) {
	_, _ = a[(rows-1)*lda+width-1], t.left[rows*stride-1]
	t.BFloat16.Narrow(&t.left[0], &a[0], rows, width, 2*stride, 4*lda)
	if width < stride {
		for i := range rows {
			clear(t.left[i*stride:][width:stride])
		}
	}
}

// product is the product of a multiplier.
func (t *tiled) product(c []float32, ldc int, a []float32, lda, rows int, b factor, add bool) {
	stride := deep(b.depth)
	t.narrow(a, lda, rows, b.depth, stride)
	t.multiply(c, ldc, t.left, stride, rows, b, add, kern.TileDepth)
}

// outer is that of a multiplier.
func (t *tiled) outer(c []float32, ldc int, a []float32, lda, rows int, b factor, add bool) {
	stride := work.Eights(rows)
	t.narrow(a, lda, b.depth, rows, stride)
	blocks := work.Ceil(b.depth, kern.TileDepth)
	for i := range t.rows {
		t.rows[i] = int32(i)
		if i >= b.depth {
			t.rows[i] = -1
		}
	}
	for i := 0; i < stride; i += kern.TileChannels {
		n := min(kern.TileChannels, stride-i)
		t.Turn(&t.turned[i*kern.TileDepth], &t.left[i], &t.rows[0], blocks, n, stride, 2*stride)
	}
	t.multiply(c, ldc, t.turned, kern.TileDepth, rows, b, add, stride*kern.TileDepth)
}

// multiply multiplies rows of a that are stride numbers apart, with step numbers from a step of the depth to the next.
func (t *tiled) multiply(c []float32, ldc int, a []uint16, stride, rows int, b factor, add bool, step int) {
	g := &t.args
	*g = kern.TileArgs{A: &a[0], StepA: 2 * stride, StepC: 4 * ldc, Depth: work.Ceil(b.depth, kern.TileDepth)}
	if add {
		g.Add = 1
	}
	parts := work.Ceil(rows, kern.TileRows) // rows%parts of them have a row more than the others
	t.spans = t.spans[:0]
	t.span(0, rows%parts, rows/parts+1, g)
	larger := len(t.spans)
	t.span(rows%parts*(rows/parts+1), parts-rows%parts, rows/parts, g)
	t.panels(b, func(words []float32, j, columns, tiles int) {
		if b.padded {
			columns = tiles * kern.TileWidth
		}
		_ = c[(rows-1)*ldc+j+columns-1]
		for i := range g.Depth {
			t.steps[i] = kern.TileStep{A: 2 * i * step, B: 4 * i * kern.TileWidth * tiles * kern.TileWidth}
		}
		g.Steps, g.B, g.C = &t.steps[0], (*uint32)(unsafe.Pointer(&words[0])), &c[j]
		if larger > 0 {
			t.run(t.spans[:larger], rows/parts+1, columns, tiles)
		}
		t.run(t.spans[larger:], rows/parts, columns, tiles)
	})
}

// span appends count spans of rows rows from row first on, in pairs. The last one of an odd number is computed twice.
func (t *tiled) span(first, count, rows int, g *kern.TileArgs) {
	at := func(i int) kern.TileSpan {
		row := first + min(i, count-1)*rows
		return kern.TileSpan{A: row * g.StepA, C: row * g.StepC}
	}
	for i := 0; i < count; i += 2 {
		t.spans = append(t.spans, [2]kern.TileSpan{at(i), at(i + 1)})
	}
}

func (t *tiled) run(spans [][2]kern.TileSpan, rows, columns, tiles int) {
	g := &t.args
	g.Config, g.Spans, g.Pairs = kern.Configure(rows, columns), &spans[0], len(spans)
	t.Products[tiles](g)
}
