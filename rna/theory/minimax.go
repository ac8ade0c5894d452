package theory

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// minimax is the constrained problem on some points, for Newton's method on a logarithmic barrier.
type minimax struct {
	n      int
	right  float64
	square float64 // the largest ‖p − 1/N‖²
	points []float64
	basis  *mat.Dense // orthonormal, of the coefficients with sum 0

	gamma   []float64 // p = 1/N + basis·gamma
	weights []float64 // of p(x_i) in the dual problem
}

func newMinimax(n int, right, tau float64) *minimax {
	m := &minimax{
		n: n, right: right, square: tau * (2 + tau) / float64(n),
		points: chebyshevPoints(4*n, right),
		basis:  mat.NewDense(n, n-1, nil),
	}
	for k := 1; k < n; k++ { // Helmert's basis
		norm := math.Sqrt(float64(k * (k + 1)))
		for i := range k {
			m.basis.Set(i, k-1, 1/norm)
		}
		m.basis.Set(k, k-1, -float64(k)/norm)
	}
	return m
}

func (m *minimax) polynomial() []float64 {
	p := make([]float64, m.n)
	for i := range p {
		p[i] = 1 / float64(m.n)
		for k, g := range m.gamma {
			p[i] += m.basis.At(i, k) * g
		}
	}
	return p
}

// lower bounds the value from below: no p has a smaller maximum than its mean over the
// weights, and the least mean over the ball is at hand.
func (m *minimax) lower() float64 {
	moments := make([]float64, m.n)
	mean := 0.0
	for k := range moments {
		for i, x := range m.points[:len(m.weights)] {
			moments[k] += m.weights[i] * math.Pow(x, float64(k))
		}
		mean += moments[k] / float64(m.n)
	}
	deviation := 0.0
	for _, v := range moments {
		deviation = math.Hypot(deviation, v-mean)
	}
	return mean - math.Sqrt(m.square)*deviation
}

// solve minimises the largest |p(x_i)|, to 5e-8. More digits would be lost in the multipliers.
func (m *minimax) solve() error {
	n, k := m.n-1, len(m.points)
	if m.square == 0 {
		m.gamma, m.weights = make([]float64, n), make([]float64, k)
		for i, x := range m.points {
			if x == m.right {
				clear(m.weights)
				m.weights[i] = 1
			}
		}
		return nil
	}
	mean := make([]float64, k)
	rows := mat.NewDense(k, n, nil)
	for i, x := range m.points {
		for j := range m.n {
			power := math.Pow(x, float64(j))
			mean[i] += power / float64(m.n)
			for l := range n {
				rows.Set(i, l, rows.At(i, l)+power*m.basis.At(j, l))
			}
		}
	}
	// In the coordinates u = L γ, where LᵀL is the sum of the two squares that the barrier
	// bounds, neither powers of x nor a small or large ball make steps ill-conditioned.
	both := mat.NewDense(k+n, n, nil)
	both.Slice(0, k, 0, n).(*mat.Dense).Copy(rows)
	for l := range n {
		both.Set(k+l, l, math.Sqrt(float64(k)/m.square))
	}
	var qr mat.QR
	qr.Factorize(both)
	var r, inverse mat.Dense
	qr.RTo(&r)
	if err := inverse.Inverse(r.Slice(0, n, 0, n)); err != nil && !errors.As(err, new(mat.Condition)) {
		return fmt.Errorf("rna: Chebyshev polynomial: %w", err)
	}
	b := &barrier{mean: mean, rows: new(mat.Dense), ball: new(mat.SymDense), square: m.square}
	b.rows.Mul(rows, &inverse)
	b.ball.SymOuterK(1, inverse.T())
	z := make([]float64, n+1)
	z[n] = 2
	for weight := 1.; float64(2*k+1)/weight > 5e-8; {
		weight *= 8
		if err := b.minimise(z, weight); err != nil {
			return err
		}
	}
	gamma := mat.NewVecDense(n, nil)
	gamma.MulVec(&inverse, mat.NewVecDense(n, z[:n]))
	m.gamma = gamma.RawVector().Data
	m.weights = b.weights(z)
	return nil
}

