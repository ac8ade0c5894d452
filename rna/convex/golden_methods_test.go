package convex

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"onlinerna/internal/golden"
	"onlinerna/rna"
)

// grid are small data of n rows without random numbers, dense or sparse.
func grid(t testing.TB, n, d int, sparse bool) *Data {
	t.Helper()
	var values []float64
	var index []int32
	start, y := []int{0}, make([]float64, n)
	for i := range n {
		for j := range d {
			v := float64((i*i+3*i*j+j*j*j)%11)/4 - 1
			if sparse && (i+2*j)%3 > 0 {
				continue
			}
			values, index = append(values, v), append(index, int32(j))
		}
		start = append(start, len(values))
		y[i] = 1 - 2*float64((i*i%7+i)%2)
	}
	x, err := NewDense(n, d, values)
	if sparse {
		x, err = NewSparse(n, d, start, index, values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Data{X: x, Y: y}
}

// smallRisks are risks of dense and sparse rows with either loss.
func smallRisks(t testing.TB) map[string]*Risk {
	all := map[string]*Risk{}
	for _, loss := range []Loss{Logistic, Squares} {
		all["dense "+loss.String()] = risk(t, grid(t, 23, 5, false), loss, 1e-2)
		all["sparse "+loss.String()] = risk(t, grid(t, 37, 9, true), loss, 3e-2)
	}
	return all
}

func inOrder[V any](m map[string]V, f func(name string, v V)) {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f(name, m[name])
	}
}

// curve adds a run.
func curve(s *golden.Script, name string, res Result, err error, digits float64) {
	values := make([]string, len(res.Values))
	for i, v := range res.Values {
		values[i] = golden.Rough(v, digits)
	}
	s.Line(name, "at", res.At, err, len(res.Seconds), strings.Join(values, " "))
	s.Line("   w", golden.Around(res.W[:min(12, len(res.W))], 1, digits))
}

// Values, gradients, constants and optima of risks.
func TestGoldenRisks(t *testing.T) {
	s := &golden.Script{}
	all := smallRisks(t)
	coded, err := integers(t, 600, 64).Normalize()
	if err != nil {
		t.Fatal(err)
	}
	all["coded"] = risk(t, coded, Logistic, .125)
	_, strips := twins(t, 300, 700, .2)
	all["strips"] = risk(t, strips, Squares, .5)
	_, ones := twins(t, 300, 600, .2)
	for k, j := range ones.X.index {
		ones.X.values[k] = .5 + float64(j%3)
	}
	all["strips of one value"] = risk(t, ones, Logistic, .5)
	inOrder(all, func(name string, r *Risk) {
		p := problem(t, r)
		l := p.linear
		s.Line(name, "L", p.L, "mu", p.Mu, "norm", r.X.Norm2(), "rows", r.X.MaxRowNorm(), "blocks",
			fmt.Sprint(l.team.bounds),
			"serial", l.team.serial, "several", l.several(), "codes", l.codes != nil, "strips", l.strip != nil)
		points := make([][]float64, 6)
		for k := range points {
			points[k] = make([]float64, p.Dim)
			for j := range points[k] {
				points[k][j] = float64((j*(k+1))%7-3) / 64
			}
		}
		values, g := make([]float64, 6), make([]float64, p.Dim)
		for _, w := range points {
			f := p.F(w, g)
			s.Line("  ", f, p.F(w, nil), "gradient", floats.Norm(g, 2), g[:5])
		}
		for k := range points {
			clear(values)
			p.Values(values[:k+1], points[:k+1])
			s.Line("   values", values)
		}
		weights := make([]float64, r.X.n)
		for i := range weights {
			weights[i] = float64(i%3 + 1)
		}
		for _, weights := range [][]float64{nil, weights} {
			newProduct(r.X, newTeam(r.X)).apply(g, points[1], weights)
			s.Line("   product", floats.Norm(g, 2), g[:5])
		}
		if p.Dim > 20 {
			return
		}
		best, err := r.Optimum()
		s.Line("   optimum", golden.Rough(best.Value, 1e-12), best.GradNorm < 1e-12, golden.Around(best.W, 1, 1e-9), err)
		step, err := r.newtonStep(points[2], points[1], newTeam(r.X))
		s.Line("   step", golden.Around(step, floats.Norm(step, 2), 1e-8), err)
		s.Line("   conjugate", golden.Around(r.conjugate(points[1], weights, newTeam(r.X)), .1, 1e-7))
		h := r.hessian(weights)
		for j := range 5 {
			s.Line("   hessian", h.At(0, j), h.At(j, j), h.At(1, j))
		}
	})
	// A column without values needs no regularisation; a Hessian close to singular is solved all the same.
	gap, err := NewSparse(3, 3, []int{0, 1, 3, 4}, []int32{0, 0, 2, 2}, []float64{1, 2, 1, 3})
	if err != nil {
		t.Fatal(err)
	}
	holes := risk(t, &Data{X: gap, Y: []float64{1, -1, 1}}, Squares, 0)
	s.Line("conjugate", golden.Around(holes.conjugate([]float64{1, 0, 2}, []float64{1, .5, 1}, newTeam(gap)), 1, 1e-9))
	step, err := holes.newtonStep([]float64{0, 0, 0}, []float64{1, 0, 2}, newTeam(gap))
	s.Line("without a column", golden.Around(step, 1, 1e-9), err)
	for _, e := range []float64{0x1p-20, 0x1p-25, 0x1p-40, 0} {
		near, err := NewDense(2, 2, []float64{1, 1, 1, 1 + e})
		if err != nil {
			t.Fatal(err)
		}
		r := risk(t, &Data{X: near, Y: []float64{1, -1}}, Squares, 0)
		step, err := r.newtonStep([]float64{0, 0}, []float64{1, 1}, newTeam(near))
		s.Line("singular to", e, len(step), err)
	}
	golden.Numbers(t, "risks.txt", s.String())
}

// Every deterministic method on risks and on functions without a linear model.
func TestGoldenMinimize(t *testing.T) {
	s := &golden.Script{}
	problems := map[string]Problem{}
	inOrder(smallRisks(t), func(name string, r *Risk) {
		problems[name] = problem(t, r)
		if name == "dense logistic" {
			p := problems[name]
			p.linear = nil
			problems["separate"] = p
			r.Reg = 0
			problems["without mu"] = problem(t, r)
		}
	})
	coded, err := integers(t, 600, 64).Normalize()
	if err != nil {
		t.Fatal(err)
	}
	problems["coded"] = problem(t, risk(t, coded, Logistic, .125))
	_, strips := twins(t, 300, 700, .2)
	problems["strips"] = problem(t, risk(t, strips, Squares, .5))
	f := newLogCosh()
	problems["at the optimum"] = Problem{F: func(x, grad []float64) float64 {
		clear(grad)
		return 7
	}, Dim: 3}
	problems["gradient lost"] = Problem{F: func(x, grad []float64) float64 {
		if grad != nil {
			if grad[0] = x[0] - 2; x[0] > 1.2 {
				grad[0] = math.NaN()
			}
		}
		return (x[0] - 2) * (x[0] - 2) / 2
	}, Dim: 1, L: 2, Mu: .5}
	problems["log cosh"] = Problem{F: f.at, Dim: len(f.e), L: 4, Mu: .1}
	problems["log cosh, mu 0"] = Problem{F: f.at, Values: f.values, Dim: len(f.e), L: 4}
	problems["log cosh, L unknown"] = Problem{F: f.at, Dim: len(f.e)}
	problems["bowl"] = Problem{F: bowl, Dim: 6, L: 3, Mu: 1e-3}
	problems["bowl, L far too large"] = Problem{F: bowl, Dim: 6, L: 400, Mu: 1e-3}
	problems["bowl, L too small"] = Problem{F: bowl, Dim: 6, L: .125, Mu: 1e-3}
	inOrder(problems, func(name string, p Problem) {
		f, calls, gradients := p.F, 0, 0
		p.F = func(w, grad []float64) float64 {
			if calls++; grad != nil {
				gradients++
			}
			return f(w, grad)
		}
		for _, m := range Deterministic() {
			for _, opt := range []Options{
				{Iterations: 12, Window: 3, Lambda: rna.Set(1e-2)},
				{Iterations: 5, Start: slices.Repeat([]float64{.5}, p.Dim)},
			} {
				if opt.Window == 0 && p.Dim > 20 {
					continue // rounding decides
				}
				res, err := Minimize(p, m, opt)
				digits := 1e-10
				if opt.Window == 0 {
					digits = 1e-8
				}
				curve(s, fmt.Sprint(name, " ", m, " ", opt.Window, " calls ", calls, " ", gradients), res, err, digits)
				calls, gradients = 0, 0
			}
		}
	})
	golden.Numbers(t, "minimize.txt", s.String())
}

// Every method by samples, and its options.
func TestGoldenMinimizeSum(t *testing.T) {
	s := &golden.Script{}
	inOrder(smallRisks(t), func(name string, r *Risk) {
		for _, m := range Stochastic() {
			for _, opt := range []Options{
				{Iterations: 11, Window: 3, Lambda: rna.Set(1e-2), Seed: 5},
				{Iterations: 7, Start: slices.Repeat([]float64{.25}, r.X.d), Lambda: rna.Set(.5)},
				{Iterations: 4},
			} {
				res, err := MinimizeSum(r, m, opt)
				curve(s, fmt.Sprint(name, " ", m, " ", opt.Iterations), res, err, 1e-10)
			}
		}
	})
	golden.Numbers(t, "minimize-sum.txt", s.String())
}

// Mistakes in problems, methods and options, runs that diverge or are stopped, and names.
func TestGoldenMistakes(t *testing.T) {
	s := &golden.Script{}
	p := Problem{F: bowl, Dim: 4, L: 3, Mu: 1e-3}
	r := risk(t, grid(t, 10, 3, false), Logistic, .1)
	add := func(name string, res Result, err error) {
		var diverged *DivergedError
		s.Line(name, errors.As(err, &diverged), err, len(res.Values), res.At)
	}
	for _, m := range []Method{SGD, Offline{LBFGS}, Online{SAGA}, Anderson{NesterovConvex}, Iteration("x")} {
		res, err := Minimize(p, m, Options{Iterations: 2})
		add("minimize", res, err)
	}
	for _, m := range []Method{GD, LBFGS, Offline{GD}, PlainOnline{SGD}} {
		res, err := MinimizeSum(r, m, Options{Iterations: 2})
		add("minimize sum", res, err)
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []Problem{
		{}, {F: bowl}, {F: bowl, Dim: -1}, {F: bowl, Dim: 4, L: -1}, {F: bowl, Dim: 4, L: nan}, {F: bowl, Dim: 4, L: inf},
		{F: bowl, Dim: 4, Mu: -1}, {F: bowl, Dim: 4, Mu: nan}, {F: bowl, Dim: 4, L: 1, Mu: 1.5},
		{F: bowl, Dim: 4, L: 3, Mu: 3},
		{F: bowl, Dim: 4, Mu: 3}, {F: func(w, g []float64) float64 { return nan }, Dim: 1},
	} {
		for _, m := range []Method{GD, BFGS, NesterovStrong, PrintedAdaptive, OptimalAdaptive, Anderson{GD}} {
			res, err := Minimize(c, m, Options{Iterations: 2})
			add(fmt.Sprint(m, c.Dim, c.L, c.Mu), res, err)
		}
	}
	for _, opt := range []Options{
		{Iterations: -1}, {Window: -1}, {Window: rna.MaxColumns + 1, Iterations: 1}, {Window: rna.MaxColumns, Iterations: 1},
		{Start: []float64{1}}, {Lambda: rna.Set(-1)}, {Lambda: rna.Set(nan)}, {Lambda: rna.Set(inf), Iterations: 2},
	} {
		res, err := Minimize(p, Online{GD}, opt)
		add("options", res, err)
		res, err = MinimizeSum(r, Online{SGD}, opt)
		add("  of sums", res, err)
		got, err := opt.withDefaults(4, 7)
		s.Line("  ", got.Iterations, got.Window, got.Lambda.Or(9), len(got.Start), err)
	}
	stop := errors.New("stop")
	for _, m := range []Method{GD, LBFGS, OptimalAdaptive, PrintedAdaptive, PlainOnline{GD}, Online{GD},
		Offline{NesterovStrong}} {
		for _, at := range []int{0, 1, 3} {
			opt := Options{Iterations: 5, Observe: func(p Progress) error {
				s.Line("   observed", p.At, golden.Rough(p.Value, 1e-8), golden.Around(p.W, 1, 1e-7))
				if p.At == at {
					return stop
				}
				return nil
			}}
			res, err := Minimize(p, m, opt)
			add(fmt.Sprint(m, " stopped at ", at), res, err)
		}
	}
	for _, at := range []int{0, 1, 3} {
		res, err := MinimizeSum(r, Offline{SAGA}, Options{Iterations: 5, Observe: func(p Progress) error {
			s.Line("   observed", p.At, golden.Rough(p.Value, 1e-8), golden.Around(p.W, 1, 1e-7))
			if p.At >= at {
				return stop
			}
			return nil
		}})
		add(fmt.Sprint("samples stopped at ", at), res, err)
	}
	cliff := func(w, g []float64) float64 { // falls without end, then has no value
		if g != nil {
			g[0] = -1
		}
		if w[0] > 4 {
			return inf
		}
		return -w[0]
	}
	for _, m := range []Method{GD, NesterovConvex, Offline{GD}, Online{GD}, PlainOnline{GD}, OptimalAdaptive, LBFGS,
		BFGS} {
		res, err := Minimize(Problem{F: cliff, Dim: 1, L: .5}, m, Options{Iterations: 20})
		curve(s, fmt.Sprint("cliff ", m), res, err, 1e-8)
	}
	for _, c := range []*Risk{
		{}, {X: r.X, Y: r.Y[1:]}, {X: r.X, Y: r.Y, Loss: 5}, {X: r.X, Y: r.Y, Reg: -1}, {X: r.X, Y: r.Y, Reg: inf},
		{X: r.X, Y: r.Y, Reg: nan},
		{X: r.X, Y: slices.Repeat([]float64{2}, 10)}, {X: r.X, Y: slices.Repeat([]float64{2}, 10), Loss: Squares},
		{X: r.X, Y: slices.Repeat([]float64{nan}, 10), Loss: Squares}, {X: r.X, Y: slices.Repeat([]float64{inf}, 10),
			Loss: Squares},
	} {
		_, err := c.Problem()
		s.Line("risk", err)
		_, err = c.Optimum()
		s.Line("  optimum", err)
		_, err = MinimizeSum(c, SGD, Options{Iterations: 1})
		s.Line("  sum", err)
		if c.X != nil {
			_, err = NewRisk(&Data{X: c.X, Y: c.Y}, c.Loss)
			s.Line("  new", err)
		}
	}
	equal := *r
	equal.Reg = r.X.MaxRowNorm()
	res, err := MinimizeSum(&equal, SGD, Options{Iterations: 2})
	curve(s, "a regularisation as large as the rows", res, err, 1e-10)
	for _, m := range append(Deterministic(), Stochastic()...) {
		got, err := ParseMethod(m.String())
		s.Line("method", m, got == m, m.iteration(), err)
	}
	_, err = ParseMethod("newton")
	s.Line(err, DefaultIterations, DefaultEpochs, DefaultWindow, DefaultLambda)
	for _, k := range []int{-1, 0, 1, 2, 9} {
		for _, c := range [][2]float64{{.5, 0}, {.5, .25}, {2, 0}, {2, .5}, {2, 2}, {2, 3}, {0, 0}, {-1, 0}, {2, -1},
			{nan, 1}} {
			s.Line("bounds", k, c[:], GradientBound(k, c[0], c[1], 3, .75), NesterovBound(k, c[0], c[1], 3, .75),
				GradientBound(k, c[0], c[1], 3, 0))
		}
	}
	golden.Numbers(t, "mistakes.txt", s.String())
}

// Line searches: the steps tried on functions of one variable, and the one found.
func TestGoldenLineSearches(t *testing.T) {
	s := &golden.Script{}
	nan := math.NaN()
	for _, f := range []struct {
		name string
		at   func(x float64) (value, slope float64)
	}{
		{"parabola", func(x float64) (float64, float64) { return (x - 1) * (x - 1), 2 * (x - 1) }},
		{"far parabola", func(x float64) (float64, float64) { return (x - 40) * (x - 40) / 40, (x - 40) / 20 }},
		{"near parabola", func(x float64) (float64, float64) { return 50 * (x - .01) * (x - .01), 100 * (x - .01) }},
		{"exponential", func(x float64) (float64, float64) { return math.Exp(x) - 3*x, math.Exp(x) - 3 }},
		{"quartic", func(x float64) (float64, float64) { return math.Pow(x-2, 4), 4 * math.Pow(x-2, 3) }},
		{"wave", func(x float64) (float64, float64) { return math.Cos(3*x) - x/2, -3*math.Sin(3*x) - .5 }},
		{"kink", func(x float64) (float64, float64) { return math.Abs(x - .3), math.Copysign(1, x-.3) }},
		{"falls for ever", func(x float64) (float64, float64) { return -x, -1 }},
		{"wall", func(x float64) (float64, float64) {
			if x > .2 {
				return math.Inf(1), nan
			}
			return -x, -1
		}},
		{"NaN", func(x float64) (float64, float64) {
			if x > .7 {
				return nan, nan
			}
			return -x + x*x, -1 + 2*x
		}},
		{"logarithm", func(x float64) (float64, float64) { return x - math.Log(1+x)*2, 1 - 2/(1+x) }},
		{"flat", func(x float64) (float64, float64) { return 1, -1e-9 }},
		{"flat beside", func(x float64) (float64, float64) { return 1 + 1e-17*x*x, -1e-9 + 2e-9*x }},
		{"rises", func(x float64) (float64, float64) { return x, 1 }},
		{"rises behind its slope", func(x float64) (float64, float64) { return x, -1 }},
		{"even", func(x float64) (float64, float64) { return 0, 0 }},
		{"narrow", func(x float64) (float64, float64) {
			d := x - 3
			return -1/(1+d*d) - x/100, 2*d/((1+d*d)*(1+d*d)) - .01
		}},
		{"two wells", func(x float64) (float64, float64) { return x*x*x*x - 3*x*x - x, 4*x*x*x - 6*x - 1 }},
	} {
		for _, first := range []float64{1, .01, 30} {
			l := newLineSearch(func(w, grad []float64) float64 {
				v, slope := f.at(w[0] - 2)
				grad[0] = slope
				s.Line("   tries", golden.Rough(w[0], 1e-8), golden.Rough(v, 1e-7), golden.Rough(slope, 1e-7))
				return v
			}, 1)
			v, slope := f.at(0)
			ok := l.along([]float64{2}, []float64{1}, v, slope, first)
			s.Line(f.name, first, ok)
			if ok {
				s.Line("   best", golden.Rough(l.best.step, 1e-8), golden.Rough(l.best.f, 1e-7), golden.Rough(l.best.w[0], 1e-8))
			}
		}
	}
	for i, values := range [][][2]float64{
		{{-1, -1}, {-12, -1}, {100, 300}, {60, 300}, {-13, -.01}}, {{-1, -1}, {-12, -1}, {100, 300}, {60, 300}, {30, 200},
			{-13, -.01}},
		{{-1, -1}, {-.9, .01}}, {{-1, -1}, {-1, .01}}, {{-1, -1}, {100, 300}, {60, 300}, {-1.5, -.1}},
		{{100, 300}, {-2e-5, 0}},
		{{100, 300}, {-3e-6, 0}, {-.01, .1}}, {{-1, -1}, {-100, 80}, {-50, -1}, {-101, 0}},
		{{-1, -1}, {-12, -1}, {-11, -.95}, {-13, 0}},
		{{-.5, 5}, {-.4, 2}, {-.45, 1}, {-.55, .1}}, {{1, 2}, {.5, -1}, {-.1, -2}, {-.2, -.05}},
		{{1, 2}, {-.1, 2}, {-.12, 1.5}, {-.2, -.05}},
	} {
		calls := 0
		l := newLineSearch(func(w, grad []float64) float64 {
			v := values[min(calls, len(values)-1)]
			calls++
			s.Line("   tries", golden.Rough(w[0], 1e-10))
			grad[0] = v[1]
			return v[0]
		}, 1)
		ok := l.along([]float64{0}, []float64{1}, 0, -1, 1)
		s.Line("script", i, ok)
		if ok {
			s.Line("   best", golden.Rough(l.best.step, 1e-10), l.best.f, l.best.slope)
		}
	}
	for _, c := range [][]probe{
		{{step: 0, f: 1e308, slope: -1}, {step: 1, f: -1e308, slope: 1}},
		{{step: 0, f: 0, slope: -1}, {step: 1, f: -.5, slope: 0}}, {{step: 1, f: -.5, slope: .5}, {step: 0, f: 0,
			slope: -1}},
		{{step: 0, f: 0, slope: -1}, {step: 1, f: -1, slope: -1}}, {{step: 0, f: 0, slope: -1}, {step: 1, f: -5, slope: -8}},
		{{step: 0, f: 0, slope: -1}, {step: 1, f: nan, slope: 1}}, {{step: 1, f: 2, slope: -3}, {step: 3, f: 1, slope: 2}},
		{{step: 0, f: 0, slope: -1}, {step: 1, f: -2. / 3, slope: -1}}, {{step: 2, f: 1, slope: 1}, {step: 2, f: 1,
			slope: 1}},
	} {
		for _, bounds := range [][2]float64{{0, 1}, {.25, .375}, {1.5, 10}} {
			s.Line("cubic", c[0].step, c[0].f, c[0].slope, c[1].step, c[1].f, c[1].slope, bounds[:],
				cubic(&c[0], &c[1], bounds[0], bounds[1]))
		}
	}
	for _, h := range []inverse{&limited{store: 2}, &limited{store: 5}, &full{}} {
		x, to := []float64{1, -2, .5, 3}, make([]float64, 4)
		for k := range 6 {
			step := []float64{1, float64(k%3 - 1), .5, float64(k) / 4}
			change := []float64{2, float64(k%3-1) * 3, .25, float64(k) / 8}
			if k == 2 || k == 4 {
				change = []float64{-1 / float64(k-1), 0, 0, 0}
			}
			h.update(step, change)
			h.apply(to, x)
			s.Line("inverse", k, to)
			h.apply(to, change)
			s.Line("  of the change", to)
		}
	}
	golden.Numbers(t, "searches.txt", s.String())
}
