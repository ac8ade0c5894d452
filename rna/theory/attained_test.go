package theory

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna"
)

// Values by hand, exact but for rounding.
func TestBoundsByHand(t *testing.T) {
	third := 1. / 3
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"norm of c, N = 2, λ = 1/2", NormBound(2, .5), math.Sqrt(1.5)},
		{"norm of c, N = 8, λ = 1", NormBound(8, 1), .5},
		{"norm of c, N = 5, λ = 1/4", NormBound(5, .25), 1},
		{"mixing, β = 1", MixingNorm(1, .25), .75},
		{"mixing, β = 2", MixingNorm(2, .25), 1},
		{"mixing, β = 0", MixingNorm(0, .25), 1},
		// 2ρ/(1 + ρ²) = (1−κ)/(1+κ) for N = 2, and for N = 3, κ = 1/4, ρ = 1/3: 2/9/(1 + 1/81) = 9/41.
		{"optimal, N = 2", OptimalBound(2, 2, third, 0, 6), 3},
		{"optimal, N = 3", OptimalBound(3, 3, .25, 1, 164), 27},
		{"optimal, N > d", OptimalBound(3, 2, .25, 1, 164), 0},
		{"asymptotic, N = 3", AsymptoticBound(3, .25, 1, 164), 27},
		// τ = 0: (1 + ½)/2 = ¾ and (1 + ½ + ¼)/3 = 7/12. τ = 1, N = 2: s = 2/(1+κ) = 4/3, 1 − κs = 1/3.
		{"constrained, N = 2", ConstrainedBound(2, .5, 0, 1, 4), 1.5},
		{"constrained, N = 3", ConstrainedBound(3, .5, 0, 0, 12), 7},
		{"constrained, τ = 1", ConstrainedBound(2, .5, 1, 1, 12), 2},
		{"perturbation, N = 1", PerturbationBound(nil, .5, 10), 10},
		{"perturbation, N = 2", PerturbationBound([]float64{3}, .5, 10), 40},
		{"perturbation, N = 3", PerturbationBound([]float64{2, 3}, .5, 10), 70},
		{"perturbation, N = 4", PerturbationBound([]float64{5, 2, 3}, .5, 10), 145},
		{"perturbed, τ = 0", PerturbedBound(2, .5, 0, 1, 4, 5*math.Sqrt2, 3*math.Sqrt2), 1.5 + 1.5 + 5},
		{"perturbed, τ = 1", PerturbedBound(2, .5, 1, 1, 12, 5*math.Sqrt2, 3*math.Sqrt2), 2 + 3 + 10},
		{"noise, N = 2", StochasticBound(2, .5, 0, 2, 3, 4), 1.5 + 6*(1+.5*2)},
		{"noise, N = 3", StochasticBound(3, .5, 0, 1, 1, 6), 1.75 + 1 + .5*2.5},
		{"noise, τ = 1", StochasticBound(2, .5, 1, 2, 3, 12), 2 + 12*(1+.5*2)},
		{"nonlinear, τ = 0", NonlinearBound(2, .5, 0, 1, 4, 3, 2, 2), 1.5 + 12},
		{"nonlinear, τ = 1, α = 3", NonlinearBound(2, .5, 1, 1, 12, 3, 2, 3), 2 + 48},
		{"linearisation, near", LinearisationError(2, 3, .5), .1875},
		{"linearisation, far", LinearisationError(2, 3, 10), 10},
		{"γ, N = 1", LinearisationGamma(1, .5, 1, 2, 3), (.5 + 1) * .75},
		{"γ, N = 2", LinearisationGamma(2, .5, 1, 2, 3), (.5*2 + 1) * .75},
		{"γ, N = 3", LinearisationGamma(3, .5, 0, 2, 3), (2.5 + 1) * .75},
	} {
		if !near(c.got, c.want, 1e-6) { // that of the constrained polynomial
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if tau, lambda, err := AsymptoticOrders(3.5); tau != 2.5 || lambda != 5 || err != nil {
		t.Errorf("orders %v and %v, %v", tau, lambda, err)
	}
	for _, alpha := range []float64{.5, 1, math.NaN()} {
		if tau, lambda, err := AsymptoticOrders(alpha); err == nil || tau != 0 || lambda != 0 {
			t.Errorf("errors of the order %v went through", alpha)
		}
	}
	// L_1 of y_1 = 2x_1 − x_0 is (1, −1; 0, 2), whose LᵀL has the eigenvalues 3 ± √5.
	if norms := nesterov(t, 3, 1).Norms(1); !near(norms[0], math.Sqrt(3+math.Sqrt(5)), 1e-14) {
		t.Errorf("‖L_1‖ = %v", norms)
	}
	for _, norm := range nesterov(t, 3, 0).Norms(3) {
		if !near(norm, 1, 1e-14) {
			t.Errorf("the chain has a norm of %v", norm)
		}
	}
}

// ‖c‖ comes to half of the bound as λ → 0, and no further: by Kantorovich's inequality it is at most
// (1+2λ)/(2√(λ(1+λ)N)), which R of rank one attains.
func TestNormBoundAttained(t *testing.T) {
	for _, n := range []int{2, 5} {
		for _, lambda := range []float64{1e-8, 1e-3, .1, 1, 10} {
			square := lambda / (1 + 2*lambda) // sin² of the angle between R's right singular vector and the ones
			v := make([]float64, n)
			for i := range v {
				v[i] = math.Sqrt((1 - square) / float64(n))
			}
			v[0] += math.Sqrt(square / 2)
			v[1] -= math.Sqrt(square / 2)
			gram := mat.NewSymDense(n, nil)
			gram.SymOuterK(1, mat.NewDense(n, 1, v))
			res := rna.Factor(gram).Solve(lambda)
			sharp := (1 + 2*lambda) / (2 * math.Sqrt(lambda*(1+lambda)*float64(n)))
			if bound := NormBound(n, lambda); !near(res.NormC, sharp, 1e-6) || res.NormC > bound || 2*res.NormC < bound {
				t.Errorf("N = %d, λ = %g: ‖c‖ = %v, at most %v, bound %v", n, lambda, res.NormC, sharp, bound)
			}
		}
	}
}

// diagonal is a chain of n steps of g(y) = a∘y with the first residual r.
func diagonal(a, r []float64, n int) (xs, ys [][]float64) {
	y := make([]float64, len(a))
	for i := range y {
		y[i] = r[i] / (a[i] - 1)
	}
	g := linear{a, make([]float64, len(a))}
	for range n {
		x := g.at(y)
		xs, ys = append(xs, x), append(ys, y)
		y = x
	}
	return xs, ys
}

// The optimal rate is attained: at the extrema x_i of Chebyshev's polynomial, with squares of residuals in proportion
// to the size of Lagrange's polynomials at 1. It exceeds ρ^(N−1), which the paper prints.
func TestOptimalBoundAttained(t *testing.T) {
	for _, kappa := range []float64{.05, .3} {
		for n := 1; n <= 5; n++ {
			a, r := make([]float64, n), make([]float64, n)
			for i := range a {
				a[i] = (1 - kappa) / 2
				if n > 1 {
					a[i] *= 1 + math.Cos(math.Pi*float64(i)/float64(n-1))
				}
			}
			for i := range r {
				size := 1.0
				for j := range a {
					if j != i {
						size *= (1 - a[j]) / (a[i] - a[j])
					}
				}
				r[i] = math.Sqrt(math.Abs(size))
			}
			first := norm2(r)
			w := pairs2(t, a, r, n)
			opt := rna.Options{Lambda: rna.Set(0), Beta: rna.Set(0)} // β = 0: r(y⁺) = R c
			got := linear{a, make([]float64, n)}.residual(extrapolate(t, w, opt))
			if bound := OptimalBound(n, n, kappa, 0, first); !near(got/bound, 1, 1e-9) {
				t.Errorf("κ = %v, N = %d: residual %v, bound %v", kappa, n, got, bound)
			}
			rho := (1 - math.Sqrt(kappa)) / (1 + math.Sqrt(kappa))
			if printed := first * math.Pow(rho, float64(n-1)); n > 1 && got < 1.01*printed {
				t.Errorf("κ = %v, N = %d: residual %v keeps to the print, %v", kappa, n, got, printed)
			}
		}
	}
	// N = 1 attains the norm of the mixing, at either end of the spectrum.
	for _, beta := range []float64{1, .5, 3} {
		got := 0.0
		for _, a := range []float64{0, .7} {
			w := pairs2(t, []float64{a}, []float64{1}, 1)
			got = max(got, linear{[]float64{a}, []float64{0}}.residual(extrapolate(t, w, rna.Options{Beta: rna.Set(beta)})))
		}
		if bound := OptimalBound(1, 1, .3, beta, 1); !near(got, bound, 1e-12) {
			t.Errorf("N = 1, β = %v: residual %v, bound %v", beta, got, bound)
		}
	}
}

func pairs2(t *testing.T, a, r []float64, n int) *rna.Window {
	t.Helper()
	xs, ys := diagonal(a, r, n)
	return pairs(t, xs, ys)
}

// CNA's rate is attained by residuals whose squares are the weights of the dual problem. The print has it for any
// scheme, against which there is one with a long first step.
func TestConstrainedBoundAttained(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for _, kappa := range []float64{.05, .4} {
			for _, tau := range []float64{0, .1, 1, 5} {
				m := newMinimax(n, 1-kappa, tau)
				for range 4 {
					if err := m.solve(); err != nil {
						t.Fatal(err)
					}
					m.points = append(m.points, peaks(m.polynomial(), m.right)...)
				}
				points := m.points[:len(m.weights)]
				r := make([]float64, len(points))
				for i, w := range m.weights {
					r[i] = math.Sqrt(math.Abs(w))
				}
				w := pairs2(t, points, r, n)
				opt := rna.Options{Tau: rna.Set(tau), Beta: rna.Set(0)}
				got := linear{points, make([]float64, len(points))}.residual(extrapolate(t, w, opt))
				if bound := ConstrainedBound(n, kappa, tau, 0, norm2(r)); !near(got/bound, 1, 1e-5) {
					t.Errorf("N = %d, κ = %v, τ = %v: residual %v, bound %v", n, kappa, tau, got, bound)
				}
			}
		}
	}
	// G = 0, y_1 = 10x_1 − 9y_0: the residuals are 1 and −9, and τ = 0 takes their mean.
	xs, ys := run(nesterov(t, 1, 9), func(y []float64) []float64 { return make([]float64, 1) }, []float64{1}, 2, nil)
	got := math.Abs(extrapolate(t, pairs(t, xs, ys), rna.Options{Tau: rna.Set(0), Beta: rna.Set(0)})[0])
	if !near(got, 4, 1e-12) || got < ConstrainedBound(2, .5, 0, 0, 1) {
		t.Errorf("residual %v of another scheme", got)
	}
}

