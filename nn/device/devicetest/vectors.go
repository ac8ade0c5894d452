package devicetest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// lengths are lengths of vectors round those of registers, unrolled loops and pieces of work.
var lengths = []int{0, 1, 7, 15, 16, 17, 63, 64, 65, 1000, 4096, 100003}

// vectors tests all methods of Vector but Update.
func (s *suite) vectors(t tester) {
	for _, n := range lengths {
		for _, test := range []struct {
			name string
			run  func(n int) error
		}{
			{"transfer", s.transfer},
			{"copy and fill", s.copyAndFill},
			{"add scaled", s.addScaled},
			{"lerp", s.lerp},
			{"the receiver as argument", s.selfArguments},
			{"norm", s.norm},
			{"finite", s.finite},
		} {
			if err := test.run(n); err != nil {
				t.Errorf("%s, %d elements: %v", test.name, n, err)
			}
		}
	}
	if err := s.misuse(); err != nil {
		t.Errorf("misuse: %v", err)
	}
	if _, err := s.dev.NewVector(-1); err == nil {
		t.Errorf("a vector of -1 elements must be an error")
	}
	if err := s.parameters(); err != nil {
		t.Errorf("weights in a vector: %v", err)
	}
}

// numbers are n numbers of [-1, 1] of the device's type.
func (s *suite) numbers(name string, n int) []float64 {
	x := make([]float64, n)
	uniform(-1, 1)(newRand(name), x)
	return s.rounded(x)
}

// rounded is x in the device's type.
func (s *suite) rounded(x []float64) []float64 {
	return floats(tensor(op.T(s.dtype, len(x)), x))
}

// vector makes a vector with content x.
func (s *suite) vector(x []float64) (device.Vector, error) {
	v, err := s.dev.NewVector(len(x))
	if err != nil {
		return nil, err
	}
	return v, v.WriteAt64(x, 0)
}

// content is all of v.
func (s *suite) content(v device.Vector) ([]float64, error) {
	if err := s.dev.Sync(); err != nil {
		return nil, err
	}
	x := make([]float64, v.Len())
	return x, v.ReadAt64(x, 0)
}

// expect compares v with want. A tolerance of 0 asks for equal numbers.
func (s *suite) expect(what string, v device.Vector, want []float64, tolerance float64) error {
	got, err := s.content(v)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	if d := differs(tensor(op.T(op.Float64, len(got)), got), want, tolerance, 0, 1); d != "" {
		return fmt.Errorf("%s: %s", what, d)
	}
	return nil
}

// rounding is the tolerance of a few roundings of the device's type.
func (s *suite) rounding() float64 {
	if s.dtype == op.Float32 {
		return 1e-6
	}
	return 1e-14
}

func (s *suite) transfer(n int) error {
	v, err := s.dev.NewVector(n)
	if err != nil {
		return err
	}
	defer v.Free()
	if v.Len() != n {
		return fmt.Errorf("length %d", v.Len())
	}
	want := make([]float64, n)
	if err := s.expect("new", v, want, 0); err != nil {
		return err
	}
	lo, hi := n/3, n-n/4
	part := s.numbers("part", hi-lo)
	if err := v.WriteAt64(part, lo); err != nil {
		return err
	}
	copy(want[lo:], part)
	if err := s.expect("after WriteAt64", v, want, 0); err != nil {
		return err
	}
	x32 := make([]float32, n)
	if err := v.ReadAt(x32[lo:hi], lo); err != nil {
		return err
	}
	for i, a := range part {
		if x32[lo+i] != float32(a) {
			return fmt.Errorf("ReadAt: element %d is %v, want %v", lo+i, x32[lo+i], float32(a))
		}
	}
	for i := range x32 {
		x32[i] = float32(i%1000) / 8
		want[i] = float64(x32[i])
	}
	if err := v.WriteAt(x32, 0); err != nil {
		return err
	}
	if err := s.expect("after WriteAt", v, want, 0); err != nil {
		return err
	}
	return s.region(v, lo, hi, want)
}

