package convex

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// Values and gradients from strips equal those of the dense twin, with several strips, rows that end within a tile, and
// values of all kinds.
func TestStrips(t *testing.T) {
	const n, d = 777, 700
	for _, kind := range []string{"any values", "one value a column"} {
		dense, sparse := twins(t, n, d, 0.13)
		if kind != "any values" {
			for k, j := range sparse.X.index {
				sparse.X.values[k] = 0.5 + float64(j%3)
			}
			for i := range n {
				columns, values := sparse.X.Row(i)
				clear(dense.X.values[i*d : (i+1)*d])
				for k, j := range columns {
					dense.X.values[i*d+int(j)] = values[k]
				}
			}
		}
		a, b := problem(t, risk(t, dense, Logistic, 1e-3)), problem(t, risk(t, sparse, Logistic, 1e-3))
		s := b.linear.strip
		if s == nil || s.number != 2 || (s.steps == nil) != (kind == "any values") {
			t.Fatalf("%s: strips %v", kind, s)
		}
		if math.Abs(a.L-b.L) > 1e-13*a.L {
			t.Errorf("%s: L is %v, of the dense twin %v", kind, b.L, a.L)
		}
		points := make([][]float64, 5)
		for k := range points {
			points[k] = make([]float64, d)
			for j := range points[k] {
				points[k][j] = math.Sin(float64(j * (k + 1)))
			}
		}
		want, got := make([]float64, d), make([]float64, d)
		fa, fb := a.F(points[1], want), b.F(points[1], got)
		if math.Abs(fa-fb) > 1e-14*fa || !floats.EqualApprox(got, want, 1e-14*float64(n)) {
			t.Errorf("%s: f is %v, of the dense twin %v; gradients differ by %g", kind, fb, fa,
				floats.Distance(got, want, math.Inf(1)))
		}
		va, vb := make([]float64, 5), make([]float64, 5)
		a.Values(va, points)
		b.Values(vb, points)
		if !floats.EqualApprox(va, vb, 1e-13) {
			t.Errorf("%s: values %v, of the dense twin %v", kind, vb, va)
		}
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = 1 + math.Cos(float64(i))
		}
		newProduct(dense.X, newTeam(dense.X)).apply(want, points[2], weights)
		newProduct(sparse.X, newTeam(sparse.X)).apply(got, points[2], weights)
		if !floats.EqualApprox(got, want, 1e-13*float64(n)) {
			t.Errorf("%s: weighted products differ by %g", kind, floats.Distance(got, want, math.Inf(1)))
		}
		for _, m := range Deterministic() {
			x, err := Minimize(a, m, Options{Iterations: 8})
			if err != nil {
				t.Fatal(err)
			}
			y, err := Minimize(b, m, Options{Iterations: 8})
			if err != nil {
				t.Fatal(err)
			}
			if !floats.EqualApprox(x.Values, y.Values, 1e-10) {
				t.Errorf("%s, %s: %v, of the dense twin %v", kind, m, y.Values, x.Values)
			}
		}
		oa, err := risk(t, dense, Logistic, 1e-3).Optimum()
		if err != nil {
			t.Fatal(err)
		}
		ob, err := risk(t, sparse, Logistic, 1e-3).Optimum()
		if err != nil || math.Abs(oa.Value-ob.Value) > 1e-14 {
			t.Errorf("%s: f* is %v, of the dense twin %v, %v", kind, ob.Value, oa.Value, err)
		}
	}
}
