//go:build gpu && cgo

package net

import (
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

// slice is a range of a vector's elements on the GPU.
type slice struct {
	v      *vector
	off, n int
}

var (
	_ device.Sliced       = (*vector)(nil)
	_ driver.ResidentSink = slice{}
)

// Slice implements device.Sliced.
func (v *vector) Slice(off, n int) device.Slice { return slice{v, off, n} }

// Len implements device.Slice.
func (p slice) Len() int { return p.n }

func (p slice) check(off, n int) error {
	if off < 0 || off > p.n-n {
		return fmt.Errorf("cuda: elements %d to %d of a slice of %d", off, off+n, p.n)
	}
	return nil
}

// ReadAt implements device.Slice.
func (p slice) ReadAt(dst []float32, off int) error {
	if err := p.check(off, len(dst)); err != nil {
		return err
	}
	return p.v.ReadAt(dst, p.off+off)
}

// WriteAt implements device.Slice.
func (p slice) WriteAt(src []float32, off int) error {
	if err := p.check(off, len(src)); err != nil {
		return err
	}
	return p.v.WriteAt(src, p.off+off)
}

// Float32Span implements driver.Resident.
func (p slice) Float32Span(off, n int) (driver.Span, bool) {
	if p.check(off, n) != nil {
		return driver.Span{}, false
	}
	return p.v.Float32Span(p.off+off, n)
}

// Float32Written implements driver.ResidentSink.
func (p slice) Float32Written() error { return p.v.Float32Written() }