// region reads elements lo to hi of v as a tensor in memory.
func (s *suite) region(v device.Vector, lo, hi int, want []float64) error {
	r := v.Region(lo, hi-lo)
	if r.Bytes != (hi-lo)*s.dtype.Size() {
		return fmt.Errorf("region of %d elements has %d bytes", hi-lo, r.Bytes)
	}
	got := op.New(op.T(s.dtype, hi-lo))
	if err := s.dev.Download(got, r, ""); err != nil {
		return fmt.Errorf("download of a region: %w", err)
	}
	if d := differs(got, want[lo:hi], 0, 0, 1); d != "" {
		return fmt.Errorf("download of elements %d to %d: %s", lo, hi, d)
	}
	return nil
}

func (s *suite) copyAndFill(n int) error {
	x := s.numbers("x", n)
	v, err := s.vector(x)
	if err != nil {
		return err
	}
	defer v.Free()
	w, err := s.vector(s.numbers("w", n))
	if err != nil {
		return err
	}
	defer w.Free()
	if err := w.Copy(v); err != nil {
		return err
	}
	if err := w.Fill(.1); err != nil {
		return err
	}
	if err := s.expect("filled", w, s.rounded(slices.Repeat([]float64{.1}, n)), 0); err != nil {
		return err
	}
	if err := s.expect("source of a copy that was filled", v, x, 0); err != nil {
		return err
	}
	if err := w.Copy(v); err != nil {
		return err
	}
	return s.expect("copy", w, x, 0)
}

