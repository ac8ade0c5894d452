package theory

import (
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/rna"
)

func TestChebyshevRate(t *testing.T) {
	for _, tt := range []struct {
		n           int
		kappa, want float64
	}{
		{6, .01, .6464}, {1, .3, 1}, {2, .3, .7 / 1.3}, {5, 1, 0}, {0, .5, math.NaN()}, {2, 0, math.NaN()},
		{2, 1.5, math.NaN()},
	} {
		got := ChebyshevRate(tt.n, tt.kappa)
		if math.IsNaN(tt.want) != math.IsNaN(got) || math.Abs(got-tt.want) > 1e-4 {
			t.Errorf("N = %d, κ = %v: %v, want %v", tt.n, tt.kappa, got, tt.want)
		}
	}
}

func check(t *testing.T, n int, kappa, tau float64) ([]float64, float64) {
	t.Helper()
	p, value, err := ConstrainedChebyshev(n, kappa, tau)
	if err != nil {
		t.Fatal(err)
	}
	norm, most := 0., 0.
	for _, c := range p {
		norm = math.Hypot(norm, c)
	}
	for i := range 20001 {
		most = max(most, math.Abs(evaluate(p, (1-kappa)*float64(i)/20000)))
	}
	size := 1e-14 * max(1, norm)
	if !near(sum(p), 1, size) || norm > (1+tau)/math.Sqrt(float64(n))*(1+1e-12) || math.Abs(most-value) > 1e-6+size {
		t.Errorf("N = %d, κ = %v, τ = %v: Σp = %v, ‖p‖ = %v, max |p| = %v, said to be %v", n, kappa, tau, sum(p), norm,
			most, value)
	}
	return p, value
}

// N = 2: p = 1 − s + s x has the maximum max(|1−s|, 1−κs), which falls with s until 2/(1+κ), and
// ‖p‖ allows s = (1 + √(τ(2+τ)))/2.
func TestConstrainedChebyshevByHand(t *testing.T) {
	for _, kappa := range []float64{1e-3, .1, .5, 1} {
		for _, tau := range []float64{0, .01, .3, 1, 3, 1e3} {
			s := min((1+math.Sqrt(tau*(2+tau)))/2, 2/(1+kappa))
			want := max(math.Abs(1-s), 1-kappa*s)
			if _, got := check(t, 2, kappa, tau); math.Abs(got-want) > 1e-6 {
				t.Errorf("κ = %v, τ = %v: %v, want %v", kappa, tau, got, want)
			}
		}
		for n := 1; n <= 10; n++ {
			// τ = 0 is the average of powers, largest at 1−κ.
			want := (1 - math.Pow(1-kappa, float64(n))) / (float64(n) * kappa)
			if _, got := check(t, n, kappa, 0); math.Abs(got-want) > 1e-6 {
				t.Errorf("N = %d, κ = %v, τ = 0: %v, want %v", n, kappa, got, want)
			}
			if _, got := check(t, n, kappa, 1e12); math.Abs(got-ChebyshevRate(n, kappa)) > 1e-12 {
				t.Errorf("N = %d, κ = %v, τ large: %v, want the rate %v", n, kappa, got, ChebyshevRate(n, kappa))
			}
		}
	}
}

// The value falls with τ, and no p near by that keeps the constraints has a smaller maximum.
func TestConstrainedChebyshev(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{3, 5, 8, 10} {
		for _, kappa := range []float64{.001, .05, .4} {
			previous := 2.
			for _, tau := range []float64{.1, .5, 1, 4, 20, 100, 1000} {
				p, value := check(t, n, kappa, tau)
				if value > previous+1e-6 || value < ChebyshevRate(n, kappa)-1e-9 {
					t.Errorf("N = %d, κ = %v, τ = %v: value %v after %v", n, kappa, tau, value, previous)
				}
				previous = value
				for range 10 {
					q, mean := make([]float64, n), 0.
					for i := range q {
						q[i] = rng.NormFloat64()
						mean += q[i] / float64(n)
					}
					size, dev := math.Pow(10, -1-4*rng.Float64()), 0.
					for i := range q {
						q[i] = p[i] + size*(q[i]-mean) - 1/float64(n)
						dev += q[i] * q[i]
					}
					for i := range q {
						q[i] = 1/float64(n) + q[i]*min(1, math.Sqrt(tau*(2+tau)/float64(n)/dev))
					}
					most := 0.
					for _, x := range peaks(q, 1-kappa) {
						most = max(most, math.Abs(evaluate(q, x)))
					}
					if most < value-1e-6 {
						t.Errorf("N = %d, κ = %v, τ = %v: %v where %v is possible", n, kappa, tau, value, most)
					}
				}
			}
		}
	}
	for _, bad := range [][3]float64{{0, .5, 1}, {11, .5, 1}, {3, 0, 1}, {3, 2, 1}, {3, math.NaN(), 1}, {3, .5, -1},
		{3, .5, math.NaN()}} {
		if _, _, err := ConstrainedChebyshev(int(bad[0]), bad[1], bad[2]); err == nil {
			t.Errorf("%v went through", bad)
		}
	}
}