// barrier is weight·t − Σ log(t² − e_i²) − log(square − uᵀ ball u) of z = (u, t), e = mean + rows·u.
type barrier struct {
	mean   []float64
	rows   *mat.Dense
	ball   *mat.SymDense
	square float64
}

// value returns the barrier, +Inf outside.
func (b *barrier) value(z []float64, weight float64) float64 {
	e, q, _ := b.parts(z)
	t := z[len(z)-1]
	if !(q > 0) {
		return math.Inf(1)
	}
	v := weight*t - math.Log(q)
	for _, e := range e {
		if !(math.Abs(e) < t) {
			return math.Inf(1)
		}
		v -= math.Log(t-e) + math.Log(t+e)
	}
	return v
}

// parts returns e, the rest of the square, and ball u.
func (b *barrier) parts(z []float64) (e []float64, q float64, ball *mat.VecDense) {
	n := len(z) - 1
	u := mat.NewVecDense(n, z[:n])
	values := mat.NewVecDense(len(b.mean), nil)
	values.MulVec(b.rows, u)
	values.AddVec(values, mat.NewVecDense(len(b.mean), b.mean))
	ball = mat.NewVecDense(n, nil)
	ball.MulVec(b.ball, u)
	return values.RawVector().Data, b.square - mat.Dot(u, ball), ball
}

// weights are the multipliers of the e_i, with absolute sum 1.
func (b *barrier) weights(z []float64) []float64 {
	e, _, _ := b.parts(z)
	t, total := z[len(z)-1], 0.0
	for _, e := range e {
		total += 1/(t-e) + 1/(t+e)
	}
	w := make([]float64, len(e))
	for i, e := range e {
		w[i] = (1/(t-e) - 1/(t+e)) / total
	}
	return w
}

// minimise moves z to the barrier's minimum by Newton's method.
func (b *barrier) minimise(z []float64, weight float64) error {
	n := len(z) - 1
	trial := make([]float64, n+1)
	for range 100 {
		e, q, ball := b.parts(z)
		t := z[n]
		gradient := mat.NewVecDense(n+1, nil)
		hessian := mat.NewSymDense(n+1, nil)
		add := func(i, j int, v float64) { hessian.SetSym(i, j, hessian.At(i, j)+v) }
		gradient.SetVec(n, weight)
		for i, e := range e {
			u, v := 1/(t-e), 1/(t+e)
			gradient.SetVec(n, gradient.AtVec(n)-u-v)
			add(n, n, u*u+v*v)
			for l := range n {
				a := b.rows.At(i, l)
				gradient.SetVec(l, gradient.AtVec(l)+a*(u-v))
				add(l, n, a*(v*v-u*u))
				for k := range l + 1 {
					add(k, l, a*b.rows.At(i, k)*(u*u+v*v))
				}
			}
		}
		for l := range n {
			gradient.SetVec(l, gradient.AtVec(l)+2*ball.AtVec(l)/q)
			for k := range l + 1 {
				add(k, l, 2*b.ball.At(k, l)/q+4*ball.AtVec(k)*ball.AtVec(l)/(q*q))
			}
		}
		var factor mat.Cholesky
		if !factor.Factorize(hessian) {
			return nil // at the end of the digits: the certificate tells how good this is
		}
		var step mat.VecDense
		if err := factor.SolveVecTo(&step, gradient); err != nil && !errors.As(err, new(mat.Condition)) {
			return fmt.Errorf("rna: Chebyshev polynomial: %w", err)
		}
		decrement := mat.Dot(gradient, &step)
		if !(decrement > 1e-12) {
			return nil
		}
		now, length := b.value(z, weight), 1.0
		for ; length > 1e-10; length /= 2 {
			for i := range trial {
				trial[i] = z[i] - length*step.AtVec(i)
			}
			if b.value(trial, weight) <= now-length*decrement/4 {
				break
			}
		}
		if length <= 1e-10 {
			return nil
		}
		copy(z, trial)
	}
	return nil
}
