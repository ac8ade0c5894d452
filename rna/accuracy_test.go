package rna

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// gmres returns the k-th GMRES iterate for m x = b from x0: Arnoldi, then a small least
// squares problem.
func gmres(m *mat.Dense, b, x0 *mat.VecDense, k int) *mat.VecDense {
	d := b.Len()
	r := mat.NewVecDense(d, nil)
	r.MulVec(m, x0)
	r.SubVec(b, r)
	norm := r.Norm(2)
	q := make([]*mat.VecDense, k+1)
	q[0] = mat.NewVecDense(d, nil)
	q[0].ScaleVec(1/norm, r)
	h := mat.NewDense(k+1, k, nil)
	for j := range k {
		v := mat.NewVecDense(d, nil)
		v.MulVec(m, q[j])
		for range 2 { // orthogonalise twice
			for i := range j + 1 {
				a := mat.Dot(q[i], v)
				h.Set(i, j, h.At(i, j)+a)
				v.AddScaledVec(v, -a, q[i])
			}
		}
		h.Set(j+1, j, v.Norm(2))
		q[j+1] = mat.NewVecDense(d, nil)
		q[j+1].ScaleVec(1/v.Norm(2), v)
	}
	e := mat.NewVecDense(k+1, nil)
	e.SetVec(0, norm)
	var y mat.VecDense
	if err := y.SolveVec(h, e); err != nil {
		panic(err)
	}
	x := mat.VecDenseCopyOf(x0)
	for j := range k {
		x.AddScaledVec(x, y.AtVec(j), q[j])
	}
	return x
}

// On a linear contraction x = g(y) = y + b − M y, RNA with λ = 0 over N residuals is
// GMRES after N − 1 steps, followed by one step of g when β = 1.
func TestGMRES(t *testing.T) {
	const d = 40
	rng := rand.New(rand.NewPCG(1, 1))
	// M = I − G with a random basis and eigenvalues of G in [−0.5, 0.8].
	basis := mat.NewDense(d, d, nil)
	for i := range d {
		for j := range d {
			basis.Set(i, j, rng.NormFloat64())
		}
	}
	var qr mat.QR
	qr.Factorize(basis)
	var q mat.Dense
	qr.QTo(&q)
	m, scaled := mat.NewDense(d, d, nil), mat.DenseCopyOf(&q)
	for j := range d {
		for i := range d {
			scaled.Set(i, j, q.At(i, j)*(1-(-.5+1.3*float64(j)/(d-1))))
		}
	}
	m.Mul(scaled, q.T())
	b, x0 := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
	for i := range d {
		b.SetVec(i, rng.NormFloat64())
		x0.SetVec(i, rng.NormFloat64())
	}
	step := func(y *mat.VecDense) *mat.VecDense {
		x := mat.NewVecDense(d, nil)
		x.MulVec(m, y)
		x.SubVec(b, x)
		x.AddVec(x, y)
		return x
	}
	for n := 1; n <= 6; n++ {
		t.Run(fmt.Sprint("N=", n), func(t *testing.T) {
			s, _ := NewHost64(d, 1)
			w := window(t, s, n)
			v := mat.VecDenseCopyOf(x0)
			push(t, w, v.RawVector().Data)
			for range n {
				v = step(v)
				push(t, w, v.RawVector().Data)
			}
			want := x0
			if n > 1 {
				want = gmres(m, b, x0, n-1)
			}
			for beta, want := range map[float64]*mat.VecDense{0: want, 1: step(want)} {
				got := extrapolate(t, w, Options{Lambda: Set(0), Beta: Set(beta)})
				for i := range got {
					if !near(got[i], want.AtVec(i), 1e-9) {
						t.Fatalf("β = %v: y⁺[%d] = %v and GMRES has %v", beta, i, got[i], want.AtVec(i))
					}
				}
			}
		})
	}
}

// A float32 window of 10 Krylov-like residuals of 20,000 elements: c at λ = 1e-9 against
// extended precision on the same snapshots.
func TestFloat32Accuracy(t *testing.T) {
	const d, n, lambda = 20_000, 10, 1e-9
	rng := rand.New(rand.NewPCG(3, 3))
	s, _ := NewHost32(d, 2)
	w := window(t, s, n)
	rate, v := make([]float64, d), make([]float64, d)
	for i := range v {
		rate[i] = .95 * rng.Float64()
		v[i] = rng.NormFloat64()
	}
	snapshots := make([]Slice32, n+1)
	for k := range snapshots {
		snapshots[k] = make(Slice32, d)
		for i := range v {
			snapshots[k][i] = float32(v[i])
			v[i] *= rate[i]
		}
		if err := w.Push(snapshots[k]); err != nil {
			t.Fatal(err)
		}
	}
	gram := bigGram(func(k, i int) (x, y float64) { return float64(snapshots[k+1][i]), float64(snapshots[k][i]) }, n, d)
	res := solve(t, w, Options{Lambda: Set(lambda)})
	if res.Status != OK {
		t.Fatal(res.Err())
	}
	off := relativeError(res.C, bigSolve(gram, lambda))
	t.Logf("‖c‖ = %.3g, relative error %.1e", res.NormC, off)
	if !(off <= 1e-12 && off <= res.Accuracy && res.Accuracy <= 1e-12) {
		t.Errorf("relative error %.1e, said to be %.1e at most", off, res.Accuracy)
	}
}