// On linear contractions with 0 ⪯ G ⪯ (1−κ)I, RNA with λ = 0 stays under the rate and CNA under the
// constrained polynomial, for any β. G is diagonal, as symmetric ones are in some basis.
func TestBounds(t *testing.T) {
	const d = 60
	rng := rand.New(rand.NewPCG(6, 2))
	s, _ := rna.NewHost64(d, 1)
	for _, kappa := range []float64{.01, .1, .5} {
		for n := 1; n <= 7; n++ {
			g := linear{make([]float64, d), make([]float64, d)}
			y := make([]float64, d)
			for i := range d {
				g.a[i] = (1 - kappa) * rng.Float64()
				if i < 2 { // the ends of the spectrum
					g.a[i] = (1 - kappa) * float64(i)
				}
				g.b[i], y[i] = rng.NormFloat64(), rng.NormFloat64()
			}
			first := g.residual(y)
			w := window(t, s, n)
			push(t, w, y)
			for range n {
				y = g.at(y)
				push(t, w, y)
			}
			for _, beta := range []float64{0, .5, 1, -1} {
				factor := 0. // ‖I + β(G − I)‖
				for _, a := range g.a {
					factor = max(factor, math.Abs(1+beta*(a-1)))
				}
				for _, tau := range []float64{0, .1, 1, 10, math.Inf(1)} {
					opt := rna.Options{Tau: rna.Set(tau), Beta: rna.Set(beta)}
					bound := ChebyshevRate(n, kappa)
					if math.IsInf(tau, 1) {
						opt = rna.Options{Lambda: rna.Set(0), Beta: rna.Set(beta)}
					} else {
						_, bound = check(t, n, kappa, tau)
					}
					if got := g.residual(extrapolate(t, w, opt)); got > factor*first*bound*(1+1e-9)+1e-6*first {
						t.Errorf("κ = %v, N = %d, τ = %v, β = %v: residual %v exceeds %v", kappa, n, tau, beta, got,
							factor*first*bound)
					}
				}
			}
		}
	}
}

// Online RNA keeps to the same rate: its points are polynomials of the same degrees. Once the residual is
// rounding, it is not asked to fall further.
func TestOnlineBound(t *testing.T) {
	const d, n = 60, 8
	s, _ := rna.NewHost64(d, 1)
	for _, kappa := range []float64{.05, .3} {
		for _, beta := range []float64{.5, 1} {
			g, y := linear{make([]float64, d), make([]float64, d)}, make(rna.Slice64, d)
			for i := range d {
				g.a[i], g.b[i] = (1-kappa)*float64(i)/(d-1), math.Cos(float64(i))
			}
			first := g.residual(y)
			factor := max(1-beta, 1-beta*kappa)
			w := window(t, s, n)
			for k := 1; k <= n; k++ {
				if err := w.PushPair(y, rna.Slice64(g.at(y))); err != nil {
					t.Fatal(err)
				}
				res, err := w.Extrapolate(y, rna.Options{Lambda: rna.Set(0), Beta: rna.Set(beta)})
				if err != nil || res.Status != rna.OK {
					t.Fatal(res.Status, res.Detail, err)
				}
				if got, bound := g.residual(y), factor*first*ChebyshevRate(k, kappa); got > bound*(1+1e-9)+1e-13*first {
					t.Errorf("κ = %v, β = %v: residual %v after %d iterates exceeds %v", kappa, beta, got, k, bound)
				}
			}
		}
	}
}
