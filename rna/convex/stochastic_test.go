package convex

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// f* by samples is that of the published curves, and methods end and rank as theirs.
func TestPublishedStochastic(t *testing.T) {
	r := sonarRisk(t, 0)
	r.Reg = r.X.MaxRowNorm() / 208
	best, err := r.Optimum()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := math.Ln2-best.Value, 0.061675409323044827; math.Abs(got-want) > 1e-14 {
		t.Errorf("f(0) − f* = %v, published %v", got, want)
	}
	// Published values at an epoch, and the first epoch of the curve.
	for m, want := range map[Method]struct {
		at     int
		value  float64
		starts int
	}{
		SGD:            {100, 2.2e-3, 0},
		SVRG:           {20, 9.7e-6, 0},
		SAGA:           {11, 9.7e-6, 1},
		Katyusha:       {50, 6.4e-9, 0},
		OnlineRNASVRG:  {20, 2.2e-9, 0},
		OnlineRNASAGA:  {21, 4.2e-11, 1},
		OfflineRNASVRG: {40, 3.1e-11, 0},
		OfflineRNASAGA: {21, 1.0e-10, 1},
	} {
		logs := 0.0
		const seeds = 8
		for seed := range seeds {
			res, err := MinimizeSum(r, m, Options{Seed: uint64(seed)})
			if err != nil {
				t.Fatal(m, err)
			}
			if res.At[0] != want.starts {
				t.Errorf("%s starts at epoch %d", m, res.At[0])
			}
			for k, at := range res.At {
				if at == want.at {
					logs += math.Log10(math.Max(res.Values[k]-best.Value, 1e-16)) / seeds
				}
			}
		}
		// A published curve is one draw; ours a mean of draws.
		if off := logs - math.Log10(want.value); math.Abs(off) > 2.5 {
			t.Errorf("%s at epoch %d: 1e%.1f, published %.1e", m, want.at, logs, want.value)
		}
	}
}

// Sums of SAGA, SVRG and Katyusha come to the optimum, also of least squares and sparse rows; SGD stays at its noise.
func TestStochasticConverges(t *testing.T) {
	dense, sparse := twins(t, 300, 8, 0.5)
	for _, loss := range []Loss{Logistic, Squares} {
		for _, d := range []*Data{dense, sparse} {
			r := risk(t, d, loss, d.X.MaxRowNorm()/300)
			best, err := r.Optimum()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range Stochastic() {
				res, err := MinimizeSum(r, m, Options{})
				if err != nil {
					t.Fatal(m, err)
				}
				end := res.Values[len(res.Values)-1] - best.Value
				base, _, _ := m.split()
				if base == SGD && !(end < 0.1) || base != SGD && !(end < 1e-9) {
					t.Errorf("%v, %s ends at %g", loss, m, end)
				}
			}
		}
	}
}

func TestSeeds(t *testing.T) {
	r := sonarRisk(t, 1e-3)
	run := func(seed uint64) []float64 {
		res, err := MinimizeSum(r, SAGA, Options{Iterations: 3, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return res.Values
	}
	if !floats.Equal(run(1), run(1)) || floats.Equal(run(1), run(2)) {
		t.Error("values do not follow the seed")
	}
	if _, err := MinimizeSum(r, GD, Options{}); err == nil {
		t.Error("a method without samples was taken")
	}
	r.Reg = 0
	if _, err := MinimizeSum(r, Katyusha, Options{}); err == nil {
		t.Error("Katyusha without regularisation was taken")
	}
}
