package rna

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/golden"
)

// The golden files hold the results of every public method, step by step, on small problems. With ONLINERNA_WRITE=1 the
// tests write them.

// path is a chain of iterates whose residuals and products are exact.
var path = []Slice64{
	{4, -3, 2, 1, 0}, {2, -2, 1, 1, 1}, {1, -1, 1, .5, 1.5}, {.5, -1, .75, .5, 1.75}, {.25, -.75, .75, .25, 2},
	{.25, -.625, .5, .25, 2.25},
}

// transcript writes the operations on a window.
type transcript struct {
	golden.Script
	w *Window
}

// result adds a result. Digits that rounding may change are left out.
func (s *transcript) result(name string, r Result) {
	if r.Status != OK {
		s.Line(name, r.Status, r.NormC, r.Lambda, r.Rank, len(r.ResidualNorms), r.Refused, r.Detail, r.Err(), r.C == nil)
		return
	}
	s.Line(name, golden.Around(r.C, max(r.NormC, .1), r.Accuracy), "norm", golden.Rough(r.NormC, r.Accuracy), "lambda",
		golden.Rough(r.Lambda, r.Accuracy), "tau", golden.Rough(r.Tau, r.Accuracy), "condition",
		golden.Rough(min(r.Condition, 1e25), r.Condition*epsilon), "accuracy", golden.Rough(r.Accuracy, r.Condition*epsilon),
		"rank", r.Rank, "R", r.Norm, len(r.ResidualNorms))
}

// state adds the columns, products and vectors.
func (s *transcript) state() {
	st := s.w.State()
	s.Line("  len", s.w.Len(), "of", s.w.Cap(), "vectors", s.w.Vectors(), "pushes", st.Pushes, "refused", s.w.Refused(),
		"free", len(s.w.free), "tail", st.Tail, "columns", fmt.Sprint(st.Columns), "gram", st.Gram)
	for i := range st.Vectors {
		v := make(Slice64, st.Dim)
		err := s.w.Vector(i).ReadAt64(v, 0)
		s.Line("   ", i, []float64(v), err)
	}
}

// points adds the points that a window of float64 gives.
func (s *transcript) points() {
	if s.w.Space().Bits() == 32 {
		return
	}
	dst := make(Slice64, s.w.Space().Dim())
	err := s.w.Latest(dst)
	s.Line("  latest", []float64(dst), err)
	for k := range s.w.Len() + 2 {
		clear(dst)
		err := s.w.Average(dst, k)
		s.Line("  average of", k, []float64(dst), err)
	}
	for _, beta := range []float64{0, .5, 1} {
		clear(dst)
		_, err := s.w.Extrapolate(dst, Options{Lambda: Set(.125), Beta: Set(beta)})
		s.Line("  beta", beta, []float64(dst), err)
	}
	if g := s.w.Gram(0); g != nil {
		s.Line("  gram", g.RawSymmetric().Data)
	}
	if g := s.w.Gram(2); g != nil {
		s.Line("  newest", g.RawSymmetric().Data)
	}
}