func (s *suite) addScaled(n int) error {
	x, y := s.numbers("x", n), s.numbers("y", n)
	for _, a := range []float64{0, 1, -1, 1. / 3, -2.5} {
		v, err := s.vector(x)
		if err != nil {
			return err
		}
		defer v.Free()
		w, err := s.vector(y)
		if err != nil {
			return err
		}
		defer w.Free()
		if err := v.AddScaled(a, w); err != nil {
			return err
		}
		want := make([]float64, n)
		for i := range want {
			want[i] = x[i] + a*y[i]
		}
		if err := s.expect(fmt.Sprintf("v + %v x", a), v, want, s.rounding()); err != nil {
			return err
		}
		if err := s.expect("x", w, y, 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) lerp(n int) error {
	x, y := s.numbers("x", n), s.numbers("y", n)
	for _, a := range []float64{0, 1, -1, 1. / 3, 1e-3, -2.5} {
		v, err := s.vector(x)
		if err != nil {
			return err
		}
		defer v.Free()
		w, err := s.vector(y)
		if err != nil {
			return err
		}
		defer w.Free()
		if err := v.Lerp(a, w); err != nil {
			return err
		}
		want := make([]float64, n)
		for i := range want {
			want[i] = x[i] + a*(y[i]-x[i])
		}
		if err := s.expect(fmt.Sprintf("v + %v (x - v)", a), v, want, s.rounding()); err != nil {
			return err
		}
		if err := s.expect("x", w, y, 0); err != nil {
			return err
		}
	}
	return nil
}

// selfArguments passes a vector to its own methods.
func (s *suite) selfArguments(n int) error {
	x := s.numbers("x", n)
	v, err := s.vector(x)
	if err != nil {
		return err
	}
	defer v.Free()
	if err := errors.Join(v.Copy(v), v.Lerp(1./3, v)); err != nil {
		return err
	}
	if err := s.expect("a vector copied and interpolated to itself", v, x, 0); err != nil {
		return err
	}
	if err := v.AddScaled(-.5, v); err != nil {
		return err
	}
	for i := range x {
		x[i] /= 2
	}
	return s.expect("v - v/2", v, x, 0)
}

func (s *suite) norm(n int) error {
	huge := 1.
	if s.dtype == op.Float32 {
		huge = 1e30 // the squares overflow in float32
	}
	for _, scale := range []float64{1, huge, 1e-20} {
		x := s.numbers("norm", n)
		var sum float64
		for i := range x {
			x[i] *= scale
		}
		x = s.rounded(x)
		for _, a := range x {
			sum += a * a
		}
		v, err := s.vector(x)
		if err != nil {
			return err
		}
		defer v.Free()
		got, err := v.Norm()
		if err != nil {
			return err
		}
		if want := math.Sqrt(sum); math.Abs(got-want) > 1e-12*want {
			return fmt.Errorf("of numbers up to %v: %v, want %v: is it accumulated in float64?", scale, got, want)
		}
	}
	return nil
}

func (s *suite) finite(n int) error {
	x := s.numbers("finite", n)
	if n > 1 {
		x[1] = 3e38
	}
	v, err := s.vector(x)
	if err != nil {
		return err
	}
	defer v.Free()
	if ok, err := v.Finite(); err != nil || !ok {
		return fmt.Errorf("%v, %v of finite numbers", ok, err)
	}
	for _, i := range []int{0, n / 2, n - 1} {
		for _, a := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if n == 0 {
				continue
			}
			if err := v.WriteAt64([]float64{a}, i); err != nil {
				return err
			}
			if ok, err := v.Finite(); err != nil || ok {
				return fmt.Errorf("%v, %v with %v at %d", ok, err, a, i)
			}
			if err := v.WriteAt64(x[i:i+1], i); err != nil {
				return err
			}
		}
	}
	return nil
}

// foreign is a vector of no device.
type foreign struct{ device.Vector }

func (foreign) Len() int { return 5 }

// misuse makes calls that must fail and leave the vector unchanged.
func (s *suite) misuse() error {
	x := s.numbers("misuse", 5)
	v, err := s.vector(x)
	if err != nil {
		return err
	}
	defer v.Free()
	longer, err := s.dev.NewVector(6)
	if err != nil {
		return err
	}
	defer longer.Free()
	for what, err := range map[string]error{
		"read before the start":     v.ReadAt64(make([]float64, 2), -1),
		"read past the end":         v.ReadAt(make([]float32, 2), 4),
		"write past the end":        v.WriteAt64(make([]float64, 6), 0),
		"write behind the end":      v.WriteAt(make([]float32, 1), 5),
		"copy of a longer vector":   v.Copy(longer),
		"sum with a longer vector":  v.AddScaled(1, longer),
		"copy of a foreign vector":  v.Copy(foreign{}),
		"sum with a foreign vector": v.AddScaled(1, foreign{}),
		"lerp to a longer vector":   v.Lerp(.5, longer),
		"lerp to a foreign vector":  v.Lerp(.5, foreign{}),
	} {
		if err == nil {
			return fmt.Errorf("%s must be an error", what)
		}
	}
	return s.expect("a vector after errors", v, x, 0)
}

// parameters runs a convolution and its gradient with weights and gradients in vectors.
func (s *suite) parameters() error {
	const off = 7
	o := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	w := op.T(s.dtype, 9, 5, 3, 3)
	n := w.Shape.Size()
	params, err := s.dev.NewVector(off + n + 3)
	if err != nil {
		return err
	}
	defer params.Free()
	grads, err := s.dev.NewVector(off + n + 3)
	if err != nil {
		return err
	}
	defer grads.Free()

	cases := []opCase{
		{op: o, in: []operand{data(uniform(-1, 1), 2, 5, 6, 6), weight(uniform(-1, 1), w.Shape...)}},
		{op: op.Conv2DGradWeight{Conv2D: o, Weight: w.Shape},
			in: []operand{data(uniform(-1, 1), 2, 5, 6, 6), data(uniform(-1, 1), 2, 9, 6, 6)}, weight: true},
	}
	for i, c := range cases {
		p := s.roundedProgram(c.program(s.dtype))
		exact, err := p.exact()
		if err != nil {
			return err
		}
		j, err := describe(s.dev, p, p.alone())
		if err != nil {
			return err
		}
		regions := map[int]device.Region{1: params.Region(off, n)}
		if i == 1 {
			regions = map[int]device.Region{2: grads.Region(off, n)}
		}
		b, err := j.bind(placement{elsewhere: regions})
		if err != nil {
			return err
		}
		defer b.memory.Free()
		if err := b.fill(); err != nil {
			return err
		}
		got, err := b.run()
		if err != nil {
			return err
		}
		if d := differs(got[0], exact[2], s.tolerance, s.own(j, 2), 1); d != "" {
			return fmt.Errorf("%v: %s", c.op, d)
		}
	}
	for _, v := range []device.Vector{params, grads} {
		x, err := s.content(v)
		if err != nil {
			return err
		}
		for i, a := range x {
			if outside := i < off || i >= off+n; outside && a != 0 {
				return fmt.Errorf("element %d, beside the tensor, is now %v", i, a)
			}
		}
	}
	return nil
}
