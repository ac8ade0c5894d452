package random

import (
	"math"
	"slices"
	"testing"
)

func TestRandIsPinned(t *testing.T) {
	// Saved runs can be resumed only while these numbers stay the same.
	r := New(1, 2, 3)
	got := []uint64{r.Uint64(), r.Uint64()}
	if want := []uint64{0xf7fd2756d0fd1193, 0x13f7af96f196d8aa}; !slices.Equal(got, want) {
		t.Errorf("%#x, want %#x", got, want)
	}
	var p [8]int32
	r.Perm(p[:])
	if want := [8]int32{7, 6, 0, 3, 1, 4, 2, 5}; p != want {
		t.Errorf("%v, want %v", p, want)
	}
	if a, b := New(1, 2), New(2, 1); a == b {
		t.Error("the order of the words does not matter")
	}
	if a, b := New(1), New(1, 0); a == b {
		t.Error("the number of words does not matter")
	}
}

func TestRandMoments(t *testing.T) {
	const n = 200000
	for _, c := range []struct {
		name           string
		draw           func(r *Rand) float64
		mean, variance float64
	}{
		{"Float64", (*Rand).Float64, 0.5, 1. / 12},
		{"Uniform", func(r *Rand) float64 { return r.Uniform(-3, 1) }, -1, 16. / 12},
		{"IntN", func(r *Rand) float64 { return float64(r.IntN(7)) }, 3, 4},
		{"Normal", (*Rand).Normal, 0, 1},
		{"first of neighbours", nil, 0.5, 1. / 12},
	} {
		r := New(7)
		sum, sum2 := 0., 0.
		for i := range n {
			v := 0.
			if c.draw != nil {
				v = c.draw(&r)
			} else {
				first := New(3, uint64(i))
				v = first.Float64()
			}
			sum, sum2 = sum+v, sum2+v*v
		}
		mean := sum / n
		variance := sum2/n - mean*mean
		if sd := math.Sqrt(c.variance / n); math.Abs(mean-c.mean) > 5*sd {
			t.Errorf("%s: mean %g, want %g ± %.2g", c.name, mean, c.mean, sd)
		}
		if math.Abs(variance/c.variance-1) > 0.02 {
			t.Errorf("%s: variance %g, want %g", c.name, variance, c.variance)
		}
	}
}

func TestPermIsUniform(t *testing.T) {
	count := map[[4]int32]int{}
	const n = 24000
	for i := range n {
		r := New(uint64(i))
		var p [4]int32
		r.Perm(p[:])
		count[p]++
	}
	chi2 := 0.
	for _, c := range count {
		d := float64(c) - n/24
		chi2 += d * d / (n / 24)
	}
	if len(count) != 24 || chi2 > 50 { // 23 degrees of freedom: 49.7 is the 0.1 % point
		t.Errorf("%d of 24 permutations, χ² = %.1f", len(count), chi2)
	}
}
