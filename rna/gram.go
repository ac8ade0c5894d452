package rna

import (
	"gonum.org/v1/gonum/mat"
)

// Gram returns RᵀR of residuals whose vectors lie in space, from scratch, for offline RNA without a window. Spaces of
// this package read each vector once, others once for each row. It returns nil for no residuals. [Factor] decomposes
// the result.
func Gram(space Space, rs []Residual) (*mat.SymDense, error) {
	if len(rs) == 0 {
		return nil, nil
	}
	lower, err := triangle(space, rs)
	if err != nil {
		return nil, err
	}
	g := mat.NewSymDense(len(rs), nil)
	for i := range rs {
		for j := range i + 1 {
			g.SetSym(i, j, lower[i*(i+1)/2+j])
		}
	}
	return g, nil
}

// triangle is the lower triangle of the Gram matrix of rs by rows.
func triangle(space Space, rs []Residual) (lower []float64, err error) {
	switch s := space.(type) {
	case gramSpace:
		return s.gramMatrix(rs)
	case Divided:
		return dividedTriangle(s, rs)
	}
	for i := range rs {
		row := make([]float64, i+1)
		if err := space.GramRow(row, rs[i], rs[:i+1]); err != nil {
			return nil, err
		}
		lower = append(lower, row...)
	}
	return lower, nil
}
