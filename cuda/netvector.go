//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/device"
)

// netVector is a device.Vector in GPU memory.
type netVector struct {
	d *Net
	m *netMemory
	n int

	copy *Memory // the elements in 16 bits, for ops that read them so; nil until one does
}

var (
	_ device.Vector = (*netVector)(nil)
	_ DeviceSink    = (*netVector)(nil)
)

// NewVector implements device.Device.
func (d *Net) NewVector(n int) (device.Vector, error) {
	if n < 0 || n > math.MaxInt/4 {
		return nil, fmt.Errorf("cuda: vector of %d elements", n)
	}
	m, err := d.newMemory(4 * n)
	if err != nil {
		return nil, fmt.Errorf("cuda: vector of %d elements: %w", n, err)
	}
	v := &netVector{d: d, m: m, n: n}
	m.vector = v
	return v, nil
}

// vectorOf is the vector whose memory a region is a part of, or nil.
func vectorOf(r device.Region) *netVector {
	if m, ok := r.Memory.(*netMemory); ok {
		return m.vector
	}
	return nil
}

// narrow is the copy in 16 bits of a part of v. From the first call on all that writes v writes the copy, or calls refresh.
func (v *netVector) narrow(part Span) (Span, error) {
	if v.copy == nil {
		m, err := v.d.c.Alloc(2 * int64(v.n))
		if err != nil {
			return Span{}, fmt.Errorf("cuda: %d weights in %v: %w", v.n, v.d.opts.Precision, err)
		}
		v.copy = m
		if err := v.refresh(); err != nil {
			return Span{}, err
		}
	}
	return v.copy.Span(part.off/2, part.n/2), nil
}

// narrowed is the copy in 16 bits, empty where there is none.
func (v *netVector) narrowed() Span {
	if v.copy == nil {
		return Span{}
	}
	return v.copy.All()
}

// refresh makes the copy in 16 bits anew, if there is one: somebody wrote v.
func (v *netVector) refresh() error {
	if v.copy == nil {
		return nil
	}
	return v.launch("vec_narrow", v.all(), v.copy.All(), int64(v.n))
}

// Float32Written implements DeviceSink.
func (v *netVector) Float32Written() error { return v.refresh() }

// Len implements device.Vector.
func (v *netVector) Len() int { return v.n }

// Region implements device.Vector.
func (v *netVector) Region(off, n int) device.Region {
	return device.Region{Memory: v.m, Offset: 4 * off, Bytes: 4 * n}
}

// Free implements device.Vector.
func (v *netVector) Free() {
	v.m.Free()
	if v.copy != nil {
		v.d.failed = errors.Join(v.d.failed, v.copy.Close())
	}
}

// Float32Span implements DeviceMemory: it waits for the device's work.
func (v *netVector) Float32Span(off, n int) (Span, bool) {
	s, err := v.part(off, n)
	if err != nil || v.d.stream.Synchronize() != nil {
		return Span{}, false
	}
	return s, true
}

func (v *netVector) part(off, n int) (Span, error) {
	if off < 0 || n < 0 || off > v.n-n {
		return Span{}, fmt.Errorf("cuda: elements %d to %d of a vector of %d", off, off+n, v.n)
	}
	return v.d.span(v.Region(off, n))
}

func (v *netVector) all() Span {
	if v.n == 0 {
		return Span{}
	}
	return v.m.m.All()
}

// other is the storage of x, which is to be as long as v and of the same device.
func (v *netVector) other(what string, x device.Vector) (Span, error) {
	o, ok := x.(*netVector)
	if !ok || o.d != v.d {
		return Span{}, fmt.Errorf("cuda: %s: vector %T belongs to another device", what, x)
	}
	if o.n != v.n {
		return Span{}, fmt.Errorf("cuda: %s: vector of %d elements where one of %d is needed", what, o.n, v.n)
	}
	return o.all(), nil
}

// ReadAt implements device.Vector.
func (v *netVector) ReadAt(dst []float32, off int) error {
	s, err := v.part(off, len(dst))
	if err == nil {
		err = v.d.stream.CopyOut(Bytes(dst), s)
	}
	if err == nil {
		err = v.d.stream.Synchronize()
	}
	return v.d.explain(err)
}

// ReadAt64 implements device.Vector.
func (v *netVector) ReadAt64(dst []float64, off int) error {
	x := make([]float32, len(dst))
	if err := v.ReadAt(x, off); err != nil {
		return err
	}
	for i, a := range x {
		dst[i] = float64(a)
	}
	return nil
}

// WriteAt implements device.Vector.
func (v *netVector) WriteAt(src []float32, off int) error {
	s, err := v.part(off, len(src))
	if err == nil {
		err = v.d.stream.CopyIn(s, Bytes(src))
	}
	if err == nil {
		err = v.refresh()
	}
	return v.d.explain(err)
}

// WriteAt64 implements device.Vector.
func (v *netVector) WriteAt64(src []float64, off int) error {
	x := make([]float32, len(src))
	for i, a := range src {
		x[i] = float32(a)
	}
	return v.WriteAt(x, off)
}

