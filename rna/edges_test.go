package rna

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna/internal/dd"
	"onlinerna/rna/kernel"
)

// One residual has one coefficient by each way of the solve.
func TestAndersonOfOne(t *testing.T) {
	s, _ := NewHost64(3, 1)
	w := window(t, s, 2)
	push(t, w, []float64{1, 2, 3}, []float64{2, 2, 5})
	spectrum, err := w.QR(0)
	if err != nil {
		t.Fatal(err)
	}
	res := spectrum.Solve(0)
	if res.Status != OK || len(res.C) != 1 || res.C[0] != 1 || res.Rank != 1 || res.Condition != 1 || res.NormC != 1 ||
		res.Tau != 0 || res.Accuracy != 5*epsilon {
		t.Errorf("%+v", res)
	}
}

// Residuals whose differences round keep their products to all digits: x − y with x near 1 and y near 2⁻⁶⁰.
func TestExactProductsOfRoundedDifferences(t *testing.T) {
	const d = 3
	s, _ := NewHost64(d, 1)
	w := window(t, s, 2)
	// r_1 and r_2 differ by 2⁻⁶⁰ in each element, below the rounding of either.
	for k := range 2 {
		y := make(Slice64, d)
		for i := range y {
			y[i] = math.Ldexp(float64(1+k*(i+1)), -60)
		}
		if err := w.PushPair(y, Slice64{1, 1, 1}); err != nil {
			t.Fatal(err)
		}
	}
	spectrum, err := w.QR(0)
	if err != nil {
		t.Fatal(err)
	}
	if res := spectrum.Solve(1e-9); res.Status != OK || math.Abs(res.C[0]-.5) > 1e-6 {
		t.Errorf("%+v", res)
	}
	res := solve(t, w, Options{Lambda: Set(1e-20)})
	if want := 4*epsilon + 8*dd.Epsilon*res.Condition; res.Condition < 1e19 || res.Accuracy != want {
		t.Errorf("accuracy %v, want %v", res.Accuracy, want)
	}
	g, err := w.exact(w.columns)
	if err != nil {
		t.Fatal(err)
	}
	// Σ (1 − a_i)(1 − b_i), without Σ a_i b_i: a = 2⁻⁶⁰ (1, 1, 1), b = 2⁻⁶⁰ (2, 3, 4).
	for i, row := range [][]float64{{6}, {12, 18}} {
		for j, low := range row {
			if got := g.At(i, j).Sub(dd.Of(d)).Float(); math.Abs(got/math.Ldexp(-low, -60)-1) > 1e-12 {
				t.Errorf("product %d, %d is %v beyond %d, want %v", i, j, got, d, math.Ldexp(-low, -60))
			}
		}
	}
}

