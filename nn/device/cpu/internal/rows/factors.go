package rows

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// Kernels are those with which attention multiplies.
type Kernels struct {
	Set            *kern.Set   // nil for plain Go
	Tiles          *kern.Tiles // not nil if factors are rounded to bfloat16 and multiplied in tiles
	*kern.BFloat16             // rounds them
}

// KernelsFor returns the kernels of a level, with tiles unless these are nil.
func KernelsFor(l simd.Level, tiles *kern.Tiles) Kernels {
	return Kernels{kern.For(l), tiles, kern.Stored(l)}
}

// multiplier computes products of matrices that fit into a core's caches.
type multiplier struct {
	set   *kern.Set // nil for plain Go
	args  kern.Args
	zero  int    // the offset of the only tap
	tiles *tiled // instead of these, if not nil
}

// factor is the second matrix of a product, depth × n elements, packed in panels of columns.
type factor struct {
	x        []float32
	depth, n int
	padded   bool // rows of products have room for whole vectors behind them
}

// columns is the number of columns of a panel, the last of which may have fewer.
func (m *multiplier) columns(n int) int {
	if m.set == nil {
		return n
	}
	return m.set.Columns()
}

// packedSize is the number of elements of a factor.
func (k Kernels) packedSize(depth, n int) int {
	switch {
	case k.Tiles != nil:
		return deep(depth) / 2 * work.Ceil(n, kern.TileWidth) * kern.TileWidth
	case k.Set == nil:
		return depth * n
	}
	return depth * k.Set.Vectors(n) * k.Set.Lanes
}

// panel returns the panel of b from column j on, its width in memory and its number of columns.
func (m *multiplier) panel(b factor, j int) (x []float32, width, n int) {
	n = min(m.columns(b.n), b.n-j)
	width = n
	if m.set != nil {
		width = m.set.Vectors(n) * m.set.Lanes
	}
	return b.x[j*b.depth:][:b.depth*width], width, n
}

// pack packs depth rows of n elements, stride apart, into dst.
func (m *multiplier) pack(dst, src []float32, stride, depth, n int) factor {
	b := factor{x: dst, depth: depth, n: n}
	if m.tiles != nil {
		m.tiles.pack(b, src, stride, 1, m.tiles.PackedRows)
		return b
	}
	for j := 0; j < n; j += m.columns(n) {
		x, width, n := m.panel(b, j)
		if m.set != nil {
			_ = src[j:][(depth-1)*stride+n-1]
			m.set.Copy(&x[0], &src[j], depth, n, 4*width, 4*stride)
			continue
		}
		for k := range depth {
			copy(x[k*width:][:n], src[j+k*stride:])
		}
	}
	return b
}

// packTransposed packs the transpose of n rows of depth elements, stride apart, into dst.
func (m *multiplier) packTransposed(dst, src []float32, stride, depth, n int) factor {
	b := factor{x: dst, depth: depth, n: n}
	if m.tiles != nil {
		m.tiles.pack(b, src, stride, stride, m.tiles.PackedColumns)
		return b
	}
	for j := 0; j < n; j += m.columns(n) {
		x, width, n := m.panel(b, j)
		m.set.Transpose(x, width, src[j*stride:], stride, n, depth)
	}
	return b
}

// product sets the rows of c to those of a times b, or adds that to them. Rows of a and c are lda and ldc apart.
func (m *multiplier) product(c []float32, ldc int, a []float32, lda, rows int, b factor, add bool) {
	if m.tiles != nil {
		m.tiles.product(c, ldc, a, lda, rows, b, add)
		return
	}
	m.multiply(c, ldc, a, lda, 1, rows, b, add)
}

// outer is product with the transpose of a, whose rows are lda apart.
func (m *multiplier) outer(c []float32, ldc int, a []float32, lda, rows int, b factor, add bool) {
	if m.tiles != nil {
		m.tiles.outer(c, ldc, a, lda, rows, b, add)
		return
	}
	m.multiply(c, ldc, a, 1, lda, rows, b, add)
}

// multiply reads element [i,k] of the first matrix at a[i·row + k·step], where one of row and step is 1.
func (m *multiplier) multiply(c []float32, ldc int, a []float32, row, step, rows int, b factor, add bool) {
	_, _ = a[(rows-1)*row+(b.depth-1)*step], c[(rows-1)*ldc+b.n-1]
	for j := 0; j < b.n; j += m.columns(b.n) {
		x, width, n := m.panel(b, j)
		if m.set == nil {
			plainMultiply(c[j:], ldc, a, row, step, rows, n, x, add)
			continue
		}
		list, lead := m.set.Products[width/m.set.Lanes], row
		if row == 1 {
			list, lead = m.set.Sums[width/m.set.Lanes], step
		}
		if b.padded {
			n = width
		}
		g := &m.args
		g.B, g.Init, g.Mask, g.Offs, g.Taps, g.Depth = &x[0], &kern.Zeros[0], kern.Mask(n), &m.zero, 1, b.depth
		g.StepA, g.JumpA, g.StepC, g.JumpC = 4*lead, 4*kern.Half*row, 4*ldc, 4*kern.Half*ldc
		parts := work.Ceil(rows, m.set.Rows)
		for p := range parts {
			i, end := p*rows/parts, (p+1)*rows/parts
			g.A, g.C, g.From = &a[i*row], &c[i*ldc+j], nil
			if add {
				g.From = g.C
			}
			list[end-i](g)
		}
	}
}

func plainMultiply(c []float32, ldc int, a []float32, row, step, rows, n int, x []float32, add bool) {
	for i := range rows {
		dst := c[i*ldc:][:n]
		if !add {
			clear(dst)
		}
		for k := 0; k*n < len(x); k++ {
			v := a[i*row+k*step]
			for j, w := range x[k*n:][:n] {
				dst[j] += float32(v * w)
			}
		}
	}
}