// windowScript drives a window of three residuals.
func windowScript(t *testing.T, space Space) string {
	w := window(t, space, 3)
	s := &transcript{w: w}
	nan, inf := math.NaN(), math.Inf(1)
	s.points()
	s.result("empty", solve(t, w, Options{}))
	big := float64(math.MaxFloat32)
	if space.Bits() == 64 {
		big = math.MaxFloat64
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"push y0", func() error { return w.Push(path[0]) }},
		{"push x1", func() error { return w.Push(path[1]) }},
		{"push a short vector", func() error { return w.Push(path[1][:4]) }},
		{"push nil", func() error { return w.Push(nil) }},
		{"push NaN", func() error { return w.Push(Slice64{0, 0, nan, 0, inf}) }},
		{"push float32", func() error { return w.Push(Slice32{1, -1, 1, .5, 1.5}) }},
		{"push a remote vector", func() error { return w.Push(&remote{v: path[3]}) }},
		{"push a remote float64 vector", func() error { return w.Push(&remote64{remote{v: path[4]}}) }},
		{"push -Inf into a full window", func() error { return w.Push(Slice64{0, 0, 0, 0, -inf}) }},
		{"push a vector that fails", func() error { return w.Push(&remote{v: path[3], failAt: 1}) }},
		{"push a vector that fails the second time", func() error { return w.Push(&remote{v: path[3], failAt: 2}) }},
		{"pair of a first that fails", func() error { return w.PushPair(&remote{v: path[3], failAt: 1}, path[4]) }},
		{"pair of a second that fails", func() error { return w.PushPair(path[3], &remote{v: path[4], failAt: 1}) }},
		{"pair", func() error { return w.PushPair(path[4], path[5]) }},
		{"pair of a short first", func() error { return w.PushPair(path[4][:3], path[5]) }},
		{"pair of a short second", func() error { return w.PushPair(path[4], path[5][:3]) }},
		{"pair with NaN first", func() error { return w.PushPair(Slice64{nan, 0, 0, 0, 0}, path[5]) }},
		{"pair with NaN second", func() error { return w.PushPair(path[5], Slice64{0, nan, 0, 0, 0}) }},
		{"break", func() error { w.Break(); return nil }},
		{"push y", func() error { return w.Push(path[2]) }},
		{"push x", func() error { return w.Push(path[1]) }},
		{"residual", func() error { return w.PushResidual(path[3], Slice64{1, 0, -2, 0, .5}) }},
		{"residual NaN", func() error { return w.PushResidual(path[3], Slice64{1, 0, -2, nan, .5}) }},
		{"residual nil", func() error { return w.PushResidual(path[3], nil) }},
		{"push y after a residual", func() error { return w.Push(path[0]) }},
		{"residual of a largest y", func() error { return w.PushResidual(Slice64{big, -big, 0, 0, 0}, path[1]) }},
		{"push big", func() error { return w.Push(Slice64{big, 0, 0, 0, 0}) }},
		{"push too far into a full window", func() error { return w.Push(Slice64{-big, 0, 0, 0, 0}) }},
		{"push half as far", func() error { return w.Push(Slice64{big / 4, 0, 0, 0, 0}) }},
		{"pair too far", func() error { return w.PushPair(Slice64{big, 0, 0, 0, 0}, Slice64{-big, 0, 0, 0, 0}) }},
		{"trim to 2", func() error { w.Trim(2); return nil }},
		{"pair that differs too much", func() error {
			return w.PushPair(Slice64{big, 0, 0, 0, 0}, Slice64{-big, 0, 0, 0, 0})
		}},
		{"trim to 5", func() error { w.Trim(5); return nil }},
		{"trim to -1", func() error { w.Trim(-1); return nil }},
		{"residual of zero", func() error { return w.PushResidual(path[1], make(Slice64, 5)) }},
		{"push", func() error { return w.Push(path[1]) }},
		{"reset", func() error { w.Reset(); return nil }},
		{"push again", func() error { return w.Push(path[1]) }},
		{"close", w.Close},
	} {
		err := step.do()
		s.Line(step.name, err)
		s.state()
		s.points()
	}
	return s.String()
}

func TestGoldenWindow(t *testing.T) {
	for name, create := range constructors(t) {
		space, err := create(5, 2)
		if err != nil {
			t.Fatal(err)
		}
		golden.Numbers(t, "window-"+name[:7]+".txt", windowScript(t, space))
	}
}

// Residuals of all magnitudes, with zeros between, and combinations at the largest numbers.
func TestGoldenMagnitudes(t *testing.T) {
	var all strings.Builder
	for _, exps := range [][]int{
		{0, 0, 0}, {-1000, -1001, -1002}, {-301, -300, -299}, {-298, -302, 10}, {399, 400, 401}, {402, -402, 0},
		{900, 1000, 1010}, {-1070, 0, 0}, {1015, -1060, 3}, {395, 396, 398},
	} {
		space, _ := NewHost64(5, 1)
		s := &transcript{w: window(t, space, 4)}
		s.Line("predicted", s.w.predict(nil))
		for k, e := range exps {
			r := make(Slice64, 5)
			for i := range r {
				r[i] = math.Ldexp(path[k][i]-path[k+1][i], e)
			}
			s.Line("exponent", e, s.w.PushResidual(path[k], r))
		}
		s.Line("zero", s.w.PushResidual(path[4], make(Slice64, 5)))
		s.Line("pair", s.w.PushPair(Slice64{math.Ldexp(1, exps[0]), 0, 0, 0, 0},
			Slice64{0, math.Ldexp(3, exps[1]), 0, 0, 0}))
		for _, col := range s.w.columns {
			s.Line("  exp", col.exp, "norm", s.w.norm(col))
		}
		s.Line("gram", s.w.Gram(0).RawSymmetric().Data)
		s.Line("predicted", s.w.predict([]float64{.5, .25, .25, 0}[:s.w.Len()]))
		for _, lambda := range []float64{0, 1e-10, .5, math.Inf(1)} {
			s.result("  lambda", solve(t, s.w, Options{Lambda: Set(lambda)}))
			dst := make(Slice64, 5)
			res, err := s.w.Extrapolate(dst, Options{Lambda: Set(lambda), Beta: Set(.5)})
			s.Line("  point", res.Status, []float64(dst), err)
		}
		s.result("  tau", solve(t, s.w, Options{Tau: Set(.25)}))
		s.w.forgetAbove(math.Ldexp(5, exps[2]))
		s.Line("after forgetting", s.w.Len())
		all.WriteString(s.String())
	}
	golden.Numbers(t, "magnitudes.txt", all.String())
}

