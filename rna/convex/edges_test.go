package convex

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// Two epochs of Katyusha beside its definition: w is the mean of the y_j with weights θ^j, θ = 1 + ασ.
func TestKatyushaByDefinition(t *testing.T) {
	data, _ := twins(t, 24, 4, 1)
	r := risk(t, data, Logistic, 0)
	r.Reg = .01
	const seed = 5
	got, err := MinimizeSum(r, Katyusha, Options{Iterations: 10, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	n, d := data.X.Dims()
	rng := rand.New(rand.NewPCG(seed, 0x726e61))
	l := data.X.MaxRowNorm()
	gradient := func(i int, w []float64) []float64 { // of sample i, without the regulariser
		_, row := data.X.Row(i)
		z := 0.0
		for j, v := range row {
			z += v * w[j]
		}
		g := make([]float64, d)
		for j, v := range row {
			g[j] = -data.Y[i] * v / (1 + math.Exp(data.Y[i]*z))
		}
		return g
	}
	w, y, z := make([]float64, d), make([]float64, d), make([]float64, d)
	tau1 := math.Min(math.Sqrt(2*float64(n)*r.Reg/(3*l)), .5)
	alpha := 1 / (3 * tau1 * l)
	for range 2 {
		anchor := append([]float64(nil), w...)
		full := make([]float64, d)
		for i := range n {
			for j, v := range gradient(i, anchor) {
				full[j] += v / float64(n)
			}
		}
		sum, weight, total := make([]float64, d), 1.0, 0.0
		for range 2 * n {
			x := make([]float64, d)
			for j := range x {
				x[j] = tau1*z[j] + anchor[j]/2 + (.5-tau1)*y[j]
			}
			i := rng.IntN(n)
			a, b := gradient(i, x), gradient(i, anchor)
			for j := range x {
				g := full[j] + a[j] - b[j]
				z[j] = (z[j] - alpha*g) / (1 + alpha*r.Reg)
				y[j] = (x[j] - g/(3*l)) / (1 + r.Reg/(3*l))
				sum[j] += weight * y[j]
			}
			total += weight
			weight *= 1 + alpha*r.Reg
		}
		for j := range w {
			w[j] = sum[j] / total
		}
	}
	for j := range w {
		if math.Abs(got.W[j]-w[j]) > 1e-10 {
			t.Fatalf("%v, by the definition %v", got.W, w)
		}
	}
}

// A line search on scripted values takes the steps of the cubics, by hand.
func TestLineSearchSteps(t *testing.T) {
	type value struct{ f, slope float64 }
	for _, c := range []struct {
		name   string
		first  float64
		script []value // of the steps in their order, from f = 0 and slope −1
		steps  []float64
		found  float64 // −1: none
	}{
		// f = −s + 1.5s²: the cubic finds the minimum.
		{"parabola", 1, []value{{.5, 2}, {-1. / 6, 0}}, []float64{1, 1. / 3}, 1. / 3},
		{"at once", 1, []value{{-.5, 0}}, []float64{1}, 1},
		// A fall that is steep still: the cubic's step is limited to ten times the one before.
		{"extended", 1, []value{{-1, -1}, {-10, 0}}, []float64{1, 10}, 10},
		// f(1) = 100, slope 300: the cubic gives .0517 twice over, too near the end, and then a tenth of the bracket.
		{"near an end", 1, []value{{100, 300}, {5.1708, 300}, {-.005, 0}},
			[]float64{1, .051706, .1 * .051706}, .1 * .051706},
		// f(1) = −100, slope 80: the cubic gives .9045, and then .9983, again near the upper end: a tenth before it.
		{"near the upper end", 1, []value{{-100, 80}, {-50, -1}, {-101, 0}}, []float64{1, .904547, .990455}, .990455},
		// Without a finite value the bracket is halved.
		{"not finite", 1, []value{{math.NaN(), 0}, {-.4, 0}}, []float64{1, .5}, .5},
		// c₁ = 1e-4: d₁ = −1 + 2.7e-4 = −d₂, and the step is 1 − 1.99946/2.99946.
		{"armijo fails by a shade", 1, []value{{-.9e-4, 0}, {-.4, -.89}}, []float64{1, .333393}, .333393},
		{"armijo holds by a shade", 1, []value{{-1.1e-4, .899}}, []float64{1}, 1},
		// c₂ = 0.9: d₁ = 1.401, d₂ = 1.69228, and the step is 1 − 1.19228/5.28556.
		{"curvature fails by a shade", 1, []value{{-.5, .901}, {-.55, 0}}, []float64{1, .774427}, .774427},
	} {
		var steps []float64
		l := newLineSearch(func(w, grad []float64) float64 {
			steps = append(steps, w[0])
			if len(steps) > len(c.script) {
				t.Fatalf("%s: steps %v", c.name, steps)
			}
			v := c.script[len(steps)-1]
			grad[0] = v.slope
			return v.f
		}, 1)
		ok := l.along([]float64{0}, []float64{1}, 0, -1, c.first)
		if ok != (c.found >= 0) || ok && math.Abs(l.best.step-c.found) > 1e-3*c.found {
			t.Errorf("%s: found %v, steps %v", c.name, ok, steps)
		}
		if len(steps) != len(c.steps) {
			t.Errorf("%s: steps %v, want %v", c.name, steps, c.steps)
			continue
		}
		for i, s := range steps {
			if math.Abs(s-c.steps[i]) > 1e-3*c.steps[i] {
				t.Errorf("%s: steps %v, want %v", c.name, steps, c.steps)
			}
		}
	}
	if newLineSearch(nil, 1).along([]float64{0}, []float64{1}, 0, 0, 1) {
		t.Error("a direction that does not fall")
	}
	// A line that falls for ever: each step is ten times the one before, and the last one counts.
	l := newLineSearch(func(w, grad []float64) float64 { grad[0] = -1; return -w[0] }, 1)
	if last := math.Pow(10, maxTrials); !l.along([]float64{0}, []float64{1}, 0, -1, 1) ||
		math.Abs(l.best.step/last-1) > 1e-12 {
		t.Errorf("step %v, want %v", l.best.step, last)
	}
	// d₁ = −2 + 2 = 0 and d₁² − 1 < 0: no cubic has a minimum, and the middle is taken.
	if s := cubic(&probe{slope: -1}, &probe{step: 1, f: -2. / 3, slope: -1}, 0, 4); s != 2 {
		t.Errorf("the middle is %v", s)
	}
}

// logCosh is Σ e_j log cosh(x_j − j), with curvatures up to the largest e, and records each evaluation.
type logCosh struct {
	e      []float64
	y, g   [][]float64 // points with a gradient
	points [][][]float64
}

func (f *logCosh) at(x, grad []float64) (sum float64) {
	for j, e := range f.e {
		a := math.Abs(x[j] - float64(j))
		sum += e * (a + math.Log1p(math.Exp(-2*a)) - math.Ln2)
		if grad != nil {
			grad[j] = e * math.Tanh(x[j]-float64(j))
		}
	}
	if grad != nil {
		f.y, f.g = append(f.y, slices.Clone(x)), append(f.g, slices.Clone(grad))
	}
	return sum
}

func (f *logCosh) values(dst []float64, points [][]float64) {
	var copies [][]float64
	for k, x := range points {
		dst[k] = f.at(x, nil)
		copies = append(copies, slices.Clone(x))
	}
	f.points = append(f.points, copies)
}

func newLogCosh() *logCosh {
	f := &logCosh{}
	for j := range 12 {
		f.e = append(f.e, 4/math.Pow(2, float64(j)/3))
	}
	return f
}

func combined(a float64, x []float64, b float64, y []float64) []float64 {
	z := make([]float64, len(x))
	for j := range x {
		z[j] = a*x[j] + b*y[j]
	}
	return z
}

// Each next point of the adaptive method is (α⁺γ⁺v⁺ + γ⁺⁺x⁺)/(γ⁺ + α⁺μ) in Nesterov's estimate sequence, whether x⁺ is
// z or the gradient step.
func TestAdaptiveByDefinition(t *testing.T) {
	for _, mu := range []float64{0, .1} {
		f := newLogCosh()
		d, l := len(f.e), 4.
		res, err := Minimize(Problem{F: f.at, Values: f.values, Dim: d, L: l, Mu: mu}, OptimalAdaptive,
			Options{Iterations: 30, Window: 4})
		if err != nil {
			t.Fatal(err)
		}
		root := func(gamma float64) float64 { // of Lα² = (1 − α)γ + αμ
			return (mu - gamma + math.Sqrt((gamma-mu)*(gamma-mu)+4*l*gamma)) / (2 * l)
		}
		gamma := mu
		if mu == 0 {
			gamma = l
		}
		v, taken := make([]float64, d), 0
		for k := range 29 {
			y, g, points := f.y[k], f.g[k], f.points[k]
			alpha := root(gamma)
			next := l * alpha * alpha
			v = combined((1-alpha)*gamma/next, v, 1, combined(alpha*mu/next, y, -alpha/next, g))
			alpha, gamma = root(next), next
			x := combined(1, y, -1/l, g)
			if len(points) > 1 && f.at(points[1], nil) <= f.at(y, nil)-floats.Dot(g, g)/(2*l) {
				x = points[1]
				taken++
			}
			if got := res.Values[k+1]; got != f.at(x, nil) && math.Abs(got-f.at(x, nil)) > 1e-14*got {
				t.Errorf("μ = %v, iteration %d: value %v, want %v", mu, k+1, got, f.at(x, nil))
			}
			sum := gamma + alpha*mu
			want := combined(alpha*gamma/sum, v, l*alpha*alpha/sum, x)
			if !floats.EqualApprox(f.y[k+1], want, 1e-9) {
				t.Fatalf("μ = %v, iteration %d goes on from %v, want %v", mu, k+1, f.y[k+1], want)
			}
		}
		if taken < 5 || taken > 24 || len(res.Values) != 31 {
			t.Errorf("μ = %v: z was taken %d times of 29, and there are %d values", mu, taken, len(res.Values))
		}
	}
}

// Algorithm 3 as printed, from its points: z = (y_ex + βx)/(1 + β), taken where f(z) ≤ f(x) − ‖∇f(x)‖²/(2L).
func TestPrintedByDefinition(t *testing.T) {
	f := newLogCosh()
	l, mu := 4., .1
	res, err := Minimize(Problem{F: f.at, Values: f.values, Dim: len(f.e), L: l, Mu: mu}, PrintedAdaptive,
		Options{Iterations: 60, Window: 4})
	if err != nil {
		t.Fatal(err)
	}
	beta := (1 - math.Sqrt(mu/l)) / (1 + math.Sqrt(mu/l))
	taken, near := 0, 0
	for k := range 59 {
		y, x, points := f.y[2*k], f.y[2*k+1], f.points[k]
		step := combined(1, y, -1/l, f.g[2*k])
		nextY, nextX, value := combined(1+beta, step, -beta, x), step, f.at(step, nil)
		if len(points) > 1 {
			ex := points[2]
			z := combined(1/(1+beta), ex, beta/(1+beta), x)
			fall := floats.Dot(f.g[2*k+1], f.g[2*k+1]) / (2 * l)
			if fx, fz := f.at(x, nil), f.at(z, nil); fz <= fx-fall {
				nextY, nextX, value = ex, z, f.at(ex, nil)
				taken++
			} else if fz <= fx+fall {
				near++
			}
		}
		if !floats.EqualApprox(f.y[2*k+2], nextY, 1e-9) || !floats.EqualApprox(f.y[2*k+3], nextX, 1e-9) ||
			math.Abs(res.Values[k+1]-value) > 1e-14*value {
			t.Fatalf("iteration %d goes on from %v and %v, want %v and %v", k+1, f.y[2*k+2], f.y[2*k+3], nextY, nextX)
		}
	}
	if taken < 5 || near < 1 || len(res.Values) != 61 {
		t.Errorf("RNA's point was taken %d times, and nearly %d times; %d values", taken, near, len(res.Values))
	}
}

// Values and slopes of losses by hand.
func TestLossesByHand(t *testing.T) {
	for _, c := range []struct {
		loss               Loss
		z, y, value, slope float64
	}{
		{Squares, 3, 1, 2, 2}, {Squares, -1, 1, 2, -2},
		{Logistic, 0, 1, math.Ln2, -.5}, {Logistic, math.Log(3), -1, math.Log(4), .75},
		{Logistic, math.Log(3), 1, math.Log(4. / 3), -.25},
	} {
		value, slope := c.loss.both(c.z, c.y)
		if math.Abs(value-c.value) > 1e-15 || math.Abs(slope-c.slope) > 1e-15 ||
			math.Abs(c.loss.value(c.z, c.y)-c.value) > 1e-15 || math.Abs(c.loss.slope(c.z, c.y)-c.slope) > 1e-15 {
			t.Errorf("%v(%g, %g): %g, slope %g", c.loss, c.z, c.y, value, slope)
		}
	}
}

// Fractions and their common multiples, of either sign.
func TestDenominators(t *testing.T) {
	for _, c := range []struct{ v, want float64 }{{.25, 4}, {-.25, 4}, {-3, 1}, {2. / 3, 3}, {0, 1}, {1e300, 0}} {
		if got := denominator(c.v); got != c.want {
			t.Errorf("%g has the denominator %g, want %g", c.v, got, c.want)
		}
	}
	for _, c := range [][3]float64{{4, 6, 12}, {1, 7, 7}, {4, 1, 4}, {5, 0, 0}} {
		if got := multiple(c[0], c[1]); got != c[2] {
			t.Errorf("the multiple of %g and %g is %g, want %g", c[0], c[1], got, c[2])
		}
	}
}

// The larger label is +1: by number if both are numbers, else by name.
func TestLargerLabel(t *testing.T) {
	for text, want := range map[string]float64{
		"10,1\n9,2\n":   1,  // 10 > 9
		"b,1\na,2\n":    1,  // by name
		"9,1\na,2\n":    -1, // a number and a name
		"10,1\n9a,2\n":  -1,
		"9,1\n-a,2\n":   1,
		"-1,1\n-10,2\n": 1,
	} {
		d, err := ReadCSV(strings.NewReader(text), "x.csv", Logistic)
		if err != nil {
			t.Fatal(err)
		}
		if d.Y[0] != want || d.Y[1] != -want {
			t.Errorf("%q: %v, want %v first", text, d.Y, want)
		}
	}
}

// Rows that are padded in memory have the values of the file; files without rows, lists that are not closed, and
// problems without a step are refused.
func TestOddData(t *testing.T) {
	const width = 70
	var text strings.Builder
	for i := range 3 {
		text.WriteString([]string{"a", "b", "a"}[i])
		for j := range width {
			fmt.Fprintf(&text, ",%d", 100*i+j)
		}
		text.WriteByte('\n')
	}
	d, err := ReadCSV(strings.NewReader(text.String()), "x.csv", Logistic)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, row := d.X.Row(i)
		for j := range width {
			if row[j] != float64(100*i+j) {
				t.Fatalf("row %d: %v", i, row)
			}
		}
	}
	for _, row := range []string{"1:2 1:3\n", "2:1 1:3\n"} {
		if _, err := readNIPS(strings.NewReader(row), "x.data", Logistic); err == nil ||
			!strings.Contains(err.Error(), "ascending") {
			t.Errorf("%q: %v", row, err)
		}
	}
	if _, err := readNIPS(strings.NewReader("\n\n"), "x.data", Logistic); err == nil ||
		!strings.Contains(err.Error(), "no rows") {
		t.Errorf("no rows: %v", err)
	}
	const arff = "@relation r\n@attribute x numeric\n@attribute y %s\n@data\n1,a\n2,b\n"
	if _, err := ReadARFF(strings.NewReader(fmt.Sprintf(arff, "{a,b}")), "x.arff", Logistic); err != nil {
		t.Error(err)
	}
	for _, kind := range []string{"{a,b", "a,b}"} {
		if _, err := ReadARFF(strings.NewReader(fmt.Sprintf(arff, kind)), "x.arff", Logistic); err == nil {
			t.Errorf("%s went through", kind)
		}
	}
	x, err := NewDense(2, 2, []float64{0, 0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	zeros := &Risk{X: x, Y: []float64{1, -1}, Loss: Logistic}
	if _, err := MinimizeSum(zeros, SGD, Options{Iterations: 1}); err == nil ||
		!strings.Contains(err.Error(), "rows are zero") {
		t.Errorf("rows of zeros: %v", err)
	}
	data, _ := twins(t, 10, 3, 1)
	if _, err := MinimizeSum(risk(t, data, Logistic, 0), Katyusha, Options{Iterations: 5}); err == nil ||
		!strings.Contains(err.Error(), "regularisation above 0") {
		t.Errorf("Katyusha without regularisation: %v", err)
	}
}
