package convex

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// BFGS's inverse maps the newest q to s, and is the textbook's (I − ρsqᵀ)H(I − ρqsᵀ) + ρssᵀ, both while it is kept as
// updates and as the matrix that these become.
func TestBFGSInverse(t *testing.T) {
	const d = 40
	rng := rand.New(rand.NewPCG(1, 9))
	draw := func() []float64 {
		v := make([]float64, d)
		for j := range v {
			v[j] = rng.NormFloat64()
		}
		return v
	}
	b := &full{}
	var want mat.Dense
	for k := range 12 {
		s := draw()
		q := make([]float64, d) // a Hessian with eigenvalues 1 to 3 maps s to it
		for j := range q {
			q[j] = s[j] * (1 + 2*float64(j)/d)
		}
		sq := floats.Dot(s, q)
		if k == 0 {
			h := mat.NewDense(d, d, nil)
			for j := range d {
				h.Set(j, j, sq/floats.Dot(q, q))
			}
			want.CloneFrom(h)
		}
		left := mat.NewDense(d, d, nil)
		left.Outer(-1/sq, mat.NewVecDense(d, s), mat.NewVecDense(d, q))
		for j := range d {
			left.Set(j, j, left.At(j, j)+1)
		}
		var m, outer mat.Dense
		m.Mul(left, &want)
		want.Mul(&m, left.T())
		outer.Outer(1/sq, mat.NewVecDense(d, s), mat.NewVecDense(d, s))
		want.Add(&want, &outer)

		b.update(s, q)
		if (b.h != nil) != (k >= 5) {
			t.Errorf("update %d: a matrix: %v", k, b.h != nil)
		}
		g, got := draw(), make([]float64, d)
		b.apply(got, g)
		var w mat.VecDense
		w.MulVec(&want, mat.NewVecDense(d, g))
		for j := range got {
			if !(math.Abs(got[j]-w.AtVec(j)) <= 1e-12*(1+math.Abs(w.AtVec(j)))) {
				t.Fatalf("update %d: %v, want %v", k, got[j], w.AtVec(j))
			}
		}
		b.apply(got, q)
		if !floats.EqualApprox(got, s, 1e-11) {
			t.Fatalf("update %d: H q is not s", k)
		}
	}
}
