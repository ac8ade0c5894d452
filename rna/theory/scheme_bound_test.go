package theory

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna"
)

// Proposition poly_iter: y_i − x* = p_i(G)(x_0 − x*) with a p_i of degree i exactly and p_i(1) = 1, and Y = [x_0 X] L
// with columns of L that sum to one.
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
					t.Fatalf("y_%d[%d] = %v, by the polynomial %v, by L %v", i, k, ys[i][k],
						want.AtVec(k)+g.solution[k], y.At(k, i))
				}
			}
			if col := sum(mat.Col(nil, i, s.L(n))); math.Abs(col-1) > 1e-12*size {
				t.Errorf("column %d of L has the sum %v", i, col)
			}
		}
	}
	s := &Scheme{}
	if err := s.Append([]float64{1}, nil); err != nil || s.Len() != 1 {
		t.Errorf("no β: %v", err)
	}
	// The sum of large coefficients is 1 to their rounding, α and β alike.
	for i, c := range [][2][]float64{{{1e6 + 1 + 1e-9}, {-1e6}}, {{-1e6 - 1e-9}, {1e6 + 1}}} {
		s = &Scheme{}
		if err := s.Append(c[0], c[1]); err != nil {
			t.Errorf("large coefficients %d: %v", i, err)
		}
	}
	s = &Scheme{}
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
			res := solve(t, w, rna.Options{Lambda: rna.Set(0)})
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
				got := g.residual(extrapolate(t, w, rna.Options{Lambda: rna.Set(0), Beta: rna.Set(beta)}))
				bound := OptimalBound(n, d, kappa, beta, first)
				worst[c.name] = max(worst[c.name], got/bound)
				if mixed := MixingNorm(beta, kappa) * norm; got > mixed*(1+1e-9)+1e-9*first || got > bound*(1+1e-9) {
					t.Errorf("κ = %v, N = %d, β = %v, %s: residual %v, bounds %v and %v", kappa, n, beta, c.name, got,
						mixed, bound)
				}
			}
		}
	}
	t.Log("largest share of the bound: ", worst)
}

// Online RNA with λ = 0 (proposition online_accel_structure): c_N ≠ 0 until the end, so that its points are a scheme of
// the class, and as soon as there are more residuals than distinct eigenvalues the point is x*.
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
		s, _ := rna.NewHost64(d, 1)
		w := window(t, s, d+1)
		scheme := &Scheme{}
		all := [][]float64{append([]float64(nil), y...)}
		for n := 1; ; n++ {
			x := g.at(y)
			if err := w.PushPair(rna.Slice64(y), rna.Slice64(x)); err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
			res, err := w.Extrapolate(rna.Slice64(y), rna.Options{Lambda: rna.Set(0), Beta: rna.Set(.7)})
			if err != nil || res.Status != rna.OK {
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
