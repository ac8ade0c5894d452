package rna

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// remote hides the memory of a vector, as a device's would be, and fails at call
// number failAt if that is set.
type remote struct {
	v             Slice64
	calls, failAt int
}

var errRemote = errors.New("lost the device")

func (r *remote) call() error {
	if r.calls++; r.calls == r.failAt {
		return errRemote
	}
	return nil
}

func (r *remote) Len() int { return len(r.v) }

func (r *remote) ReadAt(dst []float32, off int) error {
	return errors.Join(r.call(), r.v.ReadAt(dst, off))
}

func (r *remote) WriteAt(src []float32, off int) error {
	if err := r.call(); err != nil {
		return err
	}
	return r.v.WriteAt(src, off)
}

// remote64 also has the float64 methods.
type remote64 struct{ remote }

func (r *remote64) ReadAt64(dst []float64, off int) error { return r.v.ReadAt64(dst, off) }

func (r *remote64) WriteAt64(src []float64, off int) error { return r.v.WriteAt64(src, off) }

// Vectors longer than four spans of one worker: each element counts once in a product, and comes through unchanged.
func TestLongVectors(t *testing.T) {
	v := make(Slice64, 4*hostSpan+2*blockLen+1)
	want := 0.0 // a sum of integers
	for i := range v {
		v[i] = float64(i%7 + 1)
		want += v[i] * v[i]
	}
	for _, space := range []func(dim, workers int) (Space, error){NewHost32, NewHost64} {
		s, err := space(len(v), 1)
		if err != nil {
			t.Fatal(err)
		}
		w := window(t, s, 1)
		if err := w.PushResidual(make(Slice64, len(v)), v); err != nil {
			t.Fatal(err)
		}
		if got := w.Gram(1).At(0, 0); got != want {
			t.Errorf("float%d: the square is %v, want %v", s.Bits(), got, want)
		}
		got := make(Slice64, len(v))
		if err := w.Average(got, 1); err != nil || !slices.Equal(got, v) {
			t.Errorf("float%d: another vector, %v", s.Bits(), err)
		}
	}
}

// Vectors come and go unchanged, through memory or in parts, -0 included.
func TestCopies(t *testing.T) {
	want := contraction(2*stageLen+blockLen+7, 1, 1)[0]
	want[3] = math.Copysign(0, -1)
	spaces(t, len(want), func(t *testing.T, s Space) {
		for _, from := range []Source{Slice64(want), &remote{v: want}, &remote64{remote{v: want}}} {
			v, err := s.New()
			if err != nil {
				t.Fatal(err)
			}
			most, err := s.Store(v, from)
			checked, err2 := s.Store(nil, from)
			if err != nil || err2 != nil || most != checked {
				t.Fatalf("%T: %v, %v, largest %v and %v", from, err, err2, most, checked)
			}
			for _, to := range []interface {
				Sink
				values() []float64
			}{&memorySink{Slice64: make(Slice64, len(want))}, &remoteSink{remote{v: make(Slice64, len(want))}},
				&remoteSink64{remote64{remote{v: make(Slice64, len(want))}}}} {
				if err := s.Combine(to, []Term{{1, v}}); err != nil {
					t.Fatal(err)
				}
				sameBits(t, "copy", to.values(), want)
			}
			for _, at := range []int{0, stageLen + blockLen + 1, len(want) - 1} {
				was := want[at]
				want[at] = math.Inf(1)
				var bad *NonFiniteError
				if _, err := s.Store(nil, from); !errors.As(err, &bad) || bad.Offset != at {
					t.Errorf("%T: infinite element %d: %v", from, at, err)
				}
				want[at] = was
			}
			read := make([]float64, 100)
			if err := v.ReadAt64(read, 5); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "part", read, want[5:105])
		}
	})
}

type memorySink struct{ Slice64 }
type remoteSink struct{ remote }
type remoteSink64 struct{ remote64 }

func (s *memorySink) values() []float64   { return s.Slice64 }
func (s *remoteSink) values() []float64   { return s.v }
func (s *remoteSink64) values() []float64 { return s.v }

// Writing a part of a larger slice leaves the rest alone.
func TestCombineStaysInBounds(t *testing.T) {
	const d, guard = blockLen + 3, 16
	all := make(Slice32, d+2*guard)
	for i := range all {
		all[i] = float32(math.NaN())
	}
	s, _ := NewHost32(d, 2)
	w := window(t, s, 3)
	push(t, w, contraction(d, 4, 2)...)
	if _, err := w.Extrapolate(all[guard:guard+d], Options{}); err != nil {
		t.Fatal(err)
	}
	for i, v := range all {
		if inside := i >= guard && i < guard+d; inside == math.IsNaN(float64(v)) {
			t.Fatalf("element %d of the destination is %v", i-guard, v)
		}
	}
}

func TestSliceBounds(t *testing.T) {
	for _, err := range []error{
		Slice32{1, 2}.ReadAt(make([]float32, 2), 1), Slice32{1, 2}.ReadAt(make([]float32, 1), -1),
		Slice32{1, 2}.WriteAt64(make([]float64, 3), 0), Slice64{1, 2}.ReadAt64(make([]float64, 1), 2),
		Slice64{1, 2}.WriteAt(make([]float32, 1), math.MaxInt),
	} {
		if err == nil {
			t.Error("access out of range went through")
		}
	}
	if (Slice64{1, 2}).Float64s(1, 2) != nil || (Slice32{1, 2}).Float32s(-1, 1) != nil {
		t.Error("memory out of range was given")
	}
}

