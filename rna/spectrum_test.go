package rna

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol*max(1, math.Abs(b)) }

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// One row R = [1 2] and λ = 1: (RᵀR + 5 I) z = 1 by hand.
func TestSolveByHand(t *testing.T) {
	res := Factor(mat.NewSymDense(2, []float64{1, 2, 2, 4})).Solve(1)
	if res.Status != OK {
		t.Fatal(res.Err())
	}
	for i, want := range []float64{7. / 11, 4. / 11} {
		if !near(res.C[i], want, 1e-15) {
			t.Errorf("c[%d] = %v, want %v", i, res.C[i], want)
		}
	}
	for name, v := range map[string][2]float64{
		"‖c‖":       {res.NormC, math.Sqrt(65. / 121)},
		"‖R‖":       {res.Norm, math.Sqrt(5)},
		"condition": {res.Condition, 2},
		"rank":      {float64(res.Rank), 1},
		"‖r_0‖":     {res.ResidualNorms[0], 1},
		"‖r_1‖":     {res.ResidualNorms[1], 2},
		"λ":         {res.Lambda, 1},
	} {
		if !near(v[0], v[1], 1e-14) {
			t.Errorf("%s = %v, want %v", name, v[0], v[1])
		}
	}
}

func TestSolveStatus(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	sym := func(n int, v ...float64) *mat.SymDense { return mat.NewSymDense(n, v) }
	// Hilbert's matrix of order 12 is positive definite with a condition number of 1e16.
	hilbert := mat.NewSymDense(12, nil)
	for i := range 12 {
		for j := range 12 {
			hilbert.SetSym(i, j, 1/float64(i+j+1))
		}
	}
	for _, tt := range []struct {
		name    string
		gram    *mat.SymDense
		lambda  float64
		want    Status
		c       []float64
		refused []int
	}{
		{name: "one residual", gram: sym(1, 9), lambda: 1e-9, c: []float64{1}},
		{name: "one residual, Anderson", gram: sym(1, 9), lambda: 0, c: []float64{1}},
		{name: "orthogonal", gram: sym(2, 1, 0, 0, 4), lambda: 0, c: []float64{.8, .2}},
		{name: "equal snapshots", gram: sym(2, 3, 3, 3, 3), lambda: 1e-9, c: []float64{.5, .5}},
		{name: "equal snapshots, Anderson", gram: sym(2, 3, 3, 3, 3), lambda: 0, want: RankDeficient},
		{name: "equal snapshots, tiny lambda", gram: sym(2, 3, 3, 3, 3), lambda: 1e-18, want: RankDeficient},
		{name: "one of two residuals zero", gram: sym(2, 1, 0, 0, 0), lambda: 1, c: []float64{1. / 3, 2. / 3}},
		{name: "uniform", gram: sym(2, 1, 0, 0, 4), lambda: inf, c: []float64{.5, .5}},
		{name: "uniform of zero residuals", gram: sym(2, 0, 0, 0, 0), lambda: inf, c: []float64{.5, .5}},
		{name: "largest lambda", gram: sym(2, 1, 0, 0, 4), lambda: math.MaxFloat64, c: []float64{.5, .5}},
		{name: "large entries", gram: sym(2, 1e300, 2e300, 2e300, 4e300), lambda: 1, c: []float64{7. / 11, 4. / 11}},
		{name: "small entries", gram: sym(2, 1e-300, 2e-300, 2e-300, 4e-300), lambda: 1,
			c: []float64{7. / 11, 4. / 11}},
		{name: "zero residuals", gram: sym(2, 0, 0, 0, 0), lambda: 1, want: ZeroResidual},
		{name: "zero diagonal", gram: sym(2, 0, 1, 1, 0), lambda: 1, want: Indefinite},
		{name: "NaN on the diagonal", gram: sym(3, 1, 0, 0, 0, nan, 0, 0, 0, 1), lambda: 1, want: NonFinite,
			refused: []int{1}},
		{name: "infinite off the diagonal", gram: sym(3, 1, 0, inf, 0, 1, 0, inf, 0, 1), lambda: 1, want: NonFinite,
			refused: []int{2}},
		{name: "negative diagonal", gram: sym(2, 1, 0, 0, -1e-30), lambda: 1, want: Indefinite, refused: []int{1}},
		{name: "negative eigenvalue", gram: sym(2, 1, 1+1e-8, 1+1e-8, 1), lambda: 1e-6, want: Indefinite},
		{name: "Cauchy–Schwarz", gram: sym(2, 1, 1e300, 1e300, 1), lambda: 1, want: Indefinite, refused: []int{0, 1}},
		{name: "ill-conditioned, Anderson", gram: hilbert, lambda: 0, want: RankDeficient},
		{name: "negative lambda", gram: sym(1, 1), lambda: -1, want: Invalid},
		{name: "NaN lambda", gram: sym(1, 1), lambda: nan, want: Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := Factor(tt.gram).Solve(tt.lambda)
			if res.Status != tt.want {
				t.Fatalf("status is %v, want %v (%s)", res.Status, tt.want, res.Detail)
			}
			if (res.Err() == nil) != (res.Status == OK) || (res.C == nil) == (res.Status == OK) {
				t.Errorf("err is %v and c %v where the status is %v", res.Err(), res.C, res.Status)
			}
			for i, want := range tt.c {
				if !near(res.C[i], want, 1e-12) {
					t.Errorf("c = %v, want %v", res.C, tt.c)
				}
			}
			if len(res.Refused) != len(tt.refused) {
				t.Fatalf("refused %v, want columns %v", res.Refused, tt.refused)
			}
			for i, j := range tt.refused {
				if res.Refused[i].Column != j || res.Refused[i].Reason != tt.want {
					t.Errorf("refused %v, want columns %v", res.Refused, tt.refused)
				}
			}
		})
	}
	if res := Factor(nil).Solve(1); res.Status != TooFew {
		t.Errorf("no matrix gives %v, want %v", res.Status, TooFew)
	}
}

