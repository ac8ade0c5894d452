package rna

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// constructors are the constructors of all spaces.
func constructors(t *testing.T) map[string]func(dim, workers int) (Space, error) {
	dir := t.TempDir()
	return map[string]func(int, int) (Space, error){
		"float32":       NewHost32,
		"float64":       NewHost64,
		"float32 files": func(dim, workers int) (Space, error) { return NewFile32(dir, dim, workers) },
		"float64 files": func(dim, workers int) (Space, error) { return NewFile64(dir, dim, workers) },
	}
}

// spaces runs a test in every space.
func spaces(t *testing.T, dim int, test func(t *testing.T, s Space)) {
	t.Helper()
	for name, make := range constructors(t) {
		t.Run(name, func(t *testing.T) {
			s, err := make(dim, 2)
			if err != nil {
				t.Fatal(err)
			}
			test(t, s)
		})
	}
}

func window(t *testing.T, s Space, n int) *Window {
	t.Helper()
	w, err := NewWindow(s, n)
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

func push(t *testing.T, w *Window, vs ...[]float64) {
	t.Helper()
	for _, v := range vs {
		if err := w.Push(Slice64(v)); err != nil {
			t.Fatal(err)
		}
	}
}

// contraction returns the iterates y_0, g(y_0), … of a linear contraction with noise, rounded to
// float32.
func contraction(d, n int, seed uint64) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	vs := make([][]float64, n)
	for k := range vs {
		vs[k] = make([]float64, d)
		for i := range d {
			if k == 0 {
				vs[k][i] = rng.NormFloat64()
			} else {
				vs[k][i] = vs[k-1][i]*(.2+.7*float64(i)/float64(d)) + .01*rng.NormFloat64()
			}
			vs[k][i] = float64(float32(vs[k][i]))
		}
	}
	return vs
}

