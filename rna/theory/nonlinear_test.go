package theory

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna"
)

// A smooth is f(x) = Σ a_j z_j²/2 + b(√(1 + z_j²) − 1), z = Qᵀx, whose Hessian lies between min a and max a + b, with
// the Lipschitz constant 0.86b, and whose minimum is at 0.
type smooth struct {
	q    *mat.Dense
	a    []float64
	b    float64
	l, m float64
}

func newSmooth(rng *rand.Rand, d int, mu, b float64) smooth {
	s := smooth{q: orthogonal(rng, d), b: b, m: .8587 * b}
	for j := range d {
		s.a = append(s.a, mu+(1-mu)*float64(j)/float64(d-1))
	}
	s.l = s.a[d-1] + b
	return s
}

// gradient is ∇f(x), or that of the quadratic that is f's at 0.
func (s smooth) gradient(x []float64, linear bool) []float64 {
	d := len(x)
	z := mat.NewVecDense(d, nil)
	z.MulVec(s.q.T(), mat.NewVecDense(d, x))
	for j := range d {
		v := z.AtVec(j)
		slope := v
		if !linear {
			slope = v / math.Sqrt(1+v*v)
		}
		z.SetVec(j, s.a[j]*v+s.b*slope)
	}
	g := mat.NewVecDense(d, nil)
	g.MulVec(s.q, z)
	return g.RawVector().Data
}

// kappa is the κ of the Hessian at 0.
func (s smooth) kappa() float64 { return (s.a[0] + s.b) / s.l }

func norm2(v []float64) (n float64) {
	for _, x := range v {
		n = math.Hypot(n, x)
	}
	return n
}

func scaled(v []float64, size float64) []float64 {
	n := norm2(v)
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = size * x / n
	}
	return out
}

// chain runs gradient descent with the step 1/L, N steps.
func (s smooth) chain(x0 []float64, n int) (xs, ys [][]float64) {
	y := x0
	for range n {
		g := s.gradient(y, false)
		x := make([]float64, len(y))
		for k := range x {
			x[k] = y[k] - g[k]/s.l
		}
		xs, ys = append(xs, x), append(ys, y)
		y = x
	}
	return xs, ys
}

// residual is ‖(G − I)y‖ for the linearised step.
func (s smooth) residual(y []float64) float64 { return norm2(s.gradient(y, true)) / s.l }

// Propositions conv_nonlinear and bound_function_smooth_gradient: for a smooth f far from and near to its minimum.
func TestNonlinearBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 21))
	worst := map[string]float64{}
	for range 5 {
		d, n := 4+rng.IntN(10), 2+rng.IntN(5)
		f := newSmooth(rng, d, .05, 1)
		for _, distance := range []float64{1e3, 10, 1, .1, 1e-2, 1e-4} {
			xs, ys := f.chain(scaled(normal(rng, d), distance), n)
			for _, y := range ys {
				g, h := f.gradient(y, false), f.gradient(y, true)
				e := make([]float64, d)
				for k := range e {
					e[k] = (g[k] - h[k]) / f.l
				}
				bound := LinearisationError(f.l, f.m, norm2(y))
				worst["linearisation"] = max(worst["linearisation"], norm2(e)/bound)
				if !(norm2(e) <= bound*(1+1e-9)+1e-15*norm2(y)) {
					t.Errorf("‖y‖ = %g: the linearised step is off by %g, more than %g", norm2(y), norm2(e), bound)
				}
			}
			w := pairs(t, xs, ys)
			for _, tau := range []float64{0, 1, 30} {
				got := f.residual(extrapolate(t, w, rna.Options{Tau: rna.Set(tau)}))
				bound := NonlinearBound(n, f.kappa(), tau, 1, f.residual(ys[0]),
					LinearisationGamma(n, f.kappa(), 1, f.l, f.m), distance, 2)
				worst["extrapolation"] = max(worst["extrapolation"], got/bound)
				if !(got <= bound*(1+1e-6)) {
					t.Errorf("D = %g, N = %d, τ = %g: %g exceeds %g", distance, n, tau, got, bound)
				}
			}
		}
	}
	t.Log("largest shares of the bounds: ", worst)
}

// Proposition asymptotic_optimal_rate: with λ = D^r, 0 < r < 2, and with τ = D^−s, 0 < s < 1, the rate is that of a
// linear method as D → 0. With r beyond the range coefficients follow errors; the bound on them no longer falls.
func TestAsymptoticBound(t *testing.T) {
	tau, lambda, err := AsymptoticOrders(2)
	if err != nil || tau != 1 || lambda != 2 {
		t.Fatal(tau, lambda, err)
	}
	if _, _, err := AsymptoticOrders(1); err == nil {
		t.Error("errors of order 1 went through")
	}
	rng := rand.New(rand.NewPCG(9, 21))
	f := newSmooth(rng, 12, .02, .3)
	const n = 5
	at := normal(rng, 12)
	for _, share := range []float64{.25, .5, .75} {
		for _, distance := range []float64{1, 1e-2, 1e-4, 1e-6, 1e-8} {
			x0 := scaled(at, distance)
			xs, ys := f.chain(x0, n)
			w := pairs(t, xs, ys)
			limit := AsymptoticBound(n, f.kappa(), 1, f.residual(x0))
			byLambda := f.residual(extrapolate(t, w, rna.Options{Lambda: rna.Set(math.Pow(distance, share*lambda))}))
			byTau := f.residual(extrapolate(t, w, rna.Options{Tau: rna.Set(math.Pow(distance, -share*tau))}))
			t.Logf("D = %g, share %g of the range: %.3f and %.3f of the limit", distance, share, byLambda/limit,
				byTau/limit)
			if distance <= 1e-8 && !(byLambda <= limit && byTau <= limit) {
				t.Errorf("D = %g, share %g of the range: %g by λ and %g by τ exceed %g", distance, share, byLambda,
					byTau, limit)
			}
			// The acceleration term falls to the limit and errors vanish beside it.
			if distance <= 1e-8 && share <= .5 {
				bound := NonlinearBound(n, f.kappa(), math.Pow(distance, -share*tau), 1, f.residual(x0),
					LinearisationGamma(n, f.kappa(), 1, f.l, f.m), distance, 2)
				if !(bound <= 1.1*limit) || !(byTau <= bound) {
					t.Errorf("D = %g: bound %g, its limit %g, got %g", distance, bound, limit, byTau)
				}
			}
		}
	}
}

func TestNormBoundValue(t *testing.T) {
	if got := NormBound(2, 1); !near(got, 1, 1e-15) {
		t.Errorf("‖c‖ ≤ %v for N = 2 and λ = 1", got)
	}
	for _, v := range []float64{ConstrainedBound(0, .5, 1, 1, 1), ConstrainedBound(3, 2, 1, 1, 1),
		OptimalBound(2, 5, 0, 1, 1)} {
		if !math.IsNaN(v) {
			t.Errorf("a bound of %v from constants that can't be", v)
		}
	}
	if !near(MixingNorm(1, .3), .7, 1e-15) || !near(MixingNorm(-1, .3), 2, 1e-15) ||
		!near(MixingNorm(3, .3), 2, 1e-15) {
		t.Error("norms of the mixing")
	}
}
