package convex

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"onlinerna/rna/convex/internal/kern"
)

func TestDenominator(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		q := 1 + rng.IntN(mostDivisor)
		p := rng.IntN(3*q) - q
		a, b := p, q
		for b != 0 {
			a, b = b, a%b
		}
		want := float64(q / max(a, -a))
		if got := denominator(float64(p) / float64(q)); got != want {
			t.Fatalf("%d/%d has the denominator %v, want %v", p, q, got, want)
		}
	}
	for _, v := range []float64{math.Pi, math.Sqrt2, 1e-5 / 3, 1e300, 1e-300, math.NaN()} {
		if q := denominator(v); q != 0 {
			t.Errorf("%v has the denominator %v", v, q)
		}
	}
	if denominator(0) != 1 || denominator(-3) != 1 {
		t.Error("integers have other denominators than 1")
	}
}

// integers are rows of small integers, as measurements are.
func integers(t testing.TB, n, d int) *Data {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	values, y := make([]float64, n*d), make([]float64, n)
	for i := range values {
		values[i] = float64(480 + int(40*rng.NormFloat64()))
	}
	for i := range y {
		y[i] = 1 - 2*float64(rng.IntN(2))
	}
	x, err := NewDense(n, d, values)
	if err != nil {
		t.Fatal(err)
	}
	return &Data{X: x, Y: y}
}

// Codes decode to the values, and risks from codes equal those from the values up to rounding.
func TestCodes(t *testing.T) {
	raw := integers(t, 700, 61)
	scaled, err := raw.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*Data{"integers": raw, "scaled": scaled} {
		c := d.X.coded()
		if c == nil {
			t.Errorf("%s have no codes", name)
			continue
		}
		for i := range d.X.n {
			_, row := d.X.Row(i)
			for j, v := range row {
				if got := kern.Decode(c.values[i*c.stride:], j) / math.Round(1/c.steps[j]); got != v {
					t.Fatalf("%s: (%d, %d) is %v, coded as %v", name, i, j, v, got)
				}
			}
		}
		plain := *d
		plain.X = &Matrix{n: d.X.n, d: d.X.d, values: d.X.values, stride: d.X.stride}
		plain.X.encoded.Do(func() {})
		for _, loss := range []Loss{Logistic, Squares} {
			for _, m := range []Method{GD, NesterovStrong, Online{GD}, Online{NesterovStrong}, LBFGS} {
				var values [2][]float64
				for i, data := range []*Data{d, &plain} {
					r := risk(t, data, loss, 0)
					r.Reg = 1e-3 * r.Smoothness()
					res, err := Minimize(problem(t, r), m, Options{Iterations: 8})
					if err != nil {
						t.Fatal(err)
					}
					values[i] = res.Values
				}
				if !floats.EqualFunc(values[0], values[1],
					func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }) {
					t.Errorf("%s, %v, %s: %v coded, %v not", name, loss, m, values[0], values[1])
				}
			}
		}
	}
	for name, change := range map[string]float64{"irrational": math.Pi, "large": 40000, "fine": 1.0 / 40001} {
		d := integers(t, 700, 61)
		d.X.values[1234] = change
		if d.X.coded() != nil {
			t.Errorf("%s values have codes", name)
		}
	}
}