// Combinations of given coefficients, at the limits of either width and into destinations of all kinds.
func TestGoldenCombine(t *testing.T) {
	s := &transcript{}
	for _, name := range []string{"float32", "float64"} {
		create := constructors(t)[name]
		space, err := create(5, 1)
		if err != nil {
			t.Fatal(err)
		}
		s.w = window(t, space, 3)
		for _, v := range path[:4] {
			s.Line(name, s.w.Push(v))
		}
		s.Line("residual", s.w.PushResidual(path[4], Slice64{0, 1, 0, -1, 2}))
		for _, c := range [][]float64{nil, {1}, {2, -1}, {.5, .25, .25}, {0, 1, 0}, {1, 2, 3, 4}, {1e38, 0, 0},
			{3e38, 0, 0},
			{-8.5e37, 8.5e37, 0}, {1e308, 0, 0}, {9e307, -9e307, 0}, {math.NaN(), 1, 1}, {math.Inf(1), 0, 0}} {
			for _, beta := range []float64{0, 1, .5} {
				to64, to32 := make(Slice64, 5), make(Slice32, 5)
				far, far64 := &remote{v: make(Slice64, 5)}, &remote64{remote{v: make(Slice64, 5)}}
				s.Line("combine", c, "beta", beta)
				s.Line("  float64", s.w.Combine(to64, c, beta), []float64(to64))
				s.Line("  float32", s.w.Combine(to32, c, beta), fmt.Sprintf("%.8g", to32))
				s.Line("  remote", s.w.Combine(far, c, beta), []float64(far.v))
				s.Line("  remote float64", s.w.Combine(far64, c, beta), []float64(far64.v))
			}
		}
		s.Line("nil", s.w.Combine(nil, []float64{1}, 1))
		s.Line("short", s.w.Combine(make(Slice64, 4), []float64{1}, 1))
		s.Line("fails", s.w.Combine(&remote{v: make(Slice64, 5), failAt: 1}, []float64{1}, 1))
		s.Line("latest", s.w.Latest(make(Slice64, 6)), s.w.Latest(nil))
		s.Line("average", s.w.Average(nil, 2))
		_, err = s.w.Extrapolate(make(Slice64, 4), Options{})
		s.Line("extrapolate", err)
		for _, beta := range []float64{1e40, 1e307, -1.5e308} {
			to := make(Slice64, 5)
			res, err := s.w.Extrapolate(to, Options{Beta: Set(beta), Lambda: Set(.5)})
			s.result("beta", res)
			s.Line(" ", beta, []float64(to), err)
		}
	}
	golden.Numbers(t, "combine.txt", s.String())
}

// faulty is a space that fails at one call of a method, or gives a product that is not finite.
type faulty struct {
	Space
	method string
	calls  int // before the failure
	value  float64
}

var errFaulty = errors.New("out of order")

func (f *faulty) fails(method string) bool {
	if f.method != method {
		return false
	}
	f.calls--
	return f.calls == -1
}

func (f *faulty) New() (Vector, error) {
	if f.fails("New") {
		return nil, errFaulty
	}
	return f.Space.New()
}

func (f *faulty) Store(dst Vector, src Source) (float64, error) {
	if f.fails("Store") {
		return 0, errFaulty
	}
	return f.Space.Store(dst, src)
}

func (f *faulty) MaxAbs(r Residual) (float64, error) {
	if f.fails("MaxAbs") {
		return 0, errFaulty
	}
	return f.Space.MaxAbs(r)
}

func (f *faulty) GramRow(row []float64, r Residual, with []Residual) error {
	err := f.Space.GramRow(row, r, with)
	if f.fails("GramRow") {
		if f.value == 0 {
			return errFaulty
		}
		row[len(row)/2] = f.value
	}
	return err
}

func (f *faulty) Combine(dst Sink, terms []Term) error {
	if f.fails("Combine") {
		return errFaulty
	}
	return f.Space.Combine(dst, terms)
}

