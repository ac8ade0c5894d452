package theory

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna"
)

// A contractive is g(y) = G(y − x*) + x* with a symmetric 0 ⪯ G ⪯ (1−κ)I in a random basis.
type contractive struct {
	g        *mat.SymDense
	solution []float64
}

func newContractive(rng *rand.Rand, eigenvalues []float64) contractive {
	d := len(eigenvalues)
	q := orthogonal(rng, d)
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

func pairs(t *testing.T, xs, ys [][]float64) *rna.Window {
	t.Helper()
	s, _ := rna.NewHost64(len(xs[0]), 1)
	w := window(t, s, len(xs))
	for i := range xs {
		if err := w.PushPair(rna.Slice64(ys[i]), rna.Slice64(xs[i])); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func window(t *testing.T, s rna.Space, n int) *rna.Window {
	t.Helper()
	w, err := rna.NewWindow(s, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol*max(1, math.Abs(b)) }

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func push(t *testing.T, w *rna.Window, vs ...[]float64) {
	t.Helper()
	for _, v := range vs {
		if err := w.Push(rna.Slice64(v)); err != nil {
			t.Fatal(err)
		}
	}
}

func extrapolate(t *testing.T, w *rna.Window, opt rna.Options) []float64 {
	t.Helper()
	dst := make(rna.Slice64, w.Space().Dim())
	res, err := w.Extrapolate(dst, opt)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != rna.OK {
		t.Fatal(res.Err())
	}
	return dst
}

// linear is the map g(y) = a∘y + b of a separable linear contraction.
type linear struct{ a, b []float64 }

func (g linear) at(y []float64) []float64 {
	x := make([]float64, len(y))
	for i := range y {
		x[i] = float64(g.a[i]*y[i]) + g.b[i]
	}
	return x
}

func (g linear) residual(y []float64) (norm float64) {
	for i, x := range g.at(y) {
		norm = math.Hypot(norm, x-y[i])
	}
	return norm
}

func solve(t *testing.T, w *rna.Window, opt rna.Options) rna.Result {
	t.Helper()
	res, err := w.Solve(opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// orthogonal is a random basis of d dimensions.
func orthogonal(rng *rand.Rand, d int) *mat.Dense {
	var qr mat.QR
	qr.Factorize(mat.NewDense(d, d, normal(rng, d*d)))
	var q mat.Dense
	qr.QTo(&q)
	return &q
}
