//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

// vector is a device.Vector in GPU memory.
type vector struct {
	d *Device
	m *memory
	n int

	copy *driver.Memory // the elements in 16 bits for ops that read them so; nil until one does
}

var (
	_ device.Vector       = (*vector)(nil)
	_ driver.ResidentSink = (*vector)(nil)
)

// NewVector implements device.Device.
func (d *Device) NewVector(n int) (device.Vector, error) {
	if n < 0 || n > math.MaxInt/4 {
		return nil, fmt.Errorf("cuda: vector of %d elements", n)
	}
	m, err := d.newMemory(4 * n)
	if err != nil {
		return nil, fmt.Errorf("cuda: vector of %d elements: %w", n, err)
	}
	v := &vector{d: d, m: m, n: n}
	m.vector = v
	return v, nil
}

// vectorOf is the vector that contains a region, or nil.
func vectorOf(r device.Region) *vector {
	if m, ok := r.Memory.(*memory); ok {
		return m.vector
	}
	return nil
}

// narrow is the 16-bit copy of a part of v. After the first call every writer of v also writes the copy or calls
// refresh.
func (v *vector) narrow(part driver.Span) (driver.Span, error) {
	if v.copy == nil {
		m, err := v.d.c.Alloc(2 * int64(v.n))
		if err != nil {
			return driver.Span{}, fmt.Errorf("cuda: %d weights in %v: %w", v.n, v.d.opts.Precision, err)
		}
		v.copy = m
		if err := v.refresh(); err != nil {
			return driver.Span{}, err
		}
	}
	return v.copy.Span(part.Offset()/2, part.Bytes()/2), nil
}

// narrowed is the 16-bit copy, empty if there is none.
func (v *vector) narrowed() driver.Span {
	if v.copy == nil {
		return driver.Span{}
	}
	return v.copy.All()
}

// refresh updates the 16-bit copy, if there is one, after v was written.
func (v *vector) refresh() error {
	if v.copy == nil {
		return nil
	}
	return v.launch("vec_narrow", v.all(), v.copy.All().Written(), int64(v.n))
}

// Float32Written implements driver.ResidentSink.
func (v *vector) Float32Written() error { return v.refresh() }

// Len implements device.Vector.
func (v *vector) Len() int { return v.n }

// Region implements device.Vector.
func (v *vector) Region(off, n int) device.Region {
	return device.Region{Memory: v.m, Offset: 4 * off, Bytes: 4 * n}
}

// Free implements device.Vector.
func (v *vector) Free() {
	v.m.Free()
	if v.copy != nil {
		v.d.failed = errors.Join(v.d.failed, v.copy.Close())
	}
}

// Float32Span implements driver.Resident: it waits for the device's work.
func (v *vector) Float32Span(off, n int) (driver.Span, bool) {
	s, err := v.part(off, n)
	if err != nil || v.d.stream.Synchronize() != nil {
		return driver.Span{}, false
	}
	return s, true
}

func (v *vector) part(off, n int) (driver.Span, error) {
	if off < 0 || n < 0 || off > v.n-n {
		return driver.Span{}, fmt.Errorf("cuda: elements %d to %d of a vector of %d", off, off+n, v.n)
	}
	return v.d.span(v.Region(off, n))
}

func (v *vector) all() driver.Span {
	if v.n == 0 {
		return driver.Span{}
	}
	return v.m.m.All()
}

// other is the storage of x, which must belong to the same device and be as long as v.
func (v *vector) other(what string, x device.Vector) (driver.Span, error) {
	o, ok := x.(*vector)
	if !ok || o.d != v.d {
		return driver.Span{}, fmt.Errorf("cuda: %s: vector %T belongs to another device", what, x)
	}
	if o.n != v.n {
		return driver.Span{}, fmt.Errorf("cuda: %s: the vector has %d elements, want %d", what, o.n, v.n)
	}
	return o.all(), nil
}

// ReadAt implements device.Vector.
func (v *vector) ReadAt(dst []float32, off int) error {
	s, err := v.part(off, len(dst))
	if err == nil {
		err = v.d.stream.CopyOut(driver.Bytes(dst), s)
	}
	if err == nil {
		err = v.d.stream.Synchronize()
	}
	return v.d.Explain(err)
}

