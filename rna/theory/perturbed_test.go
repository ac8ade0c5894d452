package theory

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna"
)

// spectralNorm is ‖m‖₂ of columns.
func spectralNorm(columns [][]float64) float64 {
	m := mat.NewDense(len(columns[0]), len(columns), nil)
	for j, c := range columns {
		m.SetCol(j, c)
	}
	var svd mat.SVD
	svd.Factorize(m, mat.SVDNone)
	return svd.Values(nil)[0]
}

// differencesOf are a_i − b_i.
func differencesOf(a, b [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		out[i] = make([]float64, len(a[i]))
		for k := range out[i] {
			out[i][k] = a[i][k] - b[i][k]
		}
	}
	return out
}

// perturb runs a scheme without and with errors, and returns ‖E‖ and ‖P‖.
func perturb(s *Scheme, g contractive, x0 []float64, n int, es [][]float64) (xs, ys [][]float64, errors,
	perturbation float64) {
	ex, ey := run(s, g.at, x0, n, nil)
	xs, ys = run(s, g.at, x0, n, es)
	return xs, ys, spectralNorm(es), spectralNorm(differencesOf(differencesOf(xs, ys), differencesOf(ex, ey)))
}

func noise(rng *rand.Rand, n, d int, size float64) [][]float64 {
	es := make([][]float64, n)
	for i := range es {
		es[i] = normal(rng, d)
		for k := range es[i] {
			es[i][k] *= size
		}
	}
	return es
}

// Proposition explicit_formula_perturbation, and the counter-example to its print.
func TestPerturbationBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 21))
	worst := 0.0
	for k := range 60 {
		d, n := 1+rng.IntN(12), 1+rng.IntN(7)
		kappa := rng.Float64()
		values := make([]float64, d)
		for i := range values {
			values[i] = (1 - kappa) * rng.Float64()
		}
		g := newContractive(rng, values)
		s := nesterov(t, n, float64(k%3)/2)
		if k%4 == 3 {
			s = randomScheme(t, rng, n)
		}
		es := noise(rng, n, d, 1)
		if k%2 == 1 { // errors that pull against each other
			for i := range es {
				for j := range es[i] {
					es[i][j] = es[0][j] * math.Pow(-1, float64(i))
				}
			}
		}
		_, _, e, p := perturb(s, g, normal(rng, d), n, es)
		bound := PerturbationBound(s.Norms(n-1), kappa, e)
		worst = max(worst, p/bound)
		if p > bound*(1+1e-9) {
			t.Errorf("N = %d, κ = %v: ‖P‖ = %v exceeds %v", n, kappa, p, bound)
		}
	}
	t.Logf("largest share of the bound: %.2f", worst)
	g := contractive{g: mat.NewSymDense(1, []float64{0}), solution: []float64{0}}
	s := nesterov(t, 2, 0)
	_, _, e, p := perturb(s, g, []float64{1}, 2, [][]float64{{1}, {-1}})
	if printed := e; !near(p, math.Sqrt(5), 1e-12) || !near(printed, math.Sqrt2, 1e-12) ||
		PerturbationBound(s.Norms(1), 1, e) < p {
		t.Errorf("‖E‖ = %v, ‖P‖ = %v", e, p)
	}
}

// Theorem convergence_perturbation on chains with errors of any size, and the counter-example to its print.
func TestPerturbedBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 21))
	worst := 0.0
	for range 12 {
		d, n := 5+rng.IntN(20), 2+rng.IntN(5)
		kappa := []float64{.02, .2, .7}[rng.IntN(3)]
		g := newContractive(rng, spectrum(rng, d, kappa))
		x0 := normal(rng, d)
		s := nesterov(t, n, 0)
		xs, ys, e, p := perturb(s, g, x0, n, noise(rng, n, d, math.Pow(10, -6*rng.Float64())))
		w := pairs(t, xs, ys)
		first := g.residual(x0)
		for _, tau := range []float64{0, .1, 1, 10} {
			for _, beta := range []float64{1, -.5} {
				got := g.residual(extrapolate(t, w, rna.Options{Tau: rna.Set(tau), Beta: rna.Set(beta)}))
				bound := PerturbedBound(n, kappa, tau, beta, first, e, p)
				worst = max(worst, got/bound)
				if !(got <= bound*(1+1e-6)) {
					t.Errorf("κ = %v, N = %d, τ = %v, β = %v: %v exceeds %v", kappa, n, tau, beta, got, bound)
				}
			}
		}
	}
	t.Logf("largest share of the bound: %.2f", worst)
	// As printed, ‖E‖ counts (1−κ) times only.
	const kappa = .999
	g := contractive{g: mat.NewSymDense(2, nil), solution: []float64{0, 0}}
	xs, ys, e, p := perturb(nesterov(t, 2, 0), g, []float64{1, 0}, 2, [][]float64{{0, 1}, {0, 1}})
	got := g.residual(extrapolate(t, pairs(t, xs, ys), rna.Options{Tau: rna.Set(0)}))
	printed := MixingNorm(1, kappa) * (ConstrainedBound(2, kappa, 0, 1, 1)/MixingNorm(1, kappa) + (p+e)/math.Sqrt2)
	if !(got > printed) || !(got <= PerturbedBound(2, kappa, 0, 1, 1, e, p)) {
		t.Errorf("%v, as printed at most %v", got, printed)
	}
}
