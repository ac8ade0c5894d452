package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Values of scipy 1.17: scipy.stats.t.ppf, binomtest(k, n).pvalue, ttest_1samp. That of t for 2 is tan(0.475π), those of
// means and errors are by hand.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"t, 2 seeds", T(.975, 2), 12.706204736432095},
		{"t, 5 seeds", T(.975, 5), 2.7764451051977934},
		{"t, 10 seeds", T(.975, 10), 2.2621571627409915},
		{"t, 1000 images", T(.95, 1000), 1.6463803454274908},
		{"paired t", PairedT([]float64{-1, -1, -1.3}), 0.008163401865824486},
		{"paired t, 5", PairedT([]float64{.3, -.1, .25, .4, .1}), 0.09480282578973392},
		{"paired t, equal", PairedT([]float64{2, 2}), 0},
		{"paired t, no difference", PairedT([]float64{0, 0}), 1},
		{"paired", Paired(30, 10, 100), math.Sqrt(40-4) / 100},
		{"paired, all alike", Paired(0, 0, 100), 0},
		{"McNemar 1, 9", McNemar(1, 9), 0.021484375},
		{"McNemar 9, 1", McNemar(9, 1), 0.021484375},
		{"McNemar 5, 5", McNemar(5, 5), 1},
		{"McNemar 0, 0", McNemar(0, 0), 1},
		{"McNemar 0, 5", McNemar(0, 5), 0.0625},
		{"McNemar 40, 60", McNemar(40, 60), 0.05688793364098078},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-9*max(1, math.Abs(c.want))) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if mean, half := Interval([]float64{1, 2, 3}); mean != 2 || math.Abs(half-4.302652729911275/math.Sqrt(3)) > 1e-9 {
		t.Errorf("%v ± %v", mean, half)
	}
	if mean, deviation := Mean([]float64{4}); mean != 4 || !math.IsNaN(deviation) || !math.IsNaN(T(.9, 1)) ||
		!math.IsNaN(PairedT(make([]float64, 1))) || !math.IsInf(Paired(0, 0, 0), 1) {
		t.Error("one value has an error")
	}
}

// Over pairs of classifiers whose outcomes depend on each other, Paired is the spread of the difference.
func TestPaired(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, runs = 500, 4000
	var d []float64
	said := 0.0
	for range runs {
		b, c := 0, 0
		for range n {
			switch u := rng.Float64(); {
			case u < .08:
				b++
			case u < .13:
				c++
			}
		}
		d = append(d, float64(b-c)/n)
		said += Paired(b, c, n) / runs
	}
	_, deviation := Mean(d)
	if got := deviation * math.Sqrt(runs); math.Abs(said/got-1) > .04 {
		t.Errorf("standard error %v, the spread is %v", said, got)
	}
}