// ‖c‖² ≤ (1 + 1/λ)/N for any residuals, and one Spectrum gives the same c as Solve.
func TestNormBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n, d := 1+rng.IntN(12), 1+rng.IntN(20)
		r := mat.NewDense(d, n, nil)
		for i := range d {
			for j := range n {
				r.Set(i, j, rng.NormFloat64()*math.Pow(10, -float64(j)*rng.Float64()))
			}
		}
		var gram mat.SymDense
		gram.SymOuterK(1, r.T())
		spectrum := Factor(&gram)
		previous := math.Inf(1)
		for _, lambda := range []float64{1e-11, 1e-9, 1e-6, 1e-3, .1, 1, 10, 1e6} {
			res := spectrum.Solve(lambda)
			if res.Status != OK {
				t.Fatalf("N = %d, d = %d, λ = %g: %v", n, d, lambda, res.Err())
			}
			if bound := (1 + 1/lambda) / float64(n); res.NormC*res.NormC > bound*(1+1e-6) {
				t.Errorf("N = %d, λ = %g: ‖c‖² = %g exceeds %g", n, lambda, res.NormC*res.NormC, bound)
			}
			if res.NormC > previous*(1+1e-6) {
				t.Errorf("N = %d, λ = %g: ‖c‖ = %g grew with λ from %g", n, lambda, res.NormC, previous)
			}
			previous = res.NormC
			if !near(sum(res.C), 1, 1e-12*res.NormC) {
				t.Errorf("Σc = %v", sum(res.C))
			}
			for j, c := range Factor(&gram).Solve(lambda).C {
				if c != res.C[j] {
					t.Errorf("Solve and Spectrum.Solve differ: %v, %v", c, res.C[j])
				}
			}
		}
	}
}

func FuzzSolve(f *testing.F) {
	seed := func(lambda float64, entries ...float64) {
		var b []byte
		for _, v := range append([]float64{lambda}, entries...) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		f.Add(b)
	}
	seed(1, 1, 2, 4)
	seed(1e-9, 1, 1, 1)
	seed(0, 1, 1e-8, 1e-15, 1, 0, 1)
	seed(1e-13, 1, .5, 1, .25, .5, 1)
	seed(math.Inf(1), 0, 0, 0)
	seed(1e-9, math.NaN())
	seed(1e-9, -1, 1e300, 1)
	seed(1e308, 5e-324)
	f.Fuzz(func(t *testing.T, b []byte) {
		var v []float64
		for ; len(b) >= 8 && len(v) < 60; b = b[8:] {
			v = append(v, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		if len(v) < 2 {
			return
		}
		lambda, v := v[0], v[1:]
		n := 0
		for (n+1)*(n+2)/2 <= len(v) {
			n++
		}
		gram := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				gram.SetSym(i, j, v[i*(i+1)/2+j])
			}
		}
		bounded := Factor(gram).Constrain(lambda) // as a τ
		if limit := (1 + lambda) / math.Sqrt(float64(n)); bounded.Status == OK &&
			!(bounded.NormC <= limit*(1+1e-9) && near(sum(bounded.C), 1, 1e-13*float64(n)*max(1, bounded.NormC))) {
			t.Fatalf("τ = %v: ‖c‖ = %v exceeds %v, or Σc = %v", lambda, bounded.NormC, limit, sum(bounded.C))
		}
		res := Factor(gram).Solve(lambda)
		if (bounded.C == nil) == (bounded.Status == OK) || bounded.Status == Invalid && res.Status != Invalid {
			t.Fatalf("τ = %v: %v with c = %v", lambda, bounded.Status, bounded.C)
		}
		if res.Status != OK {
			if res.C != nil || res.Detail == "" {
				t.Fatalf("refused with %+v", res)
			}
			return
		}
		if !near(sum(res.C), 1, 1e-14*float64(n)*max(1, res.NormC)) {
			t.Fatalf("Σc = %v, ‖c‖ = %v", sum(res.C), res.NormC)
		}
		floor := max(lambda, 16*epsilon*float64(n))
		if bound := math.Sqrt((1 + 1/floor) / float64(n)); !(res.NormC <= 1.2*bound) {
			t.Fatalf("‖c‖ = %v, bound %v, λ = %v", res.NormC, bound, lambda)
		}
	})
}

func TestStatusNames(t *testing.T) {
	for s := OK; s <= Invalid; s++ {
		if text, err := s.MarshalText(); err != nil || string(text) != s.String() || s.String() == "" {
			t.Errorf("status %d reads %q, %v", int(s), text, err)
		}
	}
	if got := Status(99).String(); got != "Status(99)" {
		t.Errorf("unknown status reads %q", got)
	}
}
