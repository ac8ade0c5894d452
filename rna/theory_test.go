package rna

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// A contractive is g(y) = G(y − x*) + x* with a symmetric 0 ⪯ G ⪯ (1−κ)I in a random basis.
type contractive struct {
	g        *mat.SymDense
	solution []float64
}

func newContractive(rng *rand.Rand, eigenvalues []float64) contractive {
	d := len(eigenvalues)
	q := conditioned(rng, d, d, 1)
	g := mat.NewSymDense(d, nil)
	for k, e := range eigenvalues {
		g.SymRankOne(g, e, q.ColView(k))
	}
	c := contractive{g: g, solution: make([]float64, d)}
	for i := range c.solution {
		c.solution[i] = rng.NormFloat64()
	}
	return c
}

// spectrum draws d eigenvalues in [0, 1−κ], the ends among them.
func spectrum(rng *rand.Rand, d int, kappa float64) []float64 {
	e := make([]float64, d)
	for i := range e {
		e[i] = (1 - kappa) * rng.Float64()
	}
	e[0] = 0
	e[d-1] = 1 - kappa
	return e
}

// at is g(y).
func (c contractive) at(y []float64) []float64 {
	d := len(y)
	x := mat.NewVecDense(d, nil)
	diff := mat.NewVecDense(d, nil)
	diff.SubVec(mat.NewVecDense(d, y), mat.NewVecDense(d, c.solution))
	x.MulVec(c.g, diff)
	x.AddVec(x, mat.NewVecDense(d, c.solution))
	return x.RawVector().Data
}

// residual is ‖(G − I)(y − x*)‖.
func (c contractive) residual(y []float64) float64 {
	sum := 0.0
	for i, x := range c.at(y) {
		sum = math.Hypot(sum, x-y[i])
	}
	return sum
}

