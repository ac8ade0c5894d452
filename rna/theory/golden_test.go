package theory

import (
	"fmt"
	"math"
	"testing"

	"onlinerna/internal/golden"
)

var (
	kappas = []float64{-1, 0, 1e-3, .1, .5, 1, 2, math.NaN()}
	taus   = []float64{-1, 0, .01, .3, 1, 10, 1e4, math.Inf(1), math.NaN()}
)

// Every bound on a grid of its constants, out of range, too.
func TestGoldenBounds(t *testing.T) {
	s := &golden.Script{}
	for _, kappa := range kappas {
		for _, beta := range []float64{0, .5, 1, 3} {
			s.Line("kappa", kappa, "beta", beta, "mixing", MixingNorm(beta, kappa))
			for _, n := range []int{0, 1, 2, 3, 4, 7} {
				s.Line("  n", n, "rate", ChebyshevRate(n, kappa), "optimal", OptimalBound(n, 3, kappa, beta, 2.5), "asymptotic",
					AsymptoticBound(n, kappa, beta, 2.5))
			}
			for _, n := range []int{1, 2, 5} {
				s.Line("  gamma", n, LinearisationGamma(n, kappa, beta, 2, 3))
			}
		}
		for k := range 4 {
			s.Line("perturbation", kappa, k, PerturbationBound([]float64{1, 2, .5}[:k], kappa, 1.5))
		}
		s.Line("perturbation of steps that differ", PerturbationBound([]float64{3, .25, 5, 2}, kappa, .5))
	}
	for _, n := range []int{1, 2, 10} {
		for _, lambda := range []float64{1e-12, 1e-3, 1, 1e4} {
			s.Line("norm", n, lambda, NormBound(n, lambda))
		}
	}
	for _, distance := range []float64{0, .1, 1, 2, 10} {
		for _, l := range []float64{.5, 2} {
			s.Line("linearisation", distance, l, LinearisationError(l, .75, distance))
		}
	}
	for _, alpha := range []float64{-1, 1, 1.5, 2, math.NaN()} {
		tau, lambda, err := AsymptoticOrders(alpha)
		s.Line("orders", alpha, tau, lambda, err)
	}
	golden.Numbers(t, "bounds.txt", s.String())
}

// digits are those that the minimax is sure to have.
func digits(v float64) string { return fmt.Sprintf("%.5g", v) }

// Constrained polynomials, and the bounds that follow from them.
func TestGoldenConstrained(t *testing.T) {
	s := &golden.Script{}
	for _, n := range []int{-1, 0, 1, 2, 3, 5, 8, 10, 11} {
		for _, kappa := range kappas {
			for _, tau := range taus {
				p, value, err := ConstrainedChebyshev(n, kappa, tau)
				s.Line(n, "kappa", kappa, "tau", tau, "value", digits(value), err)
				if p != nil {
					norm := 0.
					for _, c := range p {
						norm = math.Hypot(norm, c)
					}
					s.Line("  norm", digits(norm), "coefficients", len(p))
				}
			}
		}
	}
	for _, n := range []int{1, 2, 3, 11} {
		for _, kappa := range []float64{.1, .5, 2} {
			for _, tau := range []float64{0, .3, 10} {
				s.Line("bounds", n, kappa, tau)
				for _, beta := range []float64{0, 1, 3} {
					s.Line("  beta", beta, digits(ConstrainedBound(n, kappa, tau, beta, 2.5)),
						digits(PerturbedBound(n, kappa, tau, beta, 2.5, .5, .75)),
						digits(NonlinearBound(n, kappa, tau, beta, 2.5, .5, 3, 2)))
				}
				s.Line("  stochastic", digits(StochasticBound(n, kappa, tau, 2, .25, 1.5)))
			}
		}
	}
	golden.Numbers(t, "constrained.txt", s.String())
}

