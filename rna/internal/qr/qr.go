// Package qr finds the triangular factor of tall matrices that come in blocks of rows.
package qr

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
)

// A Factor is the upper triangular R of A = QR for the rows of A seen so far, which may be
// fewer than its columns. R is unique up to the signs of its rows. Q is not kept.
type Factor struct {
	columns [][]float64 // column j holds j+1 elements
}

// New returns the factor of a matrix of n columns without rows.
func New(n int) *Factor {
	f := &Factor{columns: make([][]float64, n)}
	for j := range f.columns {
		f.columns[j] = make([]float64, j+1)
	}
	return f
}

// At returns the element in row i and column j.
func (f *Factor) At(i, j int) float64 {
	if i > j {
		return 0
	}
	return f.columns[j][i]
}

// Fold adds rows to A, given by columns of equal length, and overwrites them. The squares
// of elements must not overflow.
func (f *Factor) Fold(rows [][]float64) {
	impl := blas64.Implementation()
	for k, v := range rows {
		// The reflection of (r, v) onto (±‖(r, v)‖, 0), written I − t (1, v)(1, v)ᵀ.
		r := f.columns[k][k]
		square := impl.Ddot(len(v), v, 1, v, 1)
		if square == 0 {
			continue
		}
		pivot := -math.Copysign(math.Sqrt(r*r+square), r)
		t := (pivot - r) / pivot
		impl.Dscal(len(v), 1/(r-pivot), v, 1)
		f.columns[k][k] = pivot
		for j := k + 1; j < len(rows); j++ {
			a := t * (f.columns[j][k] + impl.Ddot(len(v), rows[j], 1, v, 1))
			f.columns[j][k] -= a
			impl.Daxpy(len(v), -a, v, 1, rows[j], 1)
		}
	}
}

// Merge folds the rows of other, a factor of as many columns, which it overwrites.
func (f *Factor) Merge(other *Factor) {
	rows := make([][]float64, len(other.columns))
	for j, c := range other.columns {
		rows[j] = append(c, make([]float64, len(rows)-len(c))...)
	}
	f.Fold(rows)
}