// Copy implements device.Vector.
func (v *netVector) Copy(x device.Vector) error {
	s, err := v.other("copy", x)
	if err != nil || x == device.Vector(v) {
		return err
	}
	if err = v.d.stream.Copy(v.all(), s); err == nil {
		err = v.refresh()
	}
	return v.d.explain(err)
}

// launch runs a kernel of vector.cu with a thread an element.
func (v *netVector) launch(name string, args ...any) error {
	if v.n == 0 {
		return nil
	}
	k, err := v.d.kernel("vector.cu", name, v.d.narrow())
	if err != nil {
		return err
	}
	grid, block := v.d.flat(v.n)
	if err = v.d.stream.Launch(k, grid, block, 0, args...); err == nil && v.d.opts.DebugSync {
		err = v.d.stream.Synchronize()
	}
	if err != nil {
		return v.d.explain(fmt.Errorf("cuda: %s of %d elements: %w", name, v.n, err))
	}
	return nil
}

// Fill implements device.Vector.
func (v *netVector) Fill(a float64) error {
	return v.launch("vec_fill", v.all(), v.narrowed(), float32(a), int64(v.n))
}

// AddScaled implements device.Vector.
func (v *netVector) AddScaled(a float64, x device.Vector) error {
	s, err := v.other("add scaled", x)
	if err != nil {
		return err
	}
	return v.launch("vec_add_scaled", v.all(), v.narrowed(), float32(a), s, int64(v.n))
}

// exempt is the last step's spans without decay, in GPU memory.
type exempt struct {
	spans  []device.Span
	memory *Memory
}

// exemptions writes spans to GPU memory unless they are there.
func (d *Net) exemptions(spans []device.Span) (Span, error) {
	if len(spans) == 0 {
		return Span{}, nil
	}
	e := &d.exempt
	if e.memory != nil && slices.Equal(spans, e.spans) {
		return e.memory.All(), nil
	}
	if e.memory != nil {
		m := e.memory
		e.memory = nil
		if err := m.Close(); err != nil {
			return Span{}, err
		}
	}
	ends := make([]int64, 0, 2*len(spans))
	for _, s := range spans {
		ends = append(ends, int64(s.Off), int64(s.Off+s.Len))
	}
	m, err := d.c.Alloc(8 * int64(len(ends)))
	if err != nil {
		return Span{}, err
	}
	if err := d.stream.CopyIn(m.All(), Bytes(ends)); err != nil {
		return Span{}, errors.Join(err, m.Close())
	}
	e.spans, e.memory = slices.Clone(spans), m
	return m.All(), nil
}

// SGD implements device.Vector. Where the loss is scaled, a step with a gradient that is not finite is skipped, and the scale adjusted.
func (v *netVector) SGD(grad, momentum device.Vector, s device.SGD) error {
	return v.sgd(grad, momentum, s, Span{}, Span{})
}

// sgd is SGD with the rate and the scale of numbers, two elements, unless that is empty. Unless guard is empty the step is made only where its
// one element is finite.
func (v *netVector) sgd(grad, momentum device.Vector, s device.SGD, numbers, guard Span) error {
	if err := s.Check(v.n); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	g, err := v.other("sgd: gradient", grad)
	if err != nil {
		return err
	}
	m, err := v.other("sgd: momentum", momentum)
	if err != nil {
		return err
	}
	spans, err := v.d.exemptions(s.NoDecay)
	if err != nil {
		return v.d.explain(fmt.Errorf("cuda: sgd: %w", err))
	}
	nesterov := int32(0)
	if s.Nesterov {
		nesterov = 1
	}
	scale := v.d.scale()
	if scale.Bytes() > 0 {
		if err := v.launch("vec_check", g, int64(v.n), scale); err != nil {
			return err
		}
	}
	err = v.launch("vec_sgd", v.all(), v.narrowed(), g, m, int64(v.n), float32(s.Rate), float32(s.Momentum), float32(s.Decay), float32(s.Scale), nesterov,
		spans, int32(len(s.NoDecay)), numbers, guard, scale)
	if err == nil && scale.Bytes() > 0 {
		err = v.d.nextScale()
	}
	return err
}

// sum is the sum of what a kernel finds of each block.
func (v *netVector) sum(name string) (float64, error) {
	if v.n == 0 {
		return 0, nil
	}
	if err := v.launch(name, v.all(), int64(v.n), v.d.sums.All()); err != nil {
		return 0, err
	}
	k, err := v.d.kernel("vector.cu", "vec_total", v.d.narrow())
	if err != nil {
		return 0, err
	}
	grid, block := v.d.flat(v.n)
	var x [1]float64
	err = v.d.stream.Launch(k, Dim{}, block, 0, v.d.sums.All(), int32(grid.X))
	if err == nil {
		err = v.d.stream.CopyOut(Bytes(x[:]), v.d.sums.Span(8*int64(grid.X), 8))
	}
	if err == nil {
		err = v.d.stream.Synchronize()
	}
	return x[0], v.d.explain(err)
}

// Norm implements device.Vector.
func (v *netVector) Norm() (float64, error) {
	s, err := v.sum("vec_squares")
	return math.Sqrt(s), err
}

// Finite implements device.Vector.
func (v *netVector) Finite() (bool, error) {
	s, err := v.sum("vec_strange")
	return s == 0, err
}
