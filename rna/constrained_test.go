package rna

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// randomGram returns RᵀR for a d×n R whose columns shrink.
func randomGram(rng *rand.Rand, d, n int) *mat.SymDense {
	r := mat.NewDense(d, n, nil)
	for j := range n {
		size := math.Pow(10, -.4*float64(j)*rng.Float64())
		for i := range d {
			r.Set(i, j, size*rng.NormFloat64())
		}
	}
	gram := new(mat.SymDense)
	gram.SymOuterK(1, r.T())
	return gram
}

func objective(gram mat.Symmetric, c []float64) float64 {
	v := mat.NewVecDense(len(c), c)
	return mat.Inner(v, gram, v)
}

// R = [1 2]: Σc = 1 leaves c = (½ + t, ½ − t), R c = 3/2 − t, ‖c‖² = ½ + 2t², so that the bound
// gives t = √(τ(2+τ))/2, up to t = 3/2 where R c = 0.
func TestConstrainByHand(t *testing.T) {
	s := Factor(mat.NewSymDense(2, []float64{1, 2, 2, 4}))
	for _, tau := range []float64{0, 1e-300, 1e-12, .01, .5, 1, 2, 2.1622} {
		want := math.Sqrt(tau*(2+tau)) / 2
		res := s.Constrain(tau)
		if res.Status != OK || !near(res.C[0], .5+want, 1e-12) || !near(res.C[1], .5-want, 1e-12) {
			t.Errorf("τ = %g: %v, c = %v, want ½ ± %v", tau, res.Status, res.C, want)
		}
		if tau >= 1e-12 && math.Abs(res.Tau/tau-1) > 1e-12 {
			t.Errorf("τ = %g comes back as %g", tau, res.Tau)
		}
	}
	// c = (2, −1) is as far as R c calls for.
	if res := s.Constrain(100); res.Status != OK || !near(res.C[0], 2, 1e-6) || !near(res.C[1], -1, 1e-6) {
		t.Errorf("τ = 100: %v, c = %v, want (2, −1)", res.Status, res.C)
	}
}

// The result keeps the bound, no c within the bound has a smaller ‖R c‖, and solving with λ(τ) gives the same c.
func TestConstrain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for range 200 {
		n := 1 + rng.IntN(10)
		gram := randomGram(rng, n+rng.IntN(20), n)
		s := Factor(gram)
		free := s.Solve(0)
		previous := math.Inf(1)
		for _, tau := range []float64{0, 1e-9, 1e-3, .1, .5, 1, 3, 10, 1e3, math.Inf(1)} {
			where := fmt.Sprintf("N = %d, τ = %g", n, tau)
			res := s.Constrain(tau)
			if res.Status != OK {
				t.Fatalf("%s: %v", where, res.Err())
			}
			limit := (1 + tau) / math.Sqrt(float64(n))
			if !(res.NormC <= limit*(1+1e-13)) || !near(sum(res.C), 1, 1e-12*res.NormC) {
				t.Errorf("%s: ‖c‖ = %v exceeds %v, or Σc = %v", where, res.NormC, limit, sum(res.C))
			}
			if bound := (1 + 1/res.Lambda) / float64(n); res.NormC*res.NormC > bound*(1+1e-9) {
				t.Errorf("%s: λ = %g: ‖c‖² = %g exceeds %g", where, res.Lambda, res.NormC*res.NormC, bound)
			}
			tight := free.NormC > limit
			if tight && tau > 0 && math.Abs(res.Tau/tau-1) > 1e-10 || !tight && res.Lambda != 0 && n > 1 {
				t.Errorf("%s: τ(λ) = %v, λ = %v where Anderson's ‖c‖ is %v", where, res.Tau, res.Lambda, free.NormC)
			}
			if back := s.Solve(res.Lambda); !near(back.NormC, res.NormC, 1e-9) ||
				math.Abs(back.Tau-res.Tau) > 1e-9*res.Tau {
				t.Errorf("%s: λ = %v has ‖c‖ = %v and τ = %v, not %v and %v", where, res.Lambda, back.NormC, back.Tau,
					res.NormC, res.Tau)
			}
			value := objective(gram, res.C)
			if value > previous*(1+1e-9) {
				t.Errorf("%s: ‖Rc‖² = %v grew from %v", where, value, previous)
			}
			previous = value
			// Feasible neighbours: a step that keeps Σc, pulled back to the average until the bound holds.
			for range 20 {
				c, mean := make([]float64, n), 0.
				for i := range c {
					c[i] = rng.NormFloat64()
					mean += c[i] / float64(n)
				}
				size := math.Pow(10, -6*rng.Float64()) * res.NormC
				dev, room := 0., tau*(2+tau)/float64(n)
				for i := range c {
					c[i] = res.C[i] + size*(c[i]-mean) - 1/float64(n)
					dev += c[i] * c[i]
				}
				for i := range c {
					c[i] = 1/float64(n) + c[i]*min(1, math.Sqrt(room/dev))
				}
				if other := objective(gram, c); n > 1 &&
					other < value*(1-1e-9)-1e-14*gram.At(0, 0)*res.NormC*res.NormC {
					t.Errorf("%s: ‖Rc‖² = %v where %v is possible", where, value, other)
				}
			}
		}
	}
}

func TestConstrainStatus(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		name string
		gram *mat.SymDense
		tau  float64
		want Status
		c    []float64
	}{
		{"one residual", mat.NewSymDense(1, []float64{4}), .5, OK, []float64{1}},
		{"equal snapshots", mat.NewSymDense(2, []float64{3, 3, 3, 3}), 1, OK, []float64{.5, .5}},
		{"one of two residuals zero", mat.NewSymDense(2, []float64{1, 0, 0, 0}), 9, OK, []float64{0, 1}},
		{"average of zero residuals", mat.NewSymDense(2, nil), 0, OK, []float64{.5, .5}},
		{"zero residuals", mat.NewSymDense(2, nil), 1, ZeroResidual, nil},
		{"no bound, dependent", mat.NewSymDense(2, []float64{3, 3, 3, 3}), inf, RankDeficient, nil},
		{"non-finite", mat.NewSymDense(1, []float64{nan}), 1, NonFinite, nil},
		{"indefinite", mat.NewSymDense(2, []float64{1, 2, 2, 1}), 1, Indefinite, nil},
		{"negative tau", mat.NewSymDense(1, []float64{1}), -1, Invalid, nil},
		{"NaN tau", mat.NewSymDense(1, []float64{1}), nan, Invalid, nil},
	} {
		res := Factor(tt.gram).Constrain(tt.tau)
		if res.Status != tt.want || len(res.C) != len(tt.c) {
			t.Errorf("%s: %v (%s), c = %v, want %v", tt.name, res.Status, res.Detail, res.C, tt.want)
			continue
		}
		for i, want := range tt.c {
			if !near(res.C[i], want, 1e-9) {
				t.Errorf("%s: c = %v, want %v", tt.name, res.C, tt.c)
			}
		}
	}
}