func normal(rng *rand.Rand, d int) []float64 {
	v := make([]float64, d)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// nesterov is the scheme y_i = (1+β)x_i − βx_{i−1} of n iterations.
func nesterov(t *testing.T, n int, beta float64) *Scheme {
	t.Helper()
	s := &Scheme{}
	for i := 1; i <= n; i++ {
		alpha, b := make([]float64, i), make([]float64, i)
		alpha[i-1] = 1 + beta
		if i == 1 {
			b[0] = -beta // x_0 is y_0
		} else {
			alpha[i-2] = -beta
		}
		if err := s.Append(alpha, b); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// randomScheme draws the coefficients of n iterations.
func randomScheme(t *testing.T, rng *rand.Rand, n int) *Scheme {
	t.Helper()
	s := &Scheme{}
	for i := 1; i <= n; i++ {
		alpha, beta := normal(rng, i), normal(rng, i)
		total := sum(alpha) + sum(beta)
		alpha[i-1] += 1 - total
		if math.Abs(alpha[i-1]) < 0.2 {
			alpha[i-1]++
			beta[0]--
		}
		if err := s.Append(alpha, beta); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run iterates a scheme of n−1 steps: x_1 … x_n and y_0 … y_{n−1}, where errors e_i are added to x_i.
func run(s *Scheme, g func([]float64) []float64, x0 []float64, n int, errors [][]float64) (xs, ys [][]float64) {
	all := [][]float64{x0}
	for i := range n {
		y := make([]float64, len(x0))
		s.Y(y, all, i)
		x := g(y)
		if errors != nil {
			for k, e := range errors[i] {
				x[k] += e
			}
		}
		all, ys = append(all, x), append(ys, y)
	}
	return all[1:], ys
}

func pairs(t *testing.T, xs, ys [][]float64) *Window {
	t.Helper()
	s, _ := NewHost64(len(xs[0]), 1)
	w := window(t, s, len(xs))
	for i := range xs {
		if err := w.PushPair(Slice64(ys[i]), Slice64(xs[i])); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Proposition poly_iter: y_i − x* = p_i(G)(x_0 − x*) with a p_i of degree i exactly and p_i(1) = 1, and Y = [x_0 X] L with
// columns of L that sum to one.
func TestSchemePolynomial(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 21))
	for range 20 {
		const n, d = 5, 8
		s := randomScheme(t, rng, n)
		g := newContractive(rng, spectrum(rng, d, .1))
		x0 := normal(rng, d)
		xs, ys := run(s, g.at, x0, n+1, nil)
		x := mat.NewDense(d, n+1, nil)
		x.SetCol(0, x0)
		for i := range n {
			x.SetCol(i+1, xs[i])
		}
		var y mat.Dense
		y.Mul(x, s.L(n))
		for i := range n + 1 {
			p := s.Polynomial(i)
			size := 0.0
			for _, v := range p {
				size += math.Abs(v)
			}
			if len(p) != i+1 || p[i] == 0 || math.Abs(sum(p)-1) > 1e-12*size {
				t.Fatalf("p_%d = %v", i, p)
			}
			power, want := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
			power.SubVec(mat.NewVecDense(d, x0), mat.NewVecDense(d, g.solution))
			for _, a := range p {
				want.AddScaledVec(want, a, power)
				power.MulVec(g.g, power)
			}
			for k := range d {
				if !near(ys[i][k], want.AtVec(k)+g.solution[k], 1e-10*size) || !near(y.At(k, i), ys[i][k], 1e-10*size) {
					t.Fatalf("y_%d[%d] = %v, by the polynomial %v, by L %v", i, k, ys[i][k], want.AtVec(k)+g.solution[k], y.At(k, i))
				}
			}
			if col := sum(mat.Col(nil, i, s.L(n))); math.Abs(col-1) > 1e-12*size {
				t.Errorf("column %d of L has the sum %v", i, col)
			}
		}
	}
	s := &Scheme{}
	for _, bad := range [][2][]float64{{{1, 0}, nil}, {{.5}, nil}, {{0}, {1}}, {{1}, {0, 0}}, {{math.NaN()}, nil}} {
		if err := s.Append(bad[0], bad[1]); err == nil || s.Len() != 0 {
			t.Errorf("%v went through", bad)
		}
	}
}

// Theorem optimal_rate for any scheme of the class, Nesterov's and random ones: RNA finds the same least ‖p(G)r_0‖ in
// each, and its residual keeps to the bound.
func TestOptimalBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 21))
	worst := map[string]float64{}
	for range 15 {
		const d = 30
		kappa := []float64{.01, .1, .4}[rng.IntN(3)]
		n := 2 + rng.IntN(6)
		g := newContractive(rng, spectrum(rng, d, kappa))
		x0 := normal(rng, d)
		first := g.residual(x0)
		root := math.Sqrt(kappa)
		least := 0.0
		for _, c := range []struct {
			name   string
			scheme *Scheme
		}{
			{"gradient", nesterov(t, n, 0)},
			{"Nesterov", nesterov(t, n, (1-root)/(1+root))},
			{"random", randomScheme(t, rng, n)},
		} {
			xs, ys := run(c.scheme, g.at, x0, n, nil)
			w := pairs(t, xs, ys)
			res := solve(t, w, Options{Lambda: Set(0)})
			rc := make([]float64, d)
			for i, a := range res.C {
				for k := range rc {
					rc[k] += a * (xs[i][k] - ys[i][k])
				}
			}
			norm := 0.0
			for _, v := range rc {
				norm = math.Hypot(norm, v)
			}
			if c.name == "gradient" {
				least = norm
			}
			if !(math.Abs(norm-least) <= 1e-9*first) {
				t.Errorf("κ = %v, N = %d, %s: ‖Rc‖ = %v, of gradient steps %v", kappa, n, c.name, norm, least)
			}
			for _, beta := range []float64{1, .5, 0, -1} {
				got := g.residual(extrapolate(t, w, Options{Lambda: Set(0), Beta: Set(beta)}))
				bound := OptimalBound(n, d, kappa, beta, first)
				worst[c.name] = max(worst[c.name], got/bound)
				if mixed := MixingNorm(beta, kappa) * norm; got > mixed*(1+1e-9)+1e-9*first || got > bound*(1+1e-9) {
					t.Errorf("κ = %v, N = %d, β = %v, %s: residual %v, bounds %v and %v", kappa, n, beta, c.name, got, mixed, bound)
				}
			}
		}
	}
	t.Log("largest share of the bound: ", worst)
}

// Online RNA with λ = 0 (proposition online_accel_structure): c_N ≠ 0 until the end, so that its points are a scheme of the class, and
// as soon as there are more residuals than distinct eigenvalues the point is x*.
func TestFiniteTermination(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 21))
	for _, distinct := range []int{1, 2, 3, 5} {
		const d = 7
		values := make([]float64, d)
		for i := range values {
			values[i] = .9 * float64(i%distinct+1) / float64(distinct+1)
		}
		g := newContractive(rng, values)
		y := normal(rng, d)
		first := g.residual(y)
		s, _ := NewHost64(d, 1)
		w := window(t, s, d+1)
		scheme := &Scheme{}
		all := [][]float64{append([]float64(nil), y...)}
		for n := 1; ; n++ {
			x := g.at(y)
			if err := w.PushPair(Slice64(y), Slice64(x)); err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
			res, err := w.Extrapolate(Slice64(y), Options{Lambda: Set(0), Beta: Set(.7)})
			if err != nil || res.Status != OK {
				t.Fatal(err, res.Err())
			}
			if n > distinct {
				if n != distinct+1 || g.residual(y) > 1e-9*first {
					t.Errorf("%d eigenvalues: residual %g of %g after %d steps", distinct, g.residual(y), first, n)
				}
				if bound := OptimalBound(d+1, d, .1, .7, first); bound != 0 {
					t.Errorf("bound %v with more residuals than dimensions", bound)
				}
				break
			}
			if math.Abs(res.C[n-1]) < 1e-6 || g.residual(y) < 1e-9*first {
				t.Errorf("%d eigenvalues, step %d: c_N = %v, residual %g", distinct, n, res.C[n-1], g.residual(y))
			}
			if bound := OptimalBound(n, d, 1-values[distinct-1], .7, first); g.residual(y) > bound*(1+1e-9) {
				t.Errorf("%d eigenvalues, step %d: residual %v exceeds %v", distinct, n, g.residual(y), bound)
			}
			alpha, beta := make([]float64, n), make([]float64, n) // y⁺ = Σ c_j (y_{j−1} + β(x_j − y_{j−1}))
			for j, c := range res.C {
				alpha[j], beta[j] = .7*c, .3*c
			}
			if err := scheme.Append(alpha, beta); err != nil {
				t.Fatal(err)
			}
			same := make([]float64, d)
			scheme.Y(same, all, n)
			for k := range same {
				if !near(same[k], y[k], 1e-8) {
					t.Errorf("step %d: y⁺ = %v, as a scheme %v", n, y, same)
					break
				}
			}
		}
	}
}

