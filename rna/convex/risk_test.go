package convex

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// twins are random data, dense and sparse with the same values.
func twins(t testing.TB, n, d int, density float64) (dense, sparse *Data) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	full := make([]float64, n*d)
	start, index, values := []int{0}, []int32(nil), []float64(nil)
	y := make([]float64, n)
	for i := range n {
		for j := range d {
			if rng.Float64() < density {
				v := rng.NormFloat64()
				full[i*d+j] = v
				index, values = append(index, int32(j)), append(values, v)
			}
		}
		start = append(start, len(values))
		y[i] = 1 - 2*float64(rng.IntN(2))
	}
	a, err := NewDense(n, d, full)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewSparse(n, d, start, index, values)
	if err != nil {
		t.Fatal(err)
	}
	return &Data{X: a, Y: y}, &Data{X: b, Y: y}
}

func risk(t testing.TB, d *Data, loss Loss, reg float64) *Risk {
	t.Helper()
	r, err := NewRisk(d, loss)
	if err != nil {
		t.Fatal(err)
	}
	r.Reg = reg
	return r
}

func TestGradients(t *testing.T) {
	const n, d = 300, 7
	dense, sparse := twins(t, n, d, 0.4)
	w := []float64{1, -2, 0.5, 0, 3, -1, 0.1}
	for _, loss := range []Loss{Logistic, Squares} {
		var values []float64
		for _, data := range []*Data{dense, sparse} {
			r := risk(t, data, loss, 0.3)
			p := problem(t, r)
			grad := make([]float64, d)
			f := p.F(w, grad)
			values = append(values, f)
			want := fd.Gradient(nil, func(x []float64) float64 { return p.F(x, nil) }, w,
				&fd.Settings{Formula: fd.Central})
			if !floats.EqualApprox(grad, want, 1e-7) {
				t.Errorf("%v: gradient %v, by differences %v", loss, grad, want)
			}
			if alone := p.F(w, nil); math.Abs(alone-f) > 1e-15*f {
				t.Errorf("%v: f is %v with the gradient, %v without", loss, f, alone)
			}
			weights := make([]float64, n)
			for i := range weights {
				weights[i] = loss.bend(r.X.dot(i, w)) / n
			}
			h := r.hessian(weights)
			for j := range d {
				e := append([]float64(nil), w...)
				e[j] += 1e-5
				up := make([]float64, d)
				p.F(e, up)
				for k := range d {
					if dif := (up[k] - grad[k]) / 1e-5; math.Abs(dif-h.At(j, k)) > 1e-4 {
						t.Errorf("%v: Hessian (%d,%d) is %v, by differences %v", loss, j, k, h.At(j, k), dif)
					}
				}
			}
			if !floats.EqualApprox(r.conjugate(grad, weights, newTeam(r.X)), solve(t, h, grad),
				1e-1*floats.Norm(grad, 2)) {
				t.Errorf("%v: conjugate gradients are far from the factorisation", loss)
			}
		}
		if math.Abs(values[0]-values[1]) > 1e-14 {
			t.Errorf("%v: dense %v, sparse %v", loss, values[0], values[1])
		}
	}
}

func solve(t *testing.T, h *mat.SymDense, grad []float64) []float64 {
	t.Helper()
	var x mat.VecDense
	if err := x.SolveVec(h, mat.NewVecDense(len(grad), grad)); err != nil {
		t.Fatal(err)
	}
	return x.RawVector().Data
}

// The logistic loss keeps its digits where exp would overflow or 1 + exp lose them.
func TestLogisticExtremes(t *testing.T) {
	for _, c := range []struct{ margin, value, slope float64 }{
		{0, math.Ln2, -0.5},
		{800, 0, 0},
		{-800, 800, -1},
		{40, math.Exp(-40), -math.Exp(-40)},
		{-1e300, 1e300, -1},
	} {
		for _, y := range []float64{1, -1} {
			v, s := Logistic.both(y*c.margin, y)
			if alone := Logistic.value(y*c.margin, y); alone != v {
				t.Errorf("margin %v: value %v and %v", c.margin, v, alone)
			}
			if !agree(v, c.value) || !agree(s, y*c.slope) || !agree(Logistic.slope(y*c.margin, y), y*c.slope) {
				t.Errorf("margin %v, y %v: %v and %v, want %v and %v", c.margin, y, v, s, c.value, y*c.slope)
			}
		}
	}
}

