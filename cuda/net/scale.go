//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
)

// lossScale is a Scale of vector.cu: the factor of the loss that keeps 16-bit gradients from vanishing. The optimiser's
// steps change it; it is always a power of 2.
type lossScale struct {
	scale, inverse float32
	good, bad      int32
	skipped        int64
}

// As in PyTorch's GradScaler: a skipped step halves the scale, and this many good steps in a row double it.
const (
	firstScale    = 1 << 16
	scaleInterval = 2000
)

var _ device.LossScaler = (*Device)(nil)

// scaling reports whether the loss is scaled.
func (d *Device) scaling() bool { return d.opts.Precision == number.Float16 }

// scale is the memory of the loss scale, empty without one.
func (d *Device) scale() driver.Span {
	if d.loss == nil {
		return driver.Span{}
	}
	return d.loss.All()
}

// scaleFor is scale for gradients of a form, empty for unscaled ones.
func (d *Device) scaleFor(f form) driver.Span {
	if !f.scaled {
		return driver.Span{}
	}
	return d.scale()
}

func (d *Device) startScale() (err error) {
	if d.loss, err = d.c.Alloc(int64(unsafe.Sizeof(lossScale{}))); err != nil {
		return err
	}
	return d.SetLossScale(device.LossScale{Scale: firstScale})
}

// nextScale ends a step of the optimiser.
func (d *Device) nextScale() error {
	k, err := d.kernel("vector.cu", "vec_next_scale", true)
	if err != nil {
		return err
	}
	return d.Explain(d.stream.Launch(k, driver.Dim{}, driver.Dim{}, 0, d.scale().Updated(), int32(scaleInterval)))
}

// LossScale implements device.LossScaler. It waits for the GPU.
func (d *Device) LossScale() (device.LossScale, error) {
	if d.loss == nil {
		return device.LossScale{}, nil
	}
	s := make([]lossScale, 1)
	err := d.stream.CopyOut(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), unsafe.Sizeof(s[0])), d.scale())
	if err == nil {
		err = d.stream.Synchronize()
	}
	return device.LossScale{Scale: float64(s[0].scale), Good: int(s[0].good), Skipped: int(s[0].skipped)},
		d.Explain(err)
}

// SetLossScale implements device.LossScaler.
func (d *Device) SetLossScale(s device.LossScale) error {
	if d.loss == nil {
		return errors.New("cuda: the loss is scaled in precision float16 only")
	}
	if fraction, e := math.Frexp(s.Scale); fraction != .5 || e < -99 || e > 101 || s.Good < 0 ||
		s.Good >= scaleInterval || s.Skipped < 0 {
		return fmt.Errorf("cuda: loss scale %+v: want a power of 2 from 2^-100 to 2^100 and 0 to %d good steps", s,
			scaleInterval-1)
	}
	x := []lossScale{{scale: float32(s.Scale), inverse: float32(1 / s.Scale), good: int32(s.Good),
		skipped: int64(s.Skipped)}}
	return d.Explain(d.stream.CopyIn(d.scale(), unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), unsafe.Sizeof(x[0]))))
}