// spectralNorm is ‖m‖₂ of columns.
func spectralNorm(columns [][]float64) float64 {
	m := mat.NewDense(len(columns[0]), len(columns), nil)
	for j, c := range columns {
		m.SetCol(j, c)
	}
	var svd mat.SVD
	svd.Factorize(m, mat.SVDNone)
	return svd.Values(nil)[0]
}

// differencesOf are a_i − b_i.
func differencesOf(a, b [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		out[i] = make([]float64, len(a[i]))
		for k := range out[i] {
			out[i][k] = a[i][k] - b[i][k]
		}
	}
	return out
}

// perturb runs a scheme without and with errors, and returns ‖E‖ and ‖P‖.
func perturb(s *Scheme, g contractive, x0 []float64, n int, es [][]float64) (xs, ys [][]float64, errors, perturbation float64) {
	ex, ey := run(s, g.at, x0, n, nil)
	xs, ys = run(s, g.at, x0, n, es)
	return xs, ys, spectralNorm(es), spectralNorm(differencesOf(differencesOf(xs, ys), differencesOf(ex, ey)))
}

func noise(rng *rand.Rand, n, d int, size float64) [][]float64 {
	es := make([][]float64, n)
	for i := range es {
		es[i] = normal(rng, d)
		for k := range es[i] {
			es[i][k] *= size
		}
	}
	return es
}

