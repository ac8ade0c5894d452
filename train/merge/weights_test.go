package merge

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

func TestEMA(t *testing.T) {
	w, err := EMA(4, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ema", w, []float64{0.729, 0.081, 0.09, 0.1}, 1e-15)
	for _, d := range []float64{-0.1, 1, math.NaN()} {
		if _, err := EMA(4, d); err == nil {
			t.Errorf("decay %v", d)
		}
	}
}

// TestWSM checks that the weights reproduce the decay: the steps between checkpoints i−1 and i count Σ_{j≥i} w_j.
func TestWSM(t *testing.T) {
	factors := map[string][]float64{
		"linear": {0.75, 0.5, 0.25},
		"cosine": {0.8535533905932737, 0.5, 0.14644660940672627},
		"1-sqrt": {0.5, 0.2928932188134524, 0.1339745962155614},
	}
	for _, s := range Schedules() {
		w, err := WSM(4, s)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i := 3; i > 0; i-- {
			sum += w[i]
			near(t, s, []float64{sum}, factors[s][i-1:i], 1e-15)
		}
		near(t, s, []float64{sum + w[0]}, []float64{1}, 1e-15)
	}
	w, _ := WSM(5, "linear")
	near(t, "linear", w, Mean(5), 1e-16)
	if _, err := WSM(4, "exp"); err == nil {
		t.Error("an unknown schedule")
	}
}

// The expected values are those of ema-pytorch 0.8.3: sigma_rel_to_gamma and solve_weights, with exponents in float64.
func TestPowerEMA(t *testing.T) {
	for sigma, want := range map[float64]float64{0.05: 16.97219860230, 0.1: 6.93720393760, 0.2: 1.82621377990} {
		g, err := Gamma(sigma)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "gamma", []float64{g}, []float64{want}, 1e-10)
	}
	var stored []Power
	for _, step := range []float64{20, 40, 60} {
		stored = append(stored, Power{step, 0.05}, Power{step, 0.2})
	}
	w, residual, err := PowerEMA(stored, Power{60, 0.1})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "weights", w, []float64{6.9168270047911e-05, -0.0041361310453288, 0.016174698192501, -0.25359015078007,
		0.37190171587556, 0.89246756407029}, 1e-11)
	near(t, "residual", []float64{residual}, []float64{0.14128308639751}, 1e-9)
	// A stored EMA reproduces itself.
	w, residual, err = PowerEMA(stored, Power{60, 0.2})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "itself", w, []float64{0, 0, 0, 0, 0, 1}, 1e-10)
	if residual > 1e-6 {
		t.Errorf("residual %v of a stored one", residual)
	}
	for _, bad := range [][]Power{{{60, 0.1}, {60, 0.1}}, {{0, 0.1}}, {{60, 0.3}}, {{30, 0}, {60, 0.1}},
		{{30, 0}, {20, 0}}, {{30, 0}}} {
		if _, _, err := PowerEMA(bad, Power{60, 0.1}); err == nil {
			t.Errorf("%v", bad)
		}
	}
}

// TestPowerOfIterates compares the weights with the average that steps of size 1 give: β_t = (1 − 1/t)^(γ+1).
func TestPowerOfIterates(t *testing.T) {
	gamma, _ := Gamma(0.15)
	var all []Power
	want := []float64{1}
	for step := 1.0; step <= 500; step++ {
		all = append(all, Power{Step: step})
		if beta := math.Pow(1-1/step, gamma+1); step > 1 {
			for i := range want {
				want[i] *= beta
			}
			want = append(want, 1-beta)
		}
	}
	w, residual, err := PowerEMA(all, Power{500, 0.15})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "weights", w, want, 1e-15)
	few, coarse, err := PowerEMA([]Power{{Step: 100}, {Step: 200}, {Step: 300}, {Step: 400}, {Step: 500}},
		Power{500, 0.15})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "five", few[:1], []float64{math.Pow(0.2, gamma+1)}, 1e-15)
	if !(residual < 0.01 && coarse > 0.1 && coarse < 1) {
		t.Errorf("residuals %v of 500 and %v of 5", residual, coarse)
	}
}