// The parts of the minimax on fixed points: its basis, its barrier and the bound from below.
func TestGoldenMinimax(t *testing.T) {
	s := &golden.Script{}
	for _, n := range []int{2, 3, 4} {
		for _, tau := range []float64{0, .25, 2} {
			m := newMinimax(n, .75, tau)
			s.Line("n", n, "tau", tau, "square", m.square, "points", m.points, "basis", m.basis.RawMatrix().Data)
			err := m.solve()
			s.Line("  value", digits(m.lower()), err)
			for k, c := range m.polynomial() {
				s.Line("    coefficient", k, fmt.Sprintf("%.3f", c))
			}
			total := 0.
			for i, v := range m.weights {
				if math.Abs(v) > 1e-3 {
					s.Line("    weight", i, fmt.Sprintf("%.3f", v))
				}
				total += math.Abs(v)
			}
			s.Line("  weights", len(m.weights), total)
		}
	}
	for _, p := range [][]float64{{0, 1}, {.5, -2, 1.5}, {-1, 9, -24, 16}, {1, -18, 48, -32}} {
		s.Line("polynomial", p, "at 0, 1/2 and 2", evaluate(p, 0), evaluate(p, .5), evaluate(p, 2))
		for _, right := range []float64{.5, 1} {
			for _, x := range peaks(p, right) {
				s.Line("  peak", fmt.Sprintf("%.4f", x), fmt.Sprintf("%.7f", evaluate(p, x)))
			}
		}
	}
	for m := 1; m < 5; m++ {
		s.Line("points", m, chebyshevPoints(m, .5))
	}
	for n := 1; n < 6; n++ {
		for _, kappa := range []float64{.01, .5, 1} {
			s.Line("chebyshev", n, kappa, chebyshev(n, kappa))
		}
	}
	golden.Numbers(t, "minimax.txt", s.String())
}

// Schemes by all their views, and iterations that are none.
func TestGoldenSchemes(t *testing.T) {
	s := &golden.Script{}
	x := [][]float64{{1, 2}, {3, -1}, {.5, 4}, {-2, 1}, {6, 0}}
	add := func(name string, scheme *Scheme) {
		for i := range scheme.Len() + 1 {
			y := []float64{7, 7}
			scheme.Y(y, x, i)
			s.Line(name, i, "y", y, "polynomial", scheme.Polynomial(i), "norms", scheme.Norms(i))
			l := scheme.L(i)
			for r := range i + 1 {
				row := make([]float64, i+1)
				for c := range row {
					row[c] = l.At(r, c)
				}
				s.Line("  L", row)
			}
		}
	}
	add("nothing", &Scheme{})
	add("nesterov", nesterov(t, 4, .5))
	mixed := &Scheme{}
	for _, c := range []struct{ alpha, beta []float64 }{
		{[]float64{2}, []float64{-1}}, {[]float64{.5, .25}, []float64{1, -.75}}, {[]float64{1, 0, 3}, nil},
		{[]float64{0, -1, 2}, nil}, {[]float64{1, -1, .5, 2}, []float64{.5, -2, 1, -1}},
	} {
		s.Line("append", c.alpha, c.beta, mixed.Append(c.alpha, c.beta), mixed.Len())
	}
	add("mixed", mixed)
	nan := math.NaN()
	for _, c := range []struct{ alpha, beta []float64 }{
		{nil, nil}, {[]float64{1, 0}, nil}, {[]float64{1}, []float64{1, -1}}, {[]float64{0}, []float64{1}},
		{[]float64{1.5}, nil},
		{[]float64{nan}, nil}, {[]float64{1 + 1e-11}, nil}, {[]float64{1 + 1e-13}, nil},
		{[]float64{1e9}, []float64{1 - 1e9}},
	} {
		s.Line("append", c.alpha, c.beta, (&Scheme{}).Append(c.alpha, c.beta))
	}
	golden.Numbers(t, "schemes.txt", s.String())
}