// Proposition explicit_formula_perturbation, and the counter-example to its print.
func TestPerturbationBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 21))
	worst := 0.0
	for k := range 60 {
		d, n := 1+rng.IntN(12), 1+rng.IntN(7)
		kappa := rng.Float64()
		values := make([]float64, d)
		for i := range values {
			values[i] = (1 - kappa) * rng.Float64()
		}
		g := newContractive(rng, values)
		s := nesterov(t, n, float64(k%3)/2)
		if k%4 == 3 {
			s = randomScheme(t, rng, n)
		}
		es := noise(rng, n, d, 1)
		if k%2 == 1 { // errors that pull against each other
			for i := range es {
				for j := range es[i] {
					es[i][j] = es[0][j] * math.Pow(-1, float64(i))
				}
			}
		}
		_, _, e, p := perturb(s, g, normal(rng, d), n, es)
		bound := PerturbationBound(s.Norms(n-1), kappa, e)
		worst = max(worst, p/bound)
		if p > bound*(1+1e-9) {
			t.Errorf("N = %d, κ = %v: ‖P‖ = %v exceeds %v", n, kappa, p, bound)
		}
	}
	t.Logf("largest share of the bound: %.2f", worst)
	g := contractive{g: mat.NewSymDense(1, []float64{0}), solution: []float64{0}}
	s := nesterov(t, 2, 0)
	_, _, e, p := perturb(s, g, []float64{1}, 2, [][]float64{{1}, {-1}})
	if printed := e; !near(p, math.Sqrt(5), 1e-12) || !near(printed, math.Sqrt2, 1e-12) || PerturbationBound(s.Norms(1), 1, e) < p {
		t.Errorf("‖E‖ = %v, ‖P‖ = %v", e, p)
	}
}

// Theorem convergence_perturbation on chains with errors of any size, and the counter-example to its print.
func TestPerturbedBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 21))
	worst := 0.0
	for range 12 {
		d, n := 5+rng.IntN(20), 2+rng.IntN(5)
		kappa := []float64{.02, .2, .7}[rng.IntN(3)]
		g := newContractive(rng, spectrum(rng, d, kappa))
		x0 := normal(rng, d)
		s := nesterov(t, n, 0)
		xs, ys, e, p := perturb(s, g, x0, n, noise(rng, n, d, math.Pow(10, -6*rng.Float64())))
		w := pairs(t, xs, ys)
		first := g.residual(x0)
		for _, tau := range []float64{0, .1, 1, 10} {
			for _, beta := range []float64{1, -.5} {
				got := g.residual(extrapolate(t, w, Options{Tau: Set(tau), Beta: Set(beta)}))
				bound := PerturbedBound(n, kappa, tau, beta, first, e, p)
				worst = max(worst, got/bound)
				if !(got <= bound*(1+1e-6)) {
					t.Errorf("κ = %v, N = %d, τ = %v, β = %v: %v exceeds %v", kappa, n, tau, beta, got, bound)
				}
			}
		}
	}
	t.Logf("largest share of the bound: %.2f", worst)
	// As printed, ‖E‖ counts (1−κ) times only.
	const kappa = .999
	g := contractive{g: mat.NewSymDense(2, nil), solution: []float64{0, 0}}
	xs, ys, e, p := perturb(nesterov(t, 2, 0), g, []float64{1, 0}, 2, [][]float64{{0, 1}, {0, 1}})
	got := g.residual(extrapolate(t, pairs(t, xs, ys), Options{Tau: Set(0)}))
	printed := MixingNorm(1, kappa) * (ConstrainedBound(2, kappa, 0, 1, 1)/MixingNorm(1, kappa) + (p+e)/math.Sqrt2)
	if !(got > printed) || !(got <= PerturbedBound(2, kappa, 0, 1, 1, e, p)) {
		t.Errorf("%v, as printed at most %v", got, printed)
	}
}