// Results have the same bits for any number of workers.
func TestWorkers(t *testing.T) {
	vs := contraction(13*blockLen+11, 6, 3)
	d := len(vs[0])
	for name, make := range constructors(t) {
		t.Run(name, func(t *testing.T) {
			var gram, y []float64
			for _, workers := range []int{1, 2, 3, 7} {
				s, _ := make(d, workers)
				w := window(t, s, 4)
				push(t, w, vs...)
				g, x := w.Gram(0).RawSymmetric().Data, extrapolate(t, w, Options{Beta: Set(.7)})
				if workers == 1 {
					gram, y = g, x
					continue
				}
				sameBits(t, "Gram matrix", g, gram)
				sameBits(t, "y⁺", x, y)
			}
		})
	}
}

// A Gram row agrees with gonum's product of the differences.
func TestGramRow(t *testing.T) {
	for _, d := range []int{1, 2, 3, 4, 5, 7, 8, 9, blockLen - 1, blockLen, blockLen + 1, 4*blockLen + 6} {
		vs := contraction(d, 5, uint64(d))
		spaces(t, d, func(t *testing.T, s Space) {
			w := window(t, s, 4)
			push(t, w, vs...)
			r := mat.NewDense(d, 4, nil)
			for j := range 4 {
				for i := range d {
					r.Set(i, j, vs[j+1][i]-vs[j][i])
				}
			}
			var want mat.Dense
			want.Mul(r.T(), r)
			if !mat.EqualApprox(w.Gram(0), &want, 1e-12*mat.Max(&want)) {
				t.Errorf("d = %d: Gram matrix %v, want %v", d, mat.Formatted(w.Gram(0)), mat.Formatted(&want))
			}
		})
	}
}

// A source or destination that fails leaves a valid window and says so.
func TestFailingVectors(t *testing.T) {
	vs := contraction(10, 7, 4)
	s, _ := NewHost32(10, 1)
	for failAt := 1; failAt <= 2; failAt++ {
		w := window(t, s, 3)
		push(t, w, vs[:5]...)
		err := w.Push(&remote{v: vs[5], failAt: failAt})
		if !errors.Is(err, errRemote) {
			t.Fatalf("read %d failed: %v", failAt, err)
		}
		// The first read of a full window only checks the vector, the second overwrites the oldest.
		left := 4 - failAt
		fresh := window(t, s, left)
		push(t, fresh, vs[4-left:5]...)
		if w.Len() != left {
			t.Fatalf("read %d failed and left %d residuals", failAt, w.Len())
		}
		sameBits(t, "y⁺", extrapolate(t, w, Options{}), extrapolate(t, fresh, Options{}))
		push(t, w, vs[5])
		if w.Len() != min(left+1, 3) || w.Vectors()+len(w.free) != 4 {
			t.Errorf("then %d residuals in %d vectors", w.Len(), w.Vectors()+len(w.free))
		}
	}
	w := window(t, s, 3)
	push(t, w, vs...)
	if _, err := w.Extrapolate(&remote{v: make(Slice64, 10), failAt: 1}, Options{}); !errors.Is(err, errRemote) {
		t.Errorf("a write failed: %v", err)
	}
}

// Vectors of one space do not pass for another's.
func TestForeignVectors(t *testing.T) {
	a, _ := NewHost32(4, 1)
	for _, dim := range []int{4, 5} {
		b, _ := NewHost64(dim, 1)
		v, _ := b.New()
		if _, err := a.Store(v, make(Slice32, 4)); err == nil {
			t.Error("stored in a foreign vector")
		}
		if err := a.Combine(make(Slice32, 4), []Term{{1, v}}); err == nil {
			t.Error("combined a foreign vector")
		}
		if err := a.GramRow(make([]float64, 1), Residual{X: v}, []Residual{{X: v}}); err == nil {
			t.Error("multiplied foreign vectors")
		}
		if _, err := a.MaxAbs(Residual{X: v}); err == nil {
			t.Error("measured a foreign vector")
		}
	}
}

// An empty window has no products. A predicted square that rounding makes negative is 0.
func TestGramEdges(t *testing.T) {
	s, _ := NewHost64(3, 1)
	w := window(t, s, 2)
	if g := w.Gram(0); g != nil {
		t.Errorf("%v", g)
	}
	push(t, w, []float64{0, 0, 0}, []float64{1, 0, 0}, []float64{2, 0, 0})
	if res := w.Spectrum(0).Solve(math.Inf(1)); res.Accuracy != 0x1p-52 || res.Condition != 1 {
		t.Errorf("the average is accurate to %v, condition %v", res.Accuracy, res.Condition)
	}
	w.gram = []float64{1, 1 + 1e-9, 1 + 1e-9, 1}
	if got := w.predict([]float64{1, -1}); got != 0 {
		t.Errorf("predicted is %v", got)
	}
}

// counting counts the vectors that a space makes.
type counting struct {
	Space
	made int
}

func (s *counting) New() (Vector, error) {
	s.made++
	return s.Space.New()
}

// Refused pushes give back their vectors.
func TestRefusedPushesKeepNoVectors(t *testing.T) {
	host, _ := NewHost64(1, 1)
	s := &counting{Space: host}
	w := window(t, s, 3)
	for range 5 { // NaN is refused before the products are, and a difference that overflows by them
		for _, pair := range [][2]float64{{1, math.NaN()}, {-1.7e308, 1.7e308}} {
			if err := w.PushPair(Slice64{pair[0]}, Slice64{pair[1]}); err == nil {
				t.Fatalf("%v went through", pair)
			}
		}
	}
	if s.made != 2 || w.Refused() != 10 {
		t.Errorf("%d vectors after %d refused pushes", s.made, w.Refused())
	}
}