func agree(a, b float64) bool { return math.Abs(a-b) <= 1e-15*math.Abs(b) }

func TestNorm2(t *testing.T) {
	dense, sparse := twins(t, 90, 40, 0.5)
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(90, 40, dense.X.values), mat.SVDNone) {
		t.Fatal("no SVD")
	}
	want := math.Pow(svd.Values(nil)[0], 2)
	for _, d := range []*Data{dense, sparse} {
		if got := d.X.Norm2(); math.Abs(got-want) > 1e-12*want {
			t.Errorf("‖XXᵀ‖ = %v, want %v", got, want)
		}
	}
}

// For squares the optimum solves the normal equations; for both losses its gradient vanishes, also by conjugate
// gradients.
func TestOptimum(t *testing.T) {
	dense, sparse := twins(t, 200, 10, 0.7)
	for _, loss := range []Loss{Logistic, Squares} {
		a, err := risk(t, dense, loss, 1e-3).Optimum()
		if err != nil {
			t.Fatal(err)
		}
		b, err := risk(t, sparse, loss, 1e-3).Optimum()
		if err != nil {
			t.Fatal(err)
		}
		if a.GradNorm > 1e-14 || b.GradNorm > 1e-14 || math.Abs(a.Value-b.Value) > 1e-15 {
			t.Errorf("%v: dense %v with gradient %v, sparse %v with %v", loss, a.Value, a.GradNorm, b.Value, b.GradNorm)
		}
	}
	_, wide := twins(t, 60, maxDense+100, 0.01)
	best, err := risk(t, wide, Logistic, 1e-3).Optimum()
	if err != nil {
		t.Fatal(err)
	}
	if best.GradNorm > 1e-14 {
		t.Errorf("by conjugate gradients ‖∇f‖ = %v", best.GradNorm)
	}
}

// Curves are the same for any number of processors, bit for bit.
func TestProcessors(t *testing.T) {
	dense, sparse := twins(t, 2000, 40, 0.9)
	for _, d := range []*Data{dense, sparse} {
		r := risk(t, d, Logistic, 1e-4)
		var last []float64
		for _, procs := range []int{1, 2, 5} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			res, err := Minimize(problem(t, r), Online{GD}, Options{Iterations: 40})
			if err != nil {
				t.Fatal(err)
			}
			if last != nil && !floats.Equal(last, res.Values) {
				t.Errorf("%d processors: other values", procs)
			}
			last = res.Values
		}
	}
}

func TestBadRisks(t *testing.T) {
	dense, _ := twins(t, 5, 2, 1)
	if _, err := NewRisk(&Data{X: dense.X, Y: []float64{1, 2, 1, 1, -1}}, Logistic); err == nil {
		t.Error("a target of 2 was taken")
	}
	if _, err := NewRisk(&Data{X: dense.X, Y: []float64{1}}, Squares); err == nil {
		t.Error("one target for five rows was taken")
	}
	r := risk(t, dense, Logistic, math.NaN())
	if _, err := r.Problem(); err == nil {
		t.Error("a regularisation of NaN was taken")
	}
	huge, err := NewDense(1, 2, []float64{1e300, 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := risk(t, &Data{X: huge, Y: []float64{1}}, Logistic, 1).Problem(); err == nil {
		t.Error("features whose squares overflow were taken")
	}
	for name, err := range map[string]error{
		"short":      second(NewDense(2, 3, make([]float64, 5))),
		"columns":    second(NewSparse(1, 2, []int{0, 2}, []int32{1, 0}, []float64{1, 1})),
		"range":      second(NewSparse(1, 2, []int{0, 1}, []int32{2}, []float64{1})),
		"descending": second(NewSparse(2, 2, []int{0, 1, 1}, []int32{0, 1}, []float64{1, 1})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ *Matrix, err error) error { return err }
