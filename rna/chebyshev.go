package rna

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ChebyshevRate returns what N residuals of a linear method are sure to gain: for g(y) = G(y − x*) + x* with
// a symmetric 0 ⪯ G ⪯ (1−κ)I, λ = 0 and any β,
//
//	‖r(y⁺)‖ ≤ ‖I + β(G − I)‖ ‖r(y_0)‖ 2ρ^(N−1)/(1 + ρ^(2(N−1))),   ρ = (1−√κ)/(1+√κ).
//
// The last factor is the least maximum over [0, 1−κ] of a |p| with p(1) = 1 and of degree N−1 at most. (The
// paper's theorem prints ρ^(N−1), which is less than that.) It is NaN unless n ≥ 1
// and 0 < κ ≤ 1.
func ChebyshevRate(n int, kappa float64) float64 {
	if n < 1 || !(kappa > 0 && kappa <= 1) {
		return math.NaN()
	}
	root := math.Sqrt(kappa)
	power := math.Pow((1-root)/(1+root), float64(n-1))
	return 2 * power / (1 + power*power)
}

// maxChebyshev is the largest N of ConstrainedChebyshev: with more powers of x, coefficients lack the digits.
const maxChebyshev = 10

// ConstrainedChebyshev returns the polynomial behind the bound of CNA with N residuals: the p of degree N−1 at
// most that solves
//
//	minimise max |p(x)| over [0, 1−κ]   subject to   p(1) = 1 and ‖p‖₂ ≤ (1+τ)/√N,
//
// as its coefficients, that of 1 first, and the value of the maximum, to 1e-6. With the chain y_i = x_i, where
// the coefficients of p can be those of the residuals, CNA keeps to
//
//	‖r(y⁺)‖ ≤ ‖I + β(G − I)‖ ‖r(y_0)‖ value
//
// for a g as in [ChebyshevRate], which is the value for large τ. That of τ = 0 is the maximum of the uniform
// average of 1, x, …, x^(N−1).
//
// N goes from 1 to 10, 0 < κ ≤ 1 and τ ≥ 0.
func ConstrainedChebyshev(n int, kappa, tau float64) (p []float64, value float64, err error) {
	switch {
	case n < 1 || n > maxChebyshev:
		return nil, 0, fmt.Errorf("rna: Chebyshev polynomial for %d residuals: there must be 1 to %d", n, maxChebyshev)
	case !(kappa > 0 && kappa <= 1):
		return nil, 0, fmt.Errorf("rna: Chebyshev polynomial with kappa %v: it must be above 0, and 1 at most", kappa)
	case !(tau >= 0):
		return nil, 0, fmt.Errorf("rna: Chebyshev polynomial with tau %v: it must be 0 or more", tau)
	}
	p = chebyshev(n, kappa)
	norm := 0.0
	for _, c := range p {
		norm = math.Hypot(norm, c)
	}
	if norm <= (1+tau)/math.Sqrt(float64(n)) {
		return p, ChebyshevRate(n, kappa), nil
	}
	m := newMinimax(n, 1-kappa, tau)
	for range 20 {
		if err := m.solve(); err != nil {
			return nil, 0, err
		}
		p = m.polynomial()
		peaks := peaks(p, m.right)
		value = 0
		for _, x := range peaks {
			value = max(value, math.Abs(evaluate(p, x)))
		}
		if value-m.lower() <= 5e-7 {
			return p, value, nil
		}
		m.points = append(m.points, peaks...)
	}
	return nil, 0, fmt.Errorf("rna: Chebyshev polynomial for %d residuals, kappa %v, tau %v: found only to %.1e", n, kappa, tau, value-m.lower())
}

// chebyshev returns T(2x/(1−κ) − 1)/T(2/(1−κ) − 1) for Chebyshev's T of degree n−1.
func chebyshev(n int, kappa float64) []float64 {
	p := make([]float64, n)
	if kappa == 1 || n == 1 { // on {0}, x^(n−1) will do
		p[n-1] = 1
		return p
	}
	a := 2 / (1 - kappa)
	before, t := make([]float64, n), make([]float64, n)
	before[0], t[0], t[1] = 1, -1, a
	for range n - 2 { // T⁺ = 2(ax − 1)T − T⁻
		next := make([]float64, n)
		for i := range n {
			next[i] = -2*t[i] - before[i]
			if i > 0 {
				next[i] += 2 * a * t[i-1]
			}
		}
		before, t = t, next
	}
	at1 := evaluate(t, 1)
	for i := range p {
		p[i] = t[i] / at1
	}
	return p
}

// evaluate returns p(x) by Horner's rule.
func evaluate(p []float64, x float64) (v float64) {
	for i := len(p) - 1; i >= 0; i-- {
		v = v*x + p[i]
	}
	return v
}

// peaks returns the ends of [0, right] and where |p| is largest between its neighbours.
func peaks(p []float64, right float64) []float64 {
	grid := chebyshevPoints(64*len(p), right)
	found := []float64{0, right}
	size := func(i int) float64 { return math.Abs(evaluate(p, grid[i])) }
	for i := 1; i+1 < len(grid); i++ {
		if size(i) < size(i-1) || size(i) < size(i+1) {
			continue
		}
		// Golden sections.
		lo, hi := grid[i-1], grid[i+1]
		for range 60 {
			a, b := hi-(hi-lo)/math.Phi, lo+(hi-lo)/math.Phi
			if math.Abs(evaluate(p, a)) >= math.Abs(evaluate(p, b)) {
				hi = b
			} else {
				lo = a
			}
		}
		found = append(found, (lo+hi)/2)
	}
	return found
}

// chebyshevPoints returns m+1 points of [0, right] that crowd at its ends.
func chebyshevPoints(m int, right float64) []float64 {
	xs := make([]float64, m+1)
	for i := range xs {
		s := math.Sin(math.Pi / 2 * float64(i) / float64(m))
		xs[i] = right * s * s
	}
	return xs
}

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

// parts returns e, what is left of the square, and ball u.
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
