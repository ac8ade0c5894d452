package theory

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna"
)

// Proposition convergence_stoch_gradient: the mean over runs with Gaussian noise, for CNA. While noise is small a
// large τ is better, where it dominates the average is.
func TestStochasticBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 21))
	const d, n, l = 30, 6, 4.0
	const kappa = .05
	g := newContractive(rng, spectrum(rng, d, kappa))
	x0 := normal(rng, d)
	first := l * g.residual(x0) // ∇f = L(I − G)(x − x*)
	s := nesterov(t, n, 0)
	for _, sigma := range []float64{1e-4, 1e-2, 1, 100} {
		means := map[float64]float64{}
		const runs = 100
		for range runs {
			xs, ys := run(s, g.at, x0, n, noise(rng, n, d, sigma/math.Sqrt(d)))
			w := pairs(t, xs, ys)
			for _, tau := range []float64{0, 1, 20} {
				means[tau] += l * g.residual(extrapolate(t, w, rna.Options{Tau: rna.Set(tau)})) / runs
			}
		}
		for tau, mean := range means {
			bound := StochasticBound(n, kappa, tau, l, sigma, first)
			t.Logf("σ = %g, τ = %g: mean ‖∇f(y⁺)‖ = %.3g, bound %.3g", sigma, tau, mean, bound)
			if !(mean <= bound) {
				t.Errorf("σ = %g, τ = %g: mean ‖∇f(y⁺)‖ = %g exceeds %g", sigma, tau, mean, bound)
			}
		}
		if small := sigma < .1; sigma != 1 && small != (means[20] < means[0]) {
			t.Errorf("σ = %g: mean gradients by τ are %v", sigma, means)
		}
	}
}

// The same for the noise of sampling, SGD's and SAGA's, on least squares, with σ² the largest variance along the path.
func TestStochasticBoundOfSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 21))
	const samples, d, n = 60, 5, 5
	a := make([][]float64, samples)
	hessian := mat.NewSymDense(d, nil)
	for i := range a {
		a[i] = normal(rng, d)
		hessian.SymRankOne(hessian, 1./samples, mat.NewVecDense(d, a[i]))
	}
	var eig mat.EigenSym
	eig.Factorize(hessian, false)
	values := eig.Values(nil)
	l, kappa := values[d-1], values[0]/values[d-1]
	truth := normal(rng, d)
	targets := make([]float64, samples)
	for i := range targets {
		for k := range d {
			targets[i] += a[i][k] * truth[k]
		}
		targets[i] += .3 * rng.NormFloat64()
	}
	one := func(i int, w []float64) float64 { // the slope of sample i
		z := -targets[i]
		for k := range d {
			z += a[i][k] * w[k]
		}
		return z
	}
	gradient := func(w []float64) []float64 {
		g := make([]float64, d)
		for i := range samples {
			for k := range d {
				g[k] += one(i, w) * a[i][k] / samples
			}
		}
		return g
	}
	norm := func(v []float64) (s float64) {
		for _, x := range v {
			s = math.Hypot(s, x)
		}
		return s
	}
	for _, saga := range []bool{false, true} {
		const runs, batch = 200, 10
		var sigma2, mean, start float64
		x0 := normal(rng, d)
		start = norm(gradient(x0))
		for range runs {
			table, average := make([]float64, samples), make([]float64, d)
			if saga { // a table near the optimum, as SAGA's after some epochs
				near := append([]float64(nil), truth...)
				for i := range table {
					table[i] = one(i, near)
					for k := range d {
						average[k] += table[i] * a[i][k] / samples
					}
				}
			}
			y := append([]float64(nil), x0...)
			var xs, ys [][]float64
			for range n {
				full := gradient(y)
				variance := 0.0 // E‖e‖² at y, exactly
				for i := range samples {
					for k := range d {
						e := ((one(i, y)-table[i])*a[i][k] + average[k] - full[k]) / l
						variance += e * e / (samples * batch)
					}
				}
				sigma2 = max(sigma2, variance)
				x := make([]float64, d)
				for k := range d {
					x[k] = y[k] - average[k]/l
				}
				picked := map[int]float64{}
				for range batch {
					i := rng.IntN(samples)
					change := one(i, y) - table[i]
					picked[i] = change
					for k := range d {
						x[k] -= change * a[i][k] / (l * batch)
					}
				}
				for i, change := range picked {
					if !saga {
						break
					}
					table[i] += change
					for k := range d {
						average[k] += change * a[i][k] / samples
					}
				}
				xs, ys = append(xs, x), append(ys, y)
				y = x
			}
			mean += norm(gradient(extrapolate(t, pairs(t, xs, ys), rna.Options{Tau: rna.Set(1)}))) / runs
		}
		bound := StochasticBound(n, kappa, 1, l, math.Sqrt(sigma2), start)
		t.Logf("SAGA %v: σ = %.3g, mean ‖∇f(y⁺)‖ = %.3g, bound %.3g", saga, math.Sqrt(sigma2), mean, bound)
		if !(mean <= bound) {
			t.Errorf("SAGA %v: mean ‖∇f(y⁺)‖ = %g exceeds %g", saga, mean, bound)
		}
	}
}