// ReadAt64 implements device.Vector.
func (v *vector) ReadAt64(dst []float64, off int) error {
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
func (v *vector) WriteAt(src []float32, off int) error {
	s, err := v.part(off, len(src))
	if err == nil {
		err = v.d.stream.CopyIn(s, driver.Bytes(src))
	}
	if err == nil {
		err = v.refresh()
	}
	return v.d.Explain(err)
}

// WriteAt64 implements device.Vector.
func (v *vector) WriteAt64(src []float64, off int) error {
	x := make([]float32, len(src))
	for i, a := range src {
		x[i] = float32(a)
	}
	return v.WriteAt(x, off)
}

// Copy implements device.Vector.
func (v *vector) Copy(x device.Vector) error {
	s, err := v.other("copy", x)
	if err != nil || x == device.Vector(v) {
		return err
	}
	if err = v.d.stream.Copy(v.all(), s); err == nil {
		err = v.refresh()
	}
	return v.d.Explain(err)
}

// launch runs a kernel of vector.cu with one thread for each element.
func (v *vector) launch(name string, args ...any) error {
	if v.n == 0 {
		return nil
	}
	grid, _ := v.d.flat(v.n)
	return v.launchOn(name, int(grid.X), args...)
}

// launchOn runs a kernel of vector.cu on this many blocks.
func (v *vector) launchOn(name string, blocks int, args ...any) error {
	k, err := v.d.kernel("vector.cu", name, v.d.narrow())
	if err != nil {
		return err
	}
	return v.launchKernel(k, name, driver.Dim{X: blocks}, args...)
}

// launchKernel runs a kernel on v.
func (v *vector) launchKernel(k *driver.Kernel, name string, grid driver.Dim, args ...any) error {
	_, block := v.d.flat(v.n)
	err := v.d.stream.Launch(k, grid, block, 0, args...)
	if err == nil && v.d.opts.DebugSync {
		err = v.d.stream.Synchronize()
	}
	if err != nil {
		return v.d.Explain(fmt.Errorf("cuda: %s of %d elements: %w", name, v.n, err))
	}
	return nil
}

// Fill implements device.Vector.
func (v *vector) Fill(a float64) error {
	return v.launch("vec_fill", v.all().Written(), v.narrowed().Written(), float32(a), int64(v.n))
}

// AddScaled implements device.Vector.
func (v *vector) AddScaled(a float64, x device.Vector) error {
	s, err := v.other("add scaled", x)
	if err != nil {
		return err
	}
	return v.launch("vec_add_scaled", v.all().Updated(), v.narrowed().Written(), float32(a), s, int64(v.n))
}

// Lerp implements device.Vector.
func (v *vector) Lerp(a float64, x device.Vector) error {
	s, err := v.other("lerp", x)
	if err != nil {
		return err
	}
	return v.launch("vec_lerp", v.all().Updated(), v.narrowed().Written(), float32(a), s, int64(v.n))
}

// total is the place of the float64 sum over blocks of x, which a kernel computes; x is as long as v and not empty.
func (v *vector) total(name string, x driver.Span) (driver.Span, error) {
	grid, _ := v.d.flat(v.n)
	sums, all := 8*int64(grid.X), v.d.sums.All()
	if err := v.launch(name, x, int64(v.n), all.Part(0, sums)); err != nil {
		return driver.Span{}, err
	}
	return all.Span(sums, 8), v.launchOn("vec_total", 1, all.Part(sums, 8), int32(grid.X))
}

// sum is the total of v's elements. It waits for the device.
func (v *vector) sum(name string) (float64, error) {
	if v.n == 0 {
		return 0, nil
	}
	var x [1]float64
	at, err := v.total(name, v.all())
	if err == nil {
		err = v.d.stream.CopyOut(driver.Bytes(x[:]), at)
	}
	if err == nil {
		err = v.d.stream.Synchronize()
	}
	return x[0], v.d.Explain(err)
}

// Norm implements device.Vector.
func (v *vector) Norm() (float64, error) {
	s, err := v.sum("vec_squares")
	return math.Sqrt(s), err
}

// Finite implements device.Vector.
func (v *vector) Finite() (bool, error) {
	s, err := v.sum("vec_strange")
	return s == 0, err
}