// Exact products of vectors in several groups of rows: sums of integers.
func TestExactProductsOfGroups(t *testing.T) {
	const d = 40_000
	s, _ := NewHost64(d, 2)
	w := window(t, s, 2)
	want := make([]float64, 3)
	x, y := make(Slice64, d), make(Slice64, d)
	for i := range x {
		x[i], y[i] = float64(i%7-2), float64(i%11-4)
		want[0] += x[i] * x[i]
		want[1] += x[i] * y[i]
		want[2] += y[i] * y[i]
	}
	for _, v := range []Slice64{x, y} {
		if err := w.PushResidual(make(Slice64, d), v); err != nil {
			t.Fatal(err)
		}
	}
	g, err := w.exact(w.columns)
	if err != nil {
		t.Fatal(err)
	}
	if got := []float64{g.At(0, 0).Float(), g.At(1, 0).Float(), g.At(1, 1).Float()}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The largest element of a difference is found wherever it is: in each of a block's runs, and in the last block.
func TestMaxAbsEverywhere(t *testing.T) {
	const d = blockLen + kernel.Run + 3
	spaces(t, d, func(t *testing.T, s Space) {
		for _, at := range []int{0, kernel.Run - 1, kernel.Run, blockLen - 1, blockLen, d - 1} {
			var vs [2]Vector
			for k, v := range []float64{2, -1} {
				x := make(Slice64, d)
				x[at] = v
				var err error
				if vs[k], err = s.New(); err != nil {
					t.Fatal(err)
				}
				if most, err := s.Store(vs[k], x); err != nil || most != math.Abs(v) {
					t.Fatal(most, err)
				}
			}
			if most, err := s.MaxAbs(Residual{X: vs[0], Y: vs[1]}); err != nil || most != 3 {
				t.Errorf("element %d: %v, %v", at, most, err)
			}
			row := []float64{0, 0}
			with := []Residual{{X: vs[1]}, {X: vs[0]}}
			if err := s.GramRow(row, with[1], with); err != nil || row[0] != -2 || row[1] != 4 {
				t.Errorf("element %d: products %v, %v", at, row, err)
			}
			if err := s.GramRow(nil, with[0], nil); err != nil {
				t.Errorf("no products: %v", err)
			}
			for _, v := range vs {
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// Factors of any number of rows agree with the Gram matrix, at the ends of parts.
func TestRowsOfFactors(t *testing.T) {
	const n = 2
	span := foldRows * 32
	for _, d := range []int{foldRows - 1, foldRows, foldRows + 1, span - 1, span, span + 1, 2*span - 1, 2 * span} {
		rng := rand.New(rand.NewPCG(uint64(d), 1))
		s, _ := NewHost64(d, 2)
		w := window(t, s, n)
		for range n + 1 {
			x := make(Slice64, d)
			for i := range x {
				x[i] = rng.NormFloat64()
			}
			push(t, w, x)
		}
		spectrum, err := w.QR(0)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := spectrum.Solve(1e-3).C, w.Spectrum(0).Solve(1e-3).C; relativeError(a, b) > 1e-12 {
			t.Errorf("%d rows: %v by QR, %v by products", d, a, b)
		}
	}
}

// halves is one of two processes, each of which stores a part of each vector, from an element on: vectors are whole
// here, and Part cuts.
type halves struct {
	Space
	own  Space // nil without a part
	at   int
	from int
	meet *meeting
}

type meeting struct {
	sync.Mutex
	all   sync.Cond
	parts [2][]float64
	out   [][]float64 // of the last round that is over
	err   error
	came  int
	round int
}

func (h *halves) Own() Space { return h.own }

func (h *halves) Part(v Vector) (Vector, error) {
	part, err := h.own.New()
	if err != nil {
		return nil, err
	}
	x := make(Slice64, h.own.Dim())
	if err := v.ReadAt64(x, h.from); err != nil {
		return nil, err
	}
	_, err = h.own.Store(part, x)
	return part, err
}

func (h *halves) Gather(own []float64, failed error) ([][]float64, error) {
	m := h.meet
	m.Lock()
	defer m.Unlock()
	m.parts[h.at], m.err = append([]float64(nil), own...), errors.Join(m.err, failed)
	if m.came++; m.came == 2 {
		m.came, m.round, m.out = 0, m.round+1, [][]float64{m.parts[0], m.parts[1]}
		m.all.Broadcast()
	} else {
		for round := m.round; round == m.round; {
			m.all.Wait()
		}
	}
	return [][]float64{slices.Clone(m.out[0]), slices.Clone(m.out[1])}, m.err
}

// Two processes with halves of each vector, or with all and nothing, solve as one, by QR and by exact products.
func TestDividedWindow(t *testing.T) {
	for _, cut := range []int{200, 400} {
		divided(t, cut)
	}
}

// divided has the first of two processes store the elements before cut.
func divided(t *testing.T, cut int) {
	t.Helper()
	const d, n = 400, 8
	vs := contraction(d, n+1, 3)
	one, _ := NewHost64(d, 1)
	w := window(t, one, n)
	push(t, w, vs...)
	whole, err := w.QR(0)
	if err != nil {
		t.Fatal(err)
	}
	meet := &meeting{}
	meet.all.L = meet
	var got [2][]Result
	var work sync.WaitGroup
	for at := range got {
		full, _ := NewHost64(d, 1)
		part := &halves{Space: full, at: at, from: at * cut, meet: meet}
		if k := []int{cut, d - cut}[at]; k > 0 {
			part.own, _ = NewHost64(k, 1)
		}
		w := window(t, part, n)
		push(t, w, vs...)
		work.Go(func() {
			s, err := w.QR(0)
			if err != nil {
				t.Error(err)
				return
			}
			exact, err := w.Solve(Options{Lambda: Set(1e-13)})
			if err != nil {
				t.Error(err)
			}
			got[at] = []Result{s.Solve(0), s.Solve(1e-6), exact}
			var rs []Residual
			for _, c := range w.columns {
				rs = append(rs, c.residual())
			}
			gram, err := Gram(w.Space(), rs)
			if err != nil || !mat.EqualApprox(gram, w.Gram(0), 1e-12) {
				t.Errorf("process %d: products %v, want %v; %v", at, mat.Formatted(gram), mat.Formatted(w.Gram(0)), err)
			}
		})
	}
	work.Wait()
	exact := solve(t, w, Options{Lambda: Set(1e-13)})
	for at, list := range got {
		if len(list) != 3 {
			t.Fatalf("process %d has %d results", at, len(list))
		}
		for k, want := range []Result{whole.Solve(0), whole.Solve(1e-6), exact} {
			if e := relativeError(list[k].C, want.C); e > 1e-9 || list[k].Status != want.Status ||
				math.Abs(list[k].Norm/want.Norm-1) > 1e-12 {
				t.Errorf("process %d, solve %d: %v, want %v (%g)", at, k, list[k].C, want.C, e)
			}
		}
	}
}

// A point whose residual is a hundred times larger ends an excursion, whatever may still be spent: plain iteration goes
// on from the point before.
func TestSolveRefusesFarPoints(t *testing.T) {
	var points []SolveProgress
	g := func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = v - (v-1)*math.Pow(.6, float64(i))
		}
		if len(points) == 12 {
			dst[0] += 1e3
		}
		return nil
	}
	x := make([]float64, 20)
	sol, err := Solve(context.Background(), g, x,
		SolveOptions{Progress: func(p SolveProgress) { points = append(points, p) }})
	if err != nil || !sol.Converged || sol.Refused != 1 {
		t.Fatalf("%+v, %v", sol, err)
	}
	if far, next := points[12], points[13]; !far.Accelerated || far.Residual < 999 || next.Accelerated ||
		!(next.Residual < points[11].Residual) {
		t.Errorf("%+v, then %+v", far, next)
	}
}

// TestSolveDefaults: tolerances by the width of elements; the window holds 2 residuals at least, and no more than there
// are elements.
func TestSolveDefaults(t *testing.T) {
	for _, c := range []struct {
		space             func(dim, workers int) (Space, error)
		dim, window, want int
		tolerance         float64
	}{{NewHost64, 1, 0, 2, 1e-10}, {NewHost32, 1, 9, 2, 1e-5}, {NewHost32, 5, 0, 5, 1e-5}, {NewHost64, 50, 0, 30, 1e-10},
		{NewHost64, 50, 1, 2, 1e-10}, {NewHost64, 50, 40, 40, 1e-10}} {
		space, err := c.space(c.dim, 1)
		if err != nil {
			t.Fatal(err)
		}
		s := &solver{space: space, opt: SolveOptions{Window: c.window}}
		if err := s.begin(); err != nil || s.window.Cap() != c.want || s.opt.Tolerance != c.tolerance {
			t.Errorf("%+v: a window of %d, tolerance %v, %v", c, s.window.Cap(), s.opt.Tolerance, err)
		}
	}
}

// Without an extrapolated point, an excursion goes on from the newest x. A retreat is half of the plain step.
func TestSolveGoesOn(t *testing.T) {
	s := judged(t, 3) // y = e_i, x = 2 e_i
	s.away, s.accept = 1, func() bool { return false }
	if err := s.choose(); err != nil || s.y.(Slice64)[2] != 2 || s.y.(Slice64)[0] != 0 {
		t.Errorf("%v, %v", s.y, err)
	}
	for range 2 { // each time from a new base
		s.settle(1)
		if err := s.retreat(); err != nil || s.y.(Slice64)[2] != 1.5 {
			t.Errorf("%v, %v", s.y, err)
		}
	}
	if err := s.retreat(); err != nil || s.y.(Slice64)[2] != 1.25 {
		t.Errorf("%v, %v", s.y, err)
	}
}

// A solve gives back all vectors of its space, which are open files here, also where g fails.
func TestSolveClosesVectors(t *testing.T) {
	const links = "/proc/self/fd"
	if _, err := os.Stat(links); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	space, err := NewFile64(dir, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	open := func() (n int) {
		list, err := os.ReadDir(links)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if to, err := os.Readlink(filepath.Join(links, f.Name())); err == nil && strings.HasPrefix(to, dir) {
				n++
			}
		}
		return n
	}
	for _, fails := range []int{0, 5} {
		calls, most := 0, 0
		dst, x := make(Slice64, 3), Slice64{3, 2, 1}
		s, err := SolveIn(context.Background(), space, func(to, at Point) error {
			most = max(most, open())
			if calls++; calls == fails {
				return context.Canceled
			}
			for i, v := range at.(Slice64) {
				to.(Slice64)[i] = math.Sin(v) * float64(i+1) / 3
			}
			return nil
		}, dst, x, SolveOptions{MaxEvaluations: 20})
		if err != nil || s.Evaluations < 10 || most < 4 || open() != 0 {
			t.Errorf("%+v, %v: of %d vectors %d stay open", s, err, most, open())
		}
	}
}

// SolveIn refuses each argument that is missing.
func TestSolveInArguments(t *testing.T) {
	s, _ := NewHost64(2, 1)
	g := func(dst, x Point) error { return errors.New("not called") }
	a, b := make(Slice64, 2), make(Slice64, 2)
	for i := range 6 {
		space, f, dst, x := s, g, Point(a), Point(b)
		switch i {
		case 0:
			space = nil
		case 1:
			f = nil
		case 2:
			dst = nil
		case 3:
			x = nil
		case 4:
			dst = make(Slice64, 3)
		case 5:
			x = make(Slice64, 1)
		}
		if sol, err := SolveIn(context.Background(), space, f, dst, x, SolveOptions{}); err == nil || sol != nil {
			t.Errorf("argument %d: %v", i, err)
		}
	}
	if err := (Options{Beta: Set(math.Inf(-1))}).check(); err == nil {
		t.Error("β = −∞ went through")
	}
	if err := (Options{Beta: Set(math.Inf(1))}).check(); err == nil {
		t.Error("β = ∞ went through")
	}
}

// The grid of a search begins at a tenth of the least eigenvalue over the largest, but at 1e-12 at least, and is
// geometric. Accuracies are those of the documentation.
func TestGridAndAccuracyByHand(t *testing.T) {
	for _, c := range []struct{ least, first float64 }{{.25, .025}, {1e-14, 1e-12}, {0, 1e-12}} {
		s := Factor(mat.NewSymDense(2, []float64{c.least, 0, 0, 1}))
		grid := s.Lambdas()
		if math.Abs(grid[0]/c.first-1) > 1e-12 || grid[5] != 10 {
			t.Errorf("least eigenvalue %g: grid %v", c.least, grid)
		}
		for i := 1; i < 5; i++ {
			if math.Abs(grid[i]*grid[i]/(grid[i-1]*grid[i+1])-1) > 1e-12 {
				t.Errorf("least eigenvalue %g: grid %v", c.least, grid)
			}
		}
	}
	res := Factor(mat.NewSymDense(4, []float64{.25, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1})).Solve(.25)
	if want := 2 * epsilon * (4 + 2 + 2.5); res.Condition != 2.5 || res.Accuracy != want || res.Rank != 4 {
		t.Errorf("condition %v, accuracy %v, want %v, rank %d", res.Condition, res.Accuracy, want, res.Rank)
	}
	// Eigenvalues up to 16·ε·N are rounding.
	for _, c := range []struct {
		least float64
		rank  int
	}{{30 * epsilon, 1}, {34 * epsilon, 2}} {
		if res := Factor(mat.NewSymDense(2, []float64{c.least, 0, 0, 1})).Solve(1); res.Rank != c.rank {
			t.Errorf("least eigenvalue %g: rank %d", c.least, res.Rank)
		}
	}
	space, _ := NewHost64(4, 1)
	w := window(t, space, 4)
	for i := range 4 {
		r := make(Slice64, 4)
		if r[i] = 1; i == 0 {
			r[i] = .5
		}
		if err := w.PushResidual(make(Slice64, 4), r); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.QR(0)
	if err != nil {
		t.Fatal(err)
	}
	if res := s.Solve(.25); math.Abs(res.Accuracy/(epsilon*4*(4+math.Sqrt(2.5)))-1) > 1e-12 {
		t.Errorf("accuracy of a QR %v", res.Accuracy)
	}
}

// TestForgetAbove removes residuals longer than the bound, but for the newest, and keeps the products of the others.
func TestForgetAbove(t *testing.T) {
	space, err := NewHost64(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWindow(space, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Slice64{{3, 4}, {6, 8}, {0, 2}, {1e200, 0}, {30, 40}} {
		if err := w.PushResidual(Slice64{0, 0}, r); err != nil {
			t.Fatal(err)
		}
	}
	w.forgetAbove(5)
	if g := w.Gram(0); w.Len() != 3 || g.At(0, 0) != 25 || g.At(0, 1) != 8 || g.At(1, 2) != 80 || g.At(2, 2) != 2500 {
		t.Errorf("%d residuals with products %v", w.Len(), g)
	}
	if p := w.predict([]float64{2, -1, .5}); math.Abs(p-math.Hypot(21, 26)) > 1e-12 { // (6+15, 8−2+20)
		t.Errorf("the residual of a combination is %v", p)
	}
}