// Each call of a space may fail: the window stays valid, and vectors are not lost.
func TestGoldenFaultySpace(t *testing.T) {
	s := &transcript{}
	for _, method := range []string{"New", "Store", "MaxAbs", "GramRow", "Combine", "NaN", "Inf"} {
		for calls := range 10 {
			plain, _ := NewHost64(5, 1)
			f := &faulty{Space: plain, method: method, calls: calls}
			if f.value = map[string]float64{"NaN": math.NaN(), "Inf": math.Inf(1)}[method]; f.value != 0 {
				f.method = "GramRow"
			}
			w, err := NewWindow(f, 2)
			if err != nil {
				t.Fatal(err)
			}
			s.w = w
			tiny := Slice64{0x1p-400, 0, 0, 0, 0x1p-420}
			errs := []error{w.Push(path[0]), w.Push(path[1]), w.PushPair(path[1], path[2]),
				w.PushResidual(path[2], tiny), w.Push(path[4]), w.Push(path[5])}
			dst := make(Slice64, 5)
			_, err = w.Extrapolate(dst, Options{Lambda: Set(.5)})
			errs = append(errs, err, w.Latest(dst))
			if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
				break
			}
			s.Line(method, calls, fmt.Sprintf("%q", errs), []float64(dst))
			s.state()
			w.Close()
		}
	}
	// Products that no vectors have: the QR solves.
	plain, _ := NewHost64(5, 1)
	for calls := range 4 {
		w := window(t, &faulty{Space: plain, method: "GramRow", calls: calls, value: 50}, 3)
		push(t, w, path[0], path[1], path[2], path[3])
		for _, o := range []Options{{Lambda: Set(.1)}, {Lambda: Set(0)}, {Tau: Set(.25)}} {
			s.result(fmt.Sprint("50 at call ", calls), solve(t, w, o))
		}
		s.result("  products", w.Spectrum(0).Solve(.1))
	}
	golden.Numbers(t, "faulty.txt", s.String())
}

// Spaces, windows, slices and vectors that can't be.
func TestGoldenArguments(t *testing.T) {
	s := &transcript{}
	for name, create := range map[string]func(int, int) (Space, error){"32": NewHost32, "64": NewHost64} {
		for _, dim := range []int{-1, 0, 1} {
			space, err := create(dim, 0)
			if err != nil && err.Error() != fmt.Sprintf("rna: space of vectors of %d elements: there must be at least 1", dim) {
				t.Errorf("%s, %d: %v", name, dim, err)
			}
			if (err != nil) != (dim < 1) || err == nil && (space.Dim() != dim || fmt.Sprint(space.Bits()) != name) {
				t.Errorf("%s, %d: %v, %v", name, dim, space, err)
			}
		}
	}
	space, _ := NewHost64(5, 1)
	for _, n := range []int{-1, 0, 1, MaxColumns, MaxColumns + 1} {
		w, err := NewWindow(space, n)
		s.Line("window of", n, err)
		if w != nil {
			s.Line(" ", w.Cap(), w.Len())
		}
	}
	_, err := NewWindow(nil, 3)
	s.Line("window without a space", err)
	wide, narrow := make([]float64, 2), make([]float32, 2)
	for _, off := range []int{-1, 0, 1, 3, 4, 5} {
		v, n := slices.Clone(path[0]), Slice32{1, 2, 3, 4, 5}
		s.Line("offset", off)
		s.Line("  64 read", v.ReadAt64(wide, off), wide, v.ReadAt(narrow, off), fmt.Sprint(narrow))
		s.Line("  32 read", n.ReadAt64(wide, off), wide, n.ReadAt(narrow, off), fmt.Sprint(narrow))
		s.Line("  64 write", v.WriteAt64([]float64{7, 8}, off), v.WriteAt([]float32{9}, off), []float64(v), v.Len())
		s.Line("  32 write", n.WriteAt64([]float64{7, 8}, off), n.WriteAt([]float32{9}, off), fmt.Sprint(n), n.Len())
		for _, size := range []int{-1, 0, 1, 2} {
			s.Line("  part", size, v.Float64s(off, size) != nil, n.Float32s(off, size) != nil)
		}
	}
	for i := range 11 {
		text, err := Status(i).MarshalText()
		s.Line("status", string(text), err, Kind(i-1))
	}
	s.Line(Status(-1), Value{}.Or(3), Set(0).Or(3), fmt.Sprint(DefaultLambdas()))
	golden.Numbers(t, "arguments.txt", s.String())
}
