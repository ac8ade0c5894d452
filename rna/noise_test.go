package rna

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// For a drift with noise of known sizes, RNA's coefficients approach NoiseCoefficients as the number of elements
// grows; for a chain without noise they differ.
func TestNoiseCoefficients(t *testing.T) {
	const n = 6
	for _, d := range []int{1000, 100000} {
		rng := rand.New(rand.NewPCG(uint64(d), 1))
		space, _ := NewHost64(d, 1)
		w := window(t, space, n)
		want, sum := make([]float64, n), 0.0
		for i := range n {
			size := 1 + float64(i)/4
			want[i] = 1 / (size * size)
			sum += want[i]
			r := make(Slice64, d)
			for j := range r {
				r[j] = 0.5*math.Sin(float64(j)) + size*rng.NormFloat64()
			}
			if err := w.PushResidual(make(Slice64, d), r); err != nil {
				t.Fatal(err)
			}
		}
		for i := range want {
			want[i] /= sum
		}
		c, noise := NoiseCoefficients(w.Gram(n))
		tolerance := 5 / math.Sqrt(float64(d))
		got := w.Spectrum(n).Solve(1e-9).C
		if e := relativeError(c, want); e > tolerance {
			t.Errorf("%d elements: %v, want %v", d, c, want)
		}
		if e := relativeError(got, want); e > tolerance {
			t.Errorf("%d elements: RNA has %v, noise of these sizes %v", d, got, want)
		}
		if share := 1 - 0.125/(0.125+meanSquare(n)); math.Abs(noise-share) > tolerance {
			t.Errorf("%d elements: noise is %v of the residuals, want %v", d, noise, share)
		}
		if d := math.Abs(FromUniform(got) - FromUniform(want)); d > tolerance {
			t.Errorf("distances from the average differ by %g", d)
		}
	}
	vs := contraction(50, 7, 3)
	space, _ := NewHost64(50, 1)
	w := window(t, space, n)
	push(t, w, vs...)
	c, _ := NoiseCoefficients(w.Gram(n))
	if got := w.Spectrum(n).Solve(1e-9).C; c != nil && relativeError(c, got) < 0.5 {
		t.Errorf("without noise RNA has %v, noise %v", got, c)
	}
	r := w.Spectrum(n).Solve(1e-3)
	if d := FromUniform(r.C); math.Abs(d*d-((1+r.Tau)*(1+r.Tau)-1)/n) > 1e-12*d*d {
		t.Errorf("distance %v for τ = %v", d, r.Tau)
	}
	for _, g := range []*mat.SymDense{mat.NewSymDense(1, []float64{1}), mat.NewSymDense(2, []float64{1, 1, 1, 1})} {
		if c, _ := NoiseCoefficients(g); c != nil {
			t.Errorf("%v without noise", c)
		}
	}
}

// meanSquare is that of the sizes 1, 1.25, … of n.
func meanSquare(n int) float64 {
	sum := 0.0
	for i := range n {
		sum += (1 + float64(i)/4) * (1 + float64(i)/4) / float64(n)
	}
	return sum
}
