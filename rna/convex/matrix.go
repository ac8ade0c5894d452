package convex

import (
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/floats"

	"onlinerna/rna/convex/internal/kern"
)

// A Matrix is n rows of d features, dense or compressed. It is not changed once made, and may be shared.
type Matrix struct {
	n, d   int
	values []float64
	stride int     // values from a row to the next; 0 when sparse
	index  []int32 // columns of values; nil when dense
	start  []int   // of each row in values, and the end; nil when dense

	normed sync.Once
	norm   float64 // once asked for

	encoded sync.Once
	codes   *codes  // the same values, or nil
	strips  *strips // the same
}

// NewDense returns the n×d matrix with the rows in values, one after the other. It keeps values.
func NewDense(n, d int, values []float64) (*Matrix, error) {
	if n < 1 || d < 1 || len(values) != n*d {
		return nil, fmt.Errorf("convex: %d values for a matrix of %d×%d", len(values), n, d)
	}
	return &Matrix{n: n, d: d, values: values, stride: d}, nil
}

// padded is the stride of rows of d features that start at cache lines, if that costs little memory.
func padded(d int) int {
	if d < 64 {
		return d
	}
	return kern.Padded(d)
}

// NewSparse returns the n×d matrix whose row i has values[start[i]:start[i+1]] in the columns of
// index there, ascending. It keeps the slices. Memory grows with the values, not with n·d.
func NewSparse(n, d int, start []int, index []int32, values []float64) (*Matrix, error) {
	if n < 1 || d < 1 || len(start) != n+1 || len(index) != len(values) || start[0] != 0 || start[n] != len(values) {
		return nil, fmt.Errorf("convex: %d values, %d columns and %d starts of rows for a sparse matrix of %d×%d",
			len(values), len(index), len(start), n, d)
	}
	for i := range n {
		if start[i] > start[i+1] {
			return nil, fmt.Errorf("convex: row %d of a sparse matrix ends before it starts", i)
		}
	}
	for i := range n {
		for k := start[i]; k < start[i+1]; k++ {
			if j := int(index[k]); j < 0 || j >= d || k > start[i] && index[k-1] >= index[k] {
				return nil,
					fmt.Errorf("convex: row %d of a sparse matrix of %d columns has column %d out of order or range", i,
						d, j)
			}
		}
	}
	if index == nil {
		index = []int32{}
	}
	return &Matrix{n: n, d: d, values: values, index: index, start: start}, nil
}

// Dims returns the numbers of rows and of columns.
func (m *Matrix) Dims() (n, d int) { return m.n, m.d }

// NonZeros returns the number of values stored: n·d of a dense matrix.
func (m *Matrix) NonZeros() int {
	if m.index == nil {
		return m.n * m.d
	}
	return len(m.values)
}

// Row returns the values of row i and, in a sparse matrix, their columns. They must not be changed.
func (m *Matrix) Row(i int) (columns []int32, values []float64) {
	if m.index == nil {
		return nil, m.values[i*m.stride : i*m.stride+m.d]
	}
	a, b := m.start[i], m.start[i+1]
	return m.index[a:b], m.values[a:b]
}

// dot returns xᵢᵀw.
func (m *Matrix) dot(i int, w []float64) float64 {
	columns, values := m.Row(i)
	if m.index == nil {
		return kern.Default().Dot(&values[0], &w[0], m.d)
	}
	// Four sums, since each addition would wait for the one before.
	var s0, s1, s2, s3 float64
	values = values[:len(columns)]
	k := 0
	for ; k+4 <= len(columns); k += 4 {
		c, v := columns[k:k+4:k+4], values[k:k+4:k+4]
		s0 += v[0] * w[c[0]]
		s1 += v[1] * w[c[1]]
		s2 += v[2] * w[c[2]]
		s3 += v[3] * w[c[3]]
	}
	for ; k < len(columns); k++ {
		s0 += values[k] * w[columns[k]]
	}
	return (s0 + s1) + (s2 + s3)
}

// add adds a xᵢ to dst.
func (m *Matrix) add(dst []float64, a float64, i int) {
	columns, values := m.Row(i)
	if m.index == nil {
		kern.Default().Combine2(&dst[0], &values[0], 1, a, m.d)
		return
	}
	for k, j := range columns {
		dst[j] += a * values[k]
	}
}

// norm2 returns ‖xᵢ‖².
func (m *Matrix) norm2(i int) float64 {
	_, values := m.Row(i)
	return floats.Dot(values, values)
}

// MaxRowNorm returns maxᵢ‖xᵢ‖².
func (m *Matrix) MaxRowNorm() float64 {
	most := 0.0
	for i := range m.n {
		most = math.Max(most, m.norm2(i))
	}
	return most
}