// Proposition convergence_stoch_gradient: the mean over runs with Gaussian noise, for CNA. While noise is small a
// large τ is better, where it dominates the average is.
func TestStochasticBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 21))
	const d, n, l = 30, 6, 4.0
	const kappa = .05
	g := newContractive(rng, spectrum(rng, d, kappa))
	x0 := normal(rng, d)
	first := l * g.residual(x0) // ∇f = L(I − G)(x − x*)
	s := nesterov(t, n, 0)
	for _, sigma := range []float64{1e-4, 1e-2, 1, 100} {
		means := map[float64]float64{}
		const runs = 100
		for range runs {
			xs, ys := run(s, g.at, x0, n, noise(rng, n, d, sigma/math.Sqrt(d)))
			w := pairs(t, xs, ys)
			for _, tau := range []float64{0, 1, 20} {
				means[tau] += l * g.residual(extrapolate(t, w, Options{Tau: Set(tau)})) / runs
			}
		}
		for tau, mean := range means {
			bound := StochasticBound(n, kappa, tau, l, sigma, first)
			t.Logf("σ = %g, τ = %g: mean ‖∇f(y⁺)‖ = %.3g, bound %.3g", sigma, tau, mean, bound)
			if !(mean <= bound) {
				t.Errorf("σ = %g, τ = %g: mean ‖∇f(y⁺)‖ = %g exceeds %g", sigma, tau, mean, bound)
			}
		}
		if small := sigma < .1; sigma != 1 && small != (means[20] < means[0]) {
			t.Errorf("σ = %g: mean gradients by τ are %v", sigma, means)
		}
	}
}

// The same for the noise of sampling, SGD's and SAGA's, on least squares, with σ² the largest variance along the path.
func TestStochasticBoundOfSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 21))
	const samples, d, n = 60, 5, 5
	a := make([][]float64, samples)
	hessian := mat.NewSymDense(d, nil)
	for i := range a {
		a[i] = normal(rng, d)
		hessian.SymRankOne(hessian, 1./samples, mat.NewVecDense(d, a[i]))
	}
	var eig mat.EigenSym
	eig.Factorize(hessian, false)
	values := eig.Values(nil)
	l, kappa := values[d-1], values[0]/values[d-1]
	truth := normal(rng, d)
	targets := make([]float64, samples)
	for i := range targets {
		for k := range d {
			targets[i] += a[i][k] * truth[k]
		}
		targets[i] += .3 * rng.NormFloat64()
	}
	one := func(i int, w []float64) float64 { // the slope of sample i
		z := -targets[i]
		for k := range d {
			z += a[i][k] * w[k]
		}
		return z
	}
	gradient := func(w []float64) []float64 {
		g := make([]float64, d)
		for i := range samples {
			for k := range d {
				g[k] += one(i, w) * a[i][k] / samples
			}
		}
		return g
	}
	norm := func(v []float64) (s float64) {
		for _, x := range v {
			s = math.Hypot(s, x)
		}
		return s
	}
	for _, saga := range []bool{false, true} {
		const runs, batch = 200, 10
		var sigma2, mean, start float64
		x0 := normal(rng, d)
		start = norm(gradient(x0))
		for range runs {
			table, average := make([]float64, samples), make([]float64, d)
			if saga { // a table near the optimum, as SAGA's after some epochs
				near := append([]float64(nil), truth...)
				for i := range table {
					table[i] = one(i, near)
					for k := range d {
						average[k] += table[i] * a[i][k] / samples
					}
				}
			}
			y := append([]float64(nil), x0...)
			var xs, ys [][]float64
			for range n {
				full := gradient(y)
				variance := 0.0 // E‖e‖² at y, exactly
				for i := range samples {
					for k := range d {
						e := ((one(i, y)-table[i])*a[i][k] + average[k] - full[k]) / l
						variance += e * e / (samples * batch)
					}
				}
				sigma2 = max(sigma2, variance)
				x := make([]float64, d)
				for k := range d {
					x[k] = y[k] - average[k]/l
				}
				picked := map[int]float64{}
				for range batch {
					i := rng.IntN(samples)
					change := one(i, y) - table[i]
					picked[i] = change
					for k := range d {
						x[k] -= change * a[i][k] / (l * batch)
					}
				}
				for i, change := range picked {
					if !saga {
						break
					}
					table[i] += change
					for k := range d {
						average[k] += change * a[i][k] / samples
					}
				}
				xs, ys = append(xs, x), append(ys, y)
				y = x
			}
			mean += norm(gradient(extrapolate(t, pairs(t, xs, ys), Options{Tau: Set(1)}))) / runs
		}
		bound := StochasticBound(n, kappa, 1, l, math.Sqrt(sigma2), start)
		t.Logf("SAGA %v: σ = %.3g, mean ‖∇f(y⁺)‖ = %.3g, bound %.3g", saga, math.Sqrt(sigma2), mean, bound)
		if !(mean <= bound) {
			t.Errorf("SAGA %v: mean ‖∇f(y⁺)‖ = %g exceeds %g", saga, mean, bound)
		}
	}
}

