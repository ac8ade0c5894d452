package convex

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Norm2 returns ‖XXᵀ‖₂, the square of the largest singular value, to the rounding of a product.
func (m *Matrix) Norm2() float64 {
	m.normed.Do(func() { m.norm = m.largestSquare() })
	return m.norm
}

func (m *Matrix) largestSquare() float64 {
	// Lanczos with full reorthogonalisation on XᵀX.
	const most = 150
	t := newTeam(m)
	product := newProduct(m, t)
	defer t.begin()()
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([]float64, m.d)
	for j := range v {
		v[j] = 1 + rng.Float64() // features are often of one sign
	}
	floats.Scale(1/floats.Norm(v, 2), v)
	var basis [][]float64
	var diagonal, offDiagonal []float64
	last := 0.0
	for k := range min(most, m.d) {
		basis = append(basis, v)
		next := make([]float64, m.d)
		product.apply(next, v, nil)
		diagonal = append(diagonal, floats.Dot(next, v))
		for range 2 {
			for _, b := range basis {
				floats.AddScaled(next, -floats.Dot(next, b), b)
			}
		}
		norm := floats.Norm(next, 2)
		top := largest(diagonal, offDiagonal)
		if k > 0 && (math.Abs(top-last) <= 1e-15*top && k > 8 || norm <= 1e-15*top) || norm == 0 {
			return top
		}
		last = top
		offDiagonal = append(offDiagonal, norm)
		floats.Scale(1/norm, next)
		v = next
	}
	return last
}

// largest returns the largest eigenvalue of a symmetric tridiagonal matrix.
func largest(diagonal, offDiagonal []float64) float64 {
	k := len(diagonal)
	t := mat.NewSymDense(k, nil)
	for i := range k {
		t.SetSym(i, i, diagonal[i])
		if i > 0 {
			t.SetSym(i-1, i, offDiagonal[i-1])
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(t, false) {
		return floats.Max(diagonal)
	}
	return eig.Values(nil)[k-1]
}
