package theory

import (
	"fmt"
	"math"
)

// ChebyshevRate returns the guaranteed gain of N residuals of a linear method: for g(y) = G(y − x*) + x* with a
// symmetric 0 ⪯ G ⪯ (1−κ)I, λ = 0 and any β,
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

// maxChebyshev is the largest N of ConstrainedChebyshev: with more powers of x, float64 coefficients are too
// imprecise.
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
	return nil, 0, fmt.Errorf("rna: Chebyshev polynomial for %d residuals, kappa %v, tau %v: found only to %.1e", n,
		kappa, tau, value-m.lower())
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
