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

// With two residuals NoiseCoefficients are those of RNA, so that they are no null model.
func TestNoiseOfTwo(t *testing.T) {
	for _, g := range [][]float64{{4, 1, 1, 3}, {9, 2, 2, 5}} {
		gram := mat.NewSymDense(2, g)
		c, _ := NoiseCoefficients(gram)
		if got := Factor(gram).Solve(0).C; relativeError(c, got) > 1e-14 {
			t.Errorf("%v: %v, of RNA %v", g, c, got)
		}
	}
	c, noise := NoiseCoefficients(mat.NewSymDense(3, []float64{5, 1, 2, 1, 3, 0, 2, 0, 4})) // by hand: the drift is 1
	if want := []float64{3. / 13, 6. / 13, 4. / 13}; relativeError(c, want) > 1e-14 || math.Abs(noise-.75) > 1e-15 {
		t.Errorf("%v, want %v, noise %v", c, want, noise)
	}
}

// RNA of iterates that scatter about a point comes to StationaryCoefficients, at a distance from the average where
// NoiseCoefficients have none.
func TestStationaryCoefficients(t *testing.T) {
	const n, d = 5, 200000
	rng := rand.New(rand.NewPCG(7, 7))
	space, _ := NewHost64(d, 1)
	w := window(t, space, n)
	for range n + 1 {
		x := make(Slice64, d)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		push(t, w, x)
	}
	c := StationaryCoefficients(n)
	if want := []float64{1. / 7, 8. / 35, 9. / 35, 8. / 35, 1. / 7}; relativeError(c, want) > 1e-15 {
		t.Errorf("%v, want %v", c, want)
	}
	if got := w.Spectrum(n).Solve(0).C; relativeError(got, c) > .02 {
		t.Errorf("RNA has %v, want %v", got, c)
	}
	if d := FromUniform(c); math.Abs(d-.1069) > 1e-4 {
		t.Errorf("distance %v", d)
	}
	if noise, _ := NoiseCoefficients(w.Gram(n)); FromUniform(noise) > .02 {
		t.Errorf("independent noise is %v from the average", FromUniform(noise))
	}
	if StationaryCoefficients(0) != nil || StationaryCoefficients(1)[0] != 1 {
		t.Error("none or one")
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