// With G = 0 the chain has P = (e_1, e_2 − e_1, …), whose norm comes to 2cos(π/(2N+1)) ‖E‖; the bound is 2‖E‖.
func TestPerturbationBoundAttained(t *testing.T) {
	for _, n := range []int{1, 2, 20} {
		es := make([][]float64, n)
		for i := range es { // the left singular vector of the bidiagonal matrix
			es[i] = []float64{math.Pow(-1, float64(i)) * math.Sin(float64(2*(i+1))*math.Pi/float64(2*n+1))}
		}
		g := contractive{g: mat.NewSymDense(1, []float64{0}), solution: []float64{0}}
		s := nesterov(t, n, 0)
		_, _, e, p := perturb(s, g, []float64{1}, n, es)
		bound := PerturbationBound(s.Norms(n-1), 1, e)
		want := math.Cos(math.Pi / float64(2*n+1))
		if n == 1 {
			want = 1
		}
		if share := p / bound; !near(share, want, 1e-9) {
			t.Errorf("N = %d: %v of the bound, want %v", n, share, want)
		}
	}
}

// With G = 0, κ = 1, τ = 0 and N equal errors, y⁺ is the error: this attains the bounds for errors, for noise and for
// nonlinear steps. The prints of the last two are exceeded.
func TestErrorBoundsAttained(t *testing.T) {
	const n, size, l = 4, 3.0, 2.0
	es := make([][]float64, n)
	for i := range es {
		es[i] = []float64{size}
	}
	g := contractive{g: mat.NewSymDense(1, []float64{0}), solution: []float64{0}}
	xs, ys, e, p := perturb(nesterov(t, n, 0), g, []float64{1}, n, es)
	got := g.residual(extrapolate(t, pairs(t, xs, ys), rna.Options{Tau: rna.Set(0)}))
	if bound := PerturbedBound(n, 1, 0, 1, 1, e, p); !near(got, size, 1e-12) || !near(got, bound, 1e-12) {
		t.Errorf("errors: %v, bound %v", got, bound)
	}
	gradient := l * got
	if bound := StochasticBound(n, 1, 0, l, size, l); !near(gradient, bound, 1e-12) {
		t.Errorf("noise: ‖∇f‖ = %v, bound %v", gradient, bound)
	}
	// The print takes E‖E‖ for σ, and has (1+τ)/√N Lσ here.
	if printed := l * size / math.Sqrt(n); gradient <= 1.9*printed {
		t.Errorf("noise: ‖∇f‖ = %v keeps to the print, %v", gradient, printed)
	}
	// ‖E‖ = γ√N D^α for γ = size/16, D = 4 and α = 2. The print has the factor 1 − κ = 0 before all.
	if bound := NonlinearBound(n, 1, 0, 1, 1, size/16, 4, 2); !near(got, bound, 1e-12) {
		t.Errorf("nonlinear: %v, bound %v", got, bound)
	}
}

// f(x) = x² − 2|x|³/3 up to |x| = ½, and linear beyond, has L = 2 and M = 4. It attains the error of the linearised
// step near to its minimum, and comes within L/(2MD) of it far away.
func TestLinearisationAttained(t *testing.T) {
	const l, m = 2.0, 4.0
	slope := func(x float64) float64 {
		x = min(x, l/m)
		return l*x - m*x*x/2
	}
	for _, c := range []struct{ distance, share float64 }{{.01, 1}, {.5, 1}, {100, 1 - l/(2*m*100)}} {
		step, linearised := c.distance-slope(c.distance)/l, 0.0 // with the Hessian L at 0, the linearised step ends there
		if share := (step - linearised) / LinearisationError(l, m, c.distance); !near(share, c.share, 1e-12) {
			t.Errorf("D = %g: %v of the bound, want %v", c.distance, share, c.share)
		}
	}
}
