//go:build gpu && cgo

package dnn

import (
	"errors"
	"math"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

func newDNN(t testing.TB, c *driver.Context) *Handle {
	t.Helper()
	d, err := New(c.Stream())
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

// blur is a 3×3 kernel over one channel of a 2×3 image, with two outputs.
var blur = Shape{N: 1, C: 1, H: 2, W: 3, O: 2, KH: 3, KW: 3, Stride: [2]int{1, 1}, Pad: [2]int{1, 1},
	Dilation: [2]int{1, 1}, Groups: 1}

// convolution are the plans of one convolution.
func convolution(d *Handle, kind Kind, s Shape, o Options) (*Plans, error) {
	return d.NewPlans(s.Graph(kind, o.Precision), o)
}

func TestConvolution(t *testing.T) {
	needDNN(t)
	c := open(t)
	d := newDNN(t, c)
	v, err := convolution(d, Forward, blur, Options{Workspace: 1 << 20})
	check(t, err)
	defer v.Close()
	x := gputest.Upload(t, c, []float32{1, 2, 3, 4, 5, 6})
	w := gputest.Upload(t, c, append([]float32{0, 0, 0, 0, 2, 0, 0, 0, 0}, []float32{1, 1, 1, 1, 1, 1, 1, 1, 1}...))
	y := gputest.Upload(t, c, make([]float32, 12))
	work := alloc(t, c, max(v.Workspace(), 1))
	check(t, v.Run([]driver.Span{x.All(), w.All(), y.All()}, work.All()))
	want := []float32{2, 12, 4, 21, 6, 16, 8, 12, 10, 21, 12, 16}
	for i, got := range gputest.Download[float32](t, y.All()) {
		if math.Abs(float64(got-want[i])) > 1e-5 {
			t.Errorf("element %d is %v, want %v", i, got, want[i])
		}
	}

	if err := v.Run([]driver.Span{x.All(), w.All(), y.Span(0, 44)}, work.All()); err == nil || !strings.Contains(err.Error(), "44") {
		t.Errorf("a result that is too short: %v", err)
	}
	if v.Workspace() > 0 {
		if err := v.Run([]driver.Span{x.All(), w.All(), y.All()}, driver.Span{}); err == nil {
			t.Error("no workspace is no error")
		}
	}
	odd := alloc(t, c, 72+4)
	if err := v.Run([]driver.Span{x.All(), odd.Span(4, 72), y.All()}, work.All()); err == nil ||
		!strings.Contains(err.Error(), "16 bytes") {
		t.Errorf("a span beside 16 bytes: %v", err)
	}
	check(t, v.Close())
	if err := v.Run([]driver.Span{x.All(), w.All(), y.All()}, work.All()); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("%v, want driver.ErrClosed", err)
	}
}

// floats16 stores x in 16 bits, which represent it exactly.
func floats16(t testing.TB, c *driver.Context, p number.Precision, x []float32) *driver.Memory {
	t.Helper()
	return gputest.Upload(t, c, number.Narrow(p, x))
}

// In 16 bits products are exact and only the final sums are rounded, to nearest; TensorFloat-32 rounds the operands.
func TestConvolutionPrecision(t *testing.T) {
	needDNN(t)
	c := open(t)
	d := newDNN(t, c)
	one := Shape{N: 1, C: 2, H: 1, W: 1, O: 1, KH: 1, KW: 1, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	for _, test := range []struct {
		p    number.Precision
		x, w []float32
		want float32
	}{
		// 257.5 lies between 256 and 258; 257 is stored as 256
		{number.BFloat16, []float32{257, 1}, []float32{1, .5}, 256},
		{number.BFloat16, []float32{256, 3}, []float32{1, .5}, 258},
		{number.Float16, []float32{2048, 1}, []float32{1, 1.5}, 2050},
		{number.Float16, []float32{60000, 6000}, []float32{1, 1}, float32(math.Inf(1))},
		{number.TF32, []float32{1 + 0x1p-11, 1 + 0x1p-10}, []float32{1, 1}, 2 + 0x1p-10},
		{number.Float32, []float32{1 + 0x1p-11, 1}, []float32{1, 1}, 2 + 0x1p-11},
	} {
		if test.p == number.TF32 && !sim.Active() {
			continue // a card may round differently
		}
		v, err := convolution(d, Forward, one, Options{Precision: test.p, Workspace: 1 << 20})
		check(t, err)
		defer v.Close()
		work := alloc(t, c, max(v.Workspace(), 1))
		var got float32
		if test.p.Bytes() == 2 {
			x, w, y := floats16(t, c, test.p, test.x), floats16(t, c, test.p, test.w), alloc(t, c, 2)
			check(t, v.Run([]driver.Span{x.All(), w.All(), y.All()}, work.All()))
			got = number.Widen(test.p, gputest.Download[uint16](t, y.All()))[0]
		} else {
			x, w, y := gputest.Upload(t, c, test.x), gputest.Upload(t, c, test.w), alloc(t, c, 4)
			check(t, v.Run([]driver.Span{x.All(), w.All(), y.All()}, work.All()))
			got = gputest.Download[float32](t, y.All())[0]
		}
		if got != test.want {
			t.Errorf("%v: %v · %v is %v, want %v", test.p, test.x, test.w, got, test.want)
		}
	}
}

// A convolution without outputs is refused.
func TestConvolutionMistakes(t *testing.T) {
	needDNN(t)
	d := newDNN(t, open(t))
	bad := blur
	bad.Groups, bad.O = 1, 0
	if _, err := convolution(d, Forward, bad, Options{}); err == nil || !strings.Contains(err.Error(), "BAD_PARAM") {
		t.Errorf("a convolution without outputs: %v", err)
	}
}

// convolve runs each kind of convolution.
func convolve(t *testing.T) (err error) {
	c, err := driver.Open(0, driver.Options{KernelCache: gputest.KernelCache})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	d, err := New(c.Stream())
	if err != nil {
		return err
	}
	m, err := c.Alloc(1 << 12)
	if err != nil {
		return err
	}
	for kind := Forward; kind <= GradWeight; kind++ {
		v, err := convolution(d, kind, blur, Options{Workspace: 1 << 10})
		if err != nil {
			return err
		}
		x, w, y := m.Span(0, 24), m.Span(256, 72), m.Span(512, 48)
		args := [][3]driver.Span{{x, w, y}, {w, y, x}, {x, y, w}}[kind]
		if err := v.Run(args[:], m.Span(1024, v.Workspace())); err != nil {
			return err
		}
		if err := v.Close(); err != nil {
			return err
		}
	}
	return errors.Join(c.Synchronize(), d.Close(), m.Close())
}

func TestFaultOfEachCallOfDNN(t *testing.T) {
	fault(t, "")
	check(t, convolve(t))
	for _, n := range []string{"Create", "Destroy", "SetStream"} {
		before := sim.Leaks()
		check(t, sim.Fault("cudnn"+n+"@1=4000"))
		if err := convolve(t); err == nil || !strings.Contains(err.Error(), "cuda: cudnn"+n) ||
			!strings.Contains(err.Error(), "CUDNN_STATUS_INTERNAL_ERROR (4000)") {
			t.Errorf("%v; want an error of cudnn%s", err, n)
		}
		check(t, sim.Fault(""))
		if after := sim.Leaks(); after != before {
			t.Errorf("%s: leaked: %s", n, after)
		}
		check(t, convolve(t))
	}
	for _, plan := range []string{"cudnnBackendExecute@1=719,later", "cuMemAlloc_v2@1=719,sticky"} {
		t.Run(plan, func(t *testing.T) {
			gputest.Alone(t, "", func(string) {
				check(t, sim.Fault(plan))
				if err := convolve(t); !errors.Is(err, driver.ErrLost) {
					t.Errorf("%v, want driver.ErrLost", err)
				}
			})
		})
	}
}