func solve(t *testing.T, w *Window, opt Options) Result {
	t.Helper()
	res, err := w.Solve(opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func extrapolate(t *testing.T, w *Window, opt Options) []float64 {
	t.Helper()
	dst := make(Slice64, w.Space().Dim())
	res, err := w.Extrapolate(dst, opt)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != OK {
		t.Fatal(res.Err())
	}
	return dst
}

func sameBits(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// y_0 = 0, x = 1, 3, 3 has the residuals 1, 2, 0; a window of two at λ = 1.
func TestTrajectoryByHand(t *testing.T) {
	spaces(t, 1, func(t *testing.T, s Space) {
		w := window(t, s, 2)
		dst := Slice64{-1}
		if res, err := w.Extrapolate(dst, Options{}); err != nil || res.Status != TooFew || dst[0] != -1 {
			t.Fatalf("empty window: %v, %v, wrote %v", res.Status, err, dst[0])
		}
		push(t, w, []float64{0})
		if res := solve(t, w, Options{}); res.Status != TooFew {
			t.Fatalf("y_0 alone gives %v", res.Status)
		}
		for _, step := range []struct {
			x     float64
			c     []float64
			gram  []float64
			betas [3]float64 // y⁺ at β = 0, 1/2, 1
		}{
			{1, []float64{1}, []float64{1}, [3]float64{0, .5, 1}},
			{3, []float64{7. / 11, 4. / 11}, []float64{1, 2, 4}, [3]float64{4. / 11, 23. / 22, 19. / 11}},
			{3, []float64{1. / 3, 2. / 3}, []float64{4, 0, 0}, [3]float64{7. / 3, 8. / 3, 3}},
		} {
			push(t, w, []float64{step.x})
			res := solve(t, w, Options{Lambda: Set(1)})
			for i, c := range step.c {
				if !near(res.C[i], c, 1e-15) {
					t.Errorf("x = %v: c = %v, want %v", step.x, res.C, step.c)
				}
			}
			gram := w.Gram(0)
			for k, i := 0, 0; i < w.Len(); i++ {
				for j := range i + 1 {
					if gram.At(i, j) != step.gram[k] {
						t.Errorf("x = %v: Gram matrix %v, want the lower triangle %v", step.x, gram, step.gram)
					}
					k++
				}
			}
			for i, beta := range []float64{0, .5, 1} {
				got := extrapolate(t, w, Options{Lambda: Set(1), Beta: Set(beta)})
				if !near(got[0], step.betas[i], 1e-7) {
					t.Errorf("x = %v, β = %v: y⁺ = %v, want %v", step.x, beta, got[0], step.betas[i])
				}
			}
		}
		if w.Len() != 2 || w.Cap() != 2 || w.Vectors() != 3 {
			t.Errorf("window of %d residuals holds %d in %d vectors", w.Cap(), w.Len(), w.Vectors())
		}
	})
}

// After many pushes a window equals a fresh one that saw the last N + 1 vectors.
func TestRing(t *testing.T) {
	vs := contraction(3*blockLen+5, 12, 1)
	spaces(t, len(vs[0]), func(t *testing.T, s Space) {
		for _, n := range []int{1, 2, 5} {
			old, fresh := window(t, s, n), window(t, s, n)
			push(t, old, vs...)
			push(t, fresh, vs[len(vs)-n-1:]...)
			sameBits(t, "Gram matrix", old.Gram(0).RawSymmetric().Data, fresh.Gram(0).RawSymmetric().Data)
			sameBits(t, "y⁺", extrapolate(t, old, Options{}), extrapolate(t, fresh, Options{}))
			if got := old.Vectors() + len(old.free); got != n+1 {
				t.Errorf("a chain of %d residuals took %d vectors, want %d", n, got, n+1)
			}
		}
	})
}

// A chain, pairs, and a chain that is broken and taken up again hold the same residuals.
func TestModesAgree(t *testing.T) {
	const n = 4
	vs := contraction(blockLen+3, n+4, 2)
	spaces(t, len(vs[0]), func(t *testing.T, s Space) {
		chain, pairs, broken := window(t, s, n), window(t, s, n), window(t, s, n)
		push(t, chain, vs...)
		for k := 1; k < len(vs); k++ {
			if err := pairs.PushPair(Slice64(vs[k-1]), Slice64(vs[k])); err != nil {
				t.Fatal(err)
			}
			broken.Break()
			push(t, broken, vs[k-1], vs[k])
		}
		if got := pairs.Vectors() + len(pairs.free); got != 2*n {
			t.Errorf("%d pairs took %d vectors, want %d", n, got, 2*n)
		}
		for _, beta := range []float64{0, .3, 1, 2} {
			opt := Options{Lambda: Set(1e-6), Beta: Set(beta)}
			want := extrapolate(t, chain, opt)
			for _, w := range []*Window{pairs, broken} {
				sameBits(t, "Gram matrix", w.Gram(0).RawSymmetric().Data, chain.Gram(0).RawSymmetric().Data)
				got := extrapolate(t, w, opt)
				for i := range got {
					if !near(got[i], want[i], 1e-5) || (beta == 0 || beta == 1) && got[i] != want[i] {
						t.Fatalf("β = %v: y⁺[%d] = %v, want %v", beta, i, got[i], want[i])
					}
				}
			}
		}
		// A pair leaves its x as the end of a chain.
		next := contraction(len(vs[0]), 1, 3)[0]
		push(t, pairs, next)
		push(t, chain, next)
		sameBits(t, "Gram matrix", pairs.Gram(0).RawSymmetric().Data, chain.Gram(0).RawSymmetric().Data)
	})
}

// β = 1 gives X c and β = 0 gives Y c; a pushed residual gives Y c + β R c.
func TestCombination(t *testing.T) {
	vs := contraction(100, 5, 4)
	d := len(vs[0])
	s, _ := NewHost64(d, 1)
	chain, stored := window(t, s, 4), window(t, s, 4)
	push(t, chain, vs...)
	for k := 1; k < len(vs); k++ {
		r := make([]float64, d)
		for i := range r {
			r[i] = vs[k][i] - vs[k-1][i]
		}
		if err := stored.PushResidual(Slice64(vs[k-1]), Slice64(r)); err != nil {
			t.Fatal(err)
		}
	}
	sameBits(t, "Gram matrix", stored.Gram(0).RawSymmetric().Data, chain.Gram(0).RawSymmetric().Data)
	for _, beta := range []float64{0, .5, 1, -1} {
		opt := Options{Lambda: Set(1e-4), Beta: Set(beta)}
		c := solve(t, chain, opt).C
		a, b := extrapolate(t, chain, opt), extrapolate(t, stored, opt)
		for i := range d {
			want, size := 0., 0.
			for k := range c {
				want += c[k] * (vs[k][i] + beta*(vs[k+1][i]-vs[k][i]))
				size += math.Abs(c[k])
			}
			if !near(a[i], want, 1e-14*size) || !near(b[i], want, 1e-14*size) {
				t.Fatalf("β = %v: y⁺[%d] = %v and %v, want %v", beta, i, a[i], b[i], want)
			}
		}
	}
	if err := stored.PushResidual(Slice64(vs[0]), Slice64(vs[1])); err != nil {
		t.Fatal(err)
	}
	if stored.tail != nil {
		t.Error("a pushed residual left a chain open")
	}
}

func TestAverageAndNewest(t *testing.T) {
	s, _ := NewHost64(1, 1)
	w := window(t, s, 4)
	push(t, w, []float64{100}, []float64{1}, []float64{2}, []float64{4}, []float64{8})
	dst := make(Slice64, 1)
	for k, want := range map[int]float64{1: 8, 2: 6, 3: 14. / 3, 4: 15. / 4} {
		if err := w.Average(dst, k); err != nil || !near(dst[0], want, 1e-15) {
			t.Errorf("average of %d is %v, %v, want %v", k, dst[0], err, want)
		}
		if got := extrapolate(t, w, Options{Lambda: Set(math.Inf(1)), Newest: k}); !near(got[0], want, 1e-15) {
			t.Errorf("λ = ∞ over %d gives %v, want %v", k, got[0], want)
		}
	}
	dst[0] = -1
	for _, k := range []int{0, -1, 5} {
		if err := w.Average(dst, k); err == nil || dst[0] != -1 {
			t.Errorf("average of %d of 4: error %v, wrote %v", k, err, dst[0])
		}
	}
	// Residuals 2 and 4 alone.
	if c := solve(t, w, Options{Lambda: Set(1), Newest: 2}).C; !near(c[0], 7./11, 1e-15) {
		t.Errorf("the newest two give c = %v", c)
	}
	if c := solve(t, w, Options{Lambda: Set(1), Newest: 9}).C; len(c) != 4 {
		t.Errorf("the newest nine of four give %d coefficients", len(c))
	}
}

func TestRefusedPush(t *testing.T) {
	vs := contraction(3*blockLen, 6, 5)
	spaces(t, len(vs[0]), func(t *testing.T, s Space) {
		for _, held := range []int{2, 4, 6} { // below, at and past capacity
			w := window(t, s, 3)
			push(t, w, vs[:held]...)
			gram, state := w.Gram(0).RawSymmetric().Data, w.State()
			refused := 0
			for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				bad := slices.Clone(vs[0])
				bad[2*blockLen+7] = value
				bad[len(bad)-1] = math.NaN()
				for _, err := range []error{
					w.Push(Slice64(bad)),
					w.PushPair(Slice64(bad), Slice64(vs[1])),
					w.PushPair(Slice64(vs[1]), Slice64(bad)),
					w.PushResidual(Slice64(vs[1]), Slice64(bad)),
				} {
					var nf *NonFiniteError
					if !errors.As(err, &nf) || nf.Offset != 2*blockLen+7 || !(nf.Value == value || math.IsNaN(value)) {
						t.Fatalf("push of %v gives %v", value, err)
					}
					refused++
				}
			}
			for _, err := range []error{
				w.Push(make(Slice64, 3)), w.Push(nil), w.PushPair(nil, Slice64(vs[0])),
				w.PushPair(Slice64(vs[0]), make(Slice32, 1)), w.PushResidual(Slice64(vs[0]), nil),
			} {
				if err == nil {
					t.Error("push of a vector of another length went through")
				}
			}
			if w.Refused() != refused {
				t.Errorf("%d pushes refused, counted %d", refused, w.Refused())
			}
			sameBits(t, "Gram matrix", w.Gram(0).RawSymmetric().Data, gram)
			if now := w.State(); !slices.Equal(now.Columns, state.Columns) || now.Tail != state.Tail {
				t.Errorf("refused pushes changed %+v to %+v", state, now)
			}
			// The chain goes on as if nothing had been.
			untouched := window(t, s, 3)
			push(t, untouched, vs[:held]...)
			push(t, untouched, vs[1])
			push(t, w, vs[1])
			sameBits(t, "y⁺", extrapolate(t, w, Options{}), extrapolate(t, untouched, Options{}))
		}
	})
}

// Residuals of 1e200 and 1e-200 have squares beyond float64.
func TestMagnitudes(t *testing.T) {
	vs := contraction(200, 5, 6)
	s, _ := NewHost64(len(vs[0]), 1)
	plain := window(t, s, 4)
	push(t, plain, vs...)
	want := solve(t, plain, Options{})
	for _, exp := range []int{-1000, -660, 660, 1000} {
		w := window(t, s, 4)
		for _, v := range vs {
			u := make([]float64, len(v))
			for i := range u {
				u[i] = math.Ldexp(v[i], exp)
			}
			push(t, w, u)
		}
		res := solve(t, w, Options{})
		if res.Status != OK {
			t.Fatalf("2^%d: %v", exp, res.Err())
		}
		for i := range want.C {
			if !near(res.C[i], want.C[i], 1e-9) {
				t.Errorf("2^%d: c = %v, want %v", exp, res.C, want.C)
			}
			if !near(math.Ldexp(res.ResidualNorms[i], -exp), want.ResidualNorms[i], 1e-9) {
				t.Errorf("2^%d: residual norms %v", exp, res.ResidualNorms)
			}
		}
		if !near(math.Ldexp(res.Norm, -exp), want.Norm, 1e-9) {
			t.Errorf("2^%d: ‖R‖ = %v", exp, res.Norm)
		}
		y, yWant := extrapolate(t, w, Options{}), extrapolate(t, plain, Options{})
		for i := range y {
			if !near(math.Ldexp(y[i], -exp), yWant[i], 1e-9) {
				t.Fatalf("2^%d: y⁺[%d] = %v", exp, i, y[i])
			}
		}
	}
	// A residual of 1 beside one of 1e-200: the small one carries the weight.
	w := window(t, s, 2)
	a, b, c := make([]float64, 200), make([]float64, 200), make([]float64, 200)
	b[0], c[0], c[1] = 1, 1, 1e-200
	push(t, w, a, b, c)
	if res := solve(t, w, Options{}); res.Status != OK || !near(res.C[1], 1, 1e-8) {
		t.Errorf("residuals 1 and 1e-200: %v, c = %v", res.Status, res.C)
	}
	// A difference beyond float64.
	a[0], b[0] = -1.5e308, 1.5e308
	for held := range 3 { // below capacity and at it
		w := window(t, s, 2)
		for range held {
			push(t, w, c)
		}
		push(t, w, a)
		if err := w.PushPair(Slice64(a), Slice64(b)); !errors.Is(err, ErrOverflow) || w.Len() != held {
			t.Errorf("a pair with a difference of 3e308: %v, %d residuals of %d", err, w.Len(), held)
		}
		if held == 0 {
			continue
		}
		if err := w.Push(Slice64(b)); !errors.Is(err, ErrOverflow) || w.Len() != held {
			t.Errorf("an iterate 3e308 further on: %v, %d residuals of %d", err, w.Len(), held)
		}
	}
}

// No result but OK touches the destination.
func TestRefusedExtrapolation(t *testing.T) {
	s, _ := NewHost32(2, 1)
	big := float64(math.MaxFloat32)
	for _, tt := range []struct {
		name string
		vs   [][]float64
		opt  Options
		want Status
	}{
		{"fixed point", [][]float64{{1, 1}, {1, 1}, {1, 1}}, Options{}, ZeroResidual},
		{"lambda below rounding", [][]float64{{0, 0}, {0, 0}, {0, 0}}, Options{Lambda: Set(0)}, ZeroResidual},
		{"lambda and tau", [][]float64{{0, 0}, {1, 0}}, Options{Lambda: Set(0), Tau: Set(1)}, Invalid},
		{"tau", [][]float64{{0, 0}, {1, 0}}, Options{Tau: Set(-1)}, Invalid},
		{"norm", [][]float64{{0, 0}, {1, 0}, {1.9, 0}}, Options{MaxNorm: 2}, CoefficientsTooLarge},
		{"overflow", [][]float64{{0, 0}, {big, 0}, {.5 * big, .5 * big}}, Options{Beta: Set(30)}, Overflow},
		{"lambda", [][]float64{{0, 0}, {1, 0}}, Options{Lambda: Set(-1)}, Invalid},
		{"beta", [][]float64{{0, 0}, {1, 0}}, Options{Beta: Set(math.Inf(1))}, Invalid},
		{"newest", [][]float64{{0, 0}, {1, 0}}, Options{Newest: -1}, Invalid},
		{"limit", [][]float64{{0, 0}, {1, 0}}, Options{MaxNorm: math.NaN()}, Invalid},
	} {
		w := window(t, s, 3)
		push(t, w, tt.vs...)
		dst := Slice32{-1, -2}
		res, err := w.Extrapolate(dst, tt.opt)
		if err != nil || res.Status != tt.want || res.C != nil || dst[0] != -1 || dst[1] != -2 {
			t.Errorf("%s: %v, %v (%s), wrote %v", tt.name, err, res.Status, res.Detail, dst)
		}
		if tt.want == CoefficientsTooLarge && res.NormC <= 2 {
			t.Errorf("%s: ‖c‖ = %v", tt.name, res.NormC)
		}
	}
	w := window(t, s, 3)
	push(t, w, []float64{0, 0}, []float64{1, 2})
	for _, dst := range []Sink{nil, make(Slice32, 3)} {
		if _, err := w.Extrapolate(dst, Options{}); err == nil {
			t.Error("a destination of another length went through")
		}
	}
	if err := w.Combine(make(Slice32, 2), []float64{1, 2}, 1); err == nil {
		t.Error("more coefficients than columns went through")
	}
}

func TestNewWindowArguments(t *testing.T) {
	s, _ := NewHost32(2, 1)
	for _, n := range []int{-1, 0, MaxColumns + 1} {
		if _, err := NewWindow(s, n); err == nil {
			t.Errorf("window of %d residuals went through", n)
		}
	}
	if _, err := NewWindow(nil, 1); err == nil {
		t.Error("window without a space went through")
	}
	if _, err := NewHost32(0, 1); err == nil {
		t.Error("space without elements went through")
	}
}

func TestResetAndClose(t *testing.T) {
	vs := contraction(10, 5, 7)
	s, _ := NewHost64(10, 1)
	w, fresh := window(t, s, 3), window(t, s, 3)
	push(t, w, vs...)
	w.Reset()
	if w.Len() != 0 || w.Vectors() != 0 || solve(t, w, Options{}).Status != TooFew {
		t.Fatalf("reset left %d residuals and %d vectors", w.Len(), w.Vectors())
	}
	push(t, w, vs[1:4]...)
	push(t, fresh, vs[1:4]...)
	sameBits(t, "y⁺", extrapolate(t, w, Options{}), extrapolate(t, fresh, Options{}))
	if err := w.Close(); err != nil || len(w.free) != 0 || w.Len() != 0 {
		t.Errorf("close: %v, %d vectors kept", err, len(w.free))
	}
}