// A smooth is f(x) = Σ a_j z_j²/2 + b(√(1 + z_j²) − 1), z = Qᵀx, whose Hessian lies between min a and max a + b, with the
// Lipschitz constant 0.86b, and whose minimum is at 0.
type smooth struct {
	q    *mat.Dense
	a    []float64
	b    float64
	l, m float64
}

func newSmooth(rng *rand.Rand, d int, mu, b float64) smooth {
	s := smooth{q: conditioned(rng, d, d, 1), b: b, m: .8587 * b}
	for j := range d {
		s.a = append(s.a, mu+(1-mu)*float64(j)/float64(d-1))
	}
	s.l = s.a[d-1] + b
	return s
}

// gradient is ∇f(x), or that of the quadratic that is f's at 0.
func (s smooth) gradient(x []float64, linear bool) []float64 {
	d := len(x)
	z := mat.NewVecDense(d, nil)
	z.MulVec(s.q.T(), mat.NewVecDense(d, x))
	for j := range d {
		v := z.AtVec(j)
		slope := v
		if !linear {
			slope = v / math.Sqrt(1+v*v)
		}
		z.SetVec(j, s.a[j]*v+s.b*slope)
	}
	g := mat.NewVecDense(d, nil)
	g.MulVec(s.q, z)
	return g.RawVector().Data
}

// kappa is that of the Hessian at 0.
func (s smooth) kappa() float64 { return (s.a[0] + s.b) / s.l }

func norm2(v []float64) (n float64) {
	for _, x := range v {
		n = math.Hypot(n, x)
	}
	return n
}

func scaled(v []float64, size float64) []float64 {
	n := norm2(v)
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = size * x / n
	}
	return out
}

// chain runs gradient descent with the step 1/L, N steps.
func (s smooth) chain(x0 []float64, n int) (xs, ys [][]float64) {
	y := x0
	for range n {
		g := s.gradient(y, false)
		x := make([]float64, len(y))
		for k := range x {
			x[k] = y[k] - g[k]/s.l
		}
		xs, ys = append(xs, x), append(ys, y)
		y = x
	}
	return xs, ys
}

// residual is ‖(G − I)y‖ for the linearised step.
func (s smooth) residual(y []float64) float64 { return norm2(s.gradient(y, true)) / s.l }

// Propositions conv_nonlinear and bound_function_smooth_gradient: for a smooth f far from and near to its minimum.
func TestNonlinearBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 21))
	worst := map[string]float64{}
	for range 5 {
		d, n := 4+rng.IntN(10), 2+rng.IntN(5)
		f := newSmooth(rng, d, .05, 1)
		for _, distance := range []float64{1e3, 10, 1, .1, 1e-2, 1e-4} {
			xs, ys := f.chain(scaled(normal(rng, d), distance), n)
			for _, y := range ys {
				g, h := f.gradient(y, false), f.gradient(y, true)
				e := make([]float64, d)
				for k := range e {
					e[k] = (g[k] - h[k]) / f.l
				}
				bound := LinearisationError(f.l, f.m, norm2(y))
				worst["linearisation"] = max(worst["linearisation"], norm2(e)/bound)
				if !(norm2(e) <= bound*(1+1e-9)+1e-15*norm2(y)) {
					t.Errorf("‖y‖ = %g: the linearised step is off by %g, more than %g", norm2(y), norm2(e), bound)
				}
			}
			w := pairs(t, xs, ys)
			for _, tau := range []float64{0, 1, 30} {
				got := f.residual(extrapolate(t, w, Options{Tau: Set(tau)}))
				bound := NonlinearBound(n, f.kappa(), tau, 1, f.residual(ys[0]), LinearisationGamma(n, f.kappa(), 1, f.l, f.m), distance, 2)
				worst["extrapolation"] = max(worst["extrapolation"], got/bound)
				if !(got <= bound*(1+1e-6)) {
					t.Errorf("D = %g, N = %d, τ = %g: %g exceeds %g", distance, n, tau, got, bound)
				}
			}
		}
	}
	t.Log("largest shares of the bounds: ", worst)
}

// Proposition asymptotic_optimal_rate: with λ = D^r, 0 < r < 2, and with τ = D^−s, 0 < s < 1, the rate is that of a linear
// method as D → 0. With r beyond the range coefficients follow errors; the bound on them no longer falls.
func TestAsymptoticBound(t *testing.T) {
	tau, lambda, err := AsymptoticOrders(2)
	if err != nil || tau != 1 || lambda != 2 {
		t.Fatal(tau, lambda, err)
	}
	if _, _, err := AsymptoticOrders(1); err == nil {
		t.Error("errors of order 1 went through")
	}
	rng := rand.New(rand.NewPCG(9, 21))
	f := newSmooth(rng, 12, .02, .3)
	const n = 5
	at := normal(rng, 12)
	for _, share := range []float64{.25, .5, .75} {
		for _, distance := range []float64{1, 1e-2, 1e-4, 1e-6, 1e-8} {
			x0 := scaled(at, distance)
			xs, ys := f.chain(x0, n)
			w := pairs(t, xs, ys)
			limit := AsymptoticBound(n, f.kappa(), 1, f.residual(x0))
			byLambda := f.residual(extrapolate(t, w, Options{Lambda: Set(math.Pow(distance, share*lambda))}))
			byTau := f.residual(extrapolate(t, w, Options{Tau: Set(math.Pow(distance, -share*tau))}))
			t.Logf("D = %g, share %g of the range: %.3f and %.3f of the limit", distance, share, byLambda/limit, byTau/limit)
			if distance <= 1e-8 && !(byLambda <= limit && byTau <= limit) {
				t.Errorf("D = %g, share %g of the range: %g by λ and %g by τ exceed %g", distance, share, byLambda, byTau, limit)
			}
			// The acceleration term falls to the limit and errors vanish beside it.
			if distance <= 1e-8 && share <= .5 {
				bound := NonlinearBound(n, f.kappa(), math.Pow(distance, -share*tau), 1, f.residual(x0), LinearisationGamma(n, f.kappa(), 1, f.l, f.m), distance, 2)
				if !(bound <= 1.1*limit) || !(byTau <= bound) {
					t.Errorf("D = %g: bound %g, its limit %g, got %g", distance, bound, limit, byTau)
				}
			}
		}
	}
}

func TestNormBoundValue(t *testing.T) {
	if got := NormBound(2, 1); !near(got, 1, 1e-15) {
		t.Errorf("‖c‖ ≤ %v for N = 2 and λ = 1", got)
	}
	for _, v := range []float64{ConstrainedBound(0, .5, 1, 1, 1), ConstrainedBound(3, 2, 1, 1, 1), OptimalBound(2, 5, 0, 1, 1)} {
		if !math.IsNaN(v) {
			t.Errorf("a bound of %v from constants that can't be", v)
		}
	}
	if !near(MixingNorm(1, .3), .7, 1e-15) || !near(MixingNorm(-1, .3), 2, 1e-15) || !near(MixingNorm(3, .3), 2, 1e-15) {
		t.Error("norms of the mixing")
	}
}
