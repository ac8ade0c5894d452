//go:build gpu && cgo

package net

import (
	"fmt"
	"strings"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// The layouts of a Net: tensors of rank 4 have their second dimension last, and activations have the precision's width.
const (
	rowMajor     device.Layout = ""
	channelsLast device.Layout = "NHWC" // activations NHWC, weights of convolutions OHWI
	scaledSuffix               = "*S"
)

// narrowSuffix ends the names of layouts of 16 bits.
var narrowSuffix = [...]string{number.Float32: "", number.TF32: "", number.BFloat16: ":bf16", number.Float16: ":f16"}

// form is a decoded layout.
type form struct {
	last   bool // dimension 1 of a tensor of rank 4 is stored last
	narrow bool // elements have 16 bits, not 32
	scaled bool // elements are multiplied by the loss scale
}

// narrow reports whether activations have 16 bits.
func (d *Device) narrow() bool { return d.opts.Precision.Bytes() == 2 }

// layout is the name of a form.
func (d *Device) layout(f form) device.Layout {
	l := rowMajor
	if f.last {
		l = channelsLast
	}
	if f.narrow {
		l += device.Layout(narrowSuffix[d.opts.Precision])
	}
	if f.scaled {
		l += scaledSuffix
	}
	return l
}

// form is the inverse of layout. ok is false for a layout of another device.
func (d *Device) form(l device.Layout) (f form, ok bool) {
	s := string(l)
	s, f.scaled = strings.CutSuffix(s, scaledSuffix)
	if d.narrow() {
		s, f.narrow = strings.CutSuffix(s, narrowSuffix[d.opts.Precision])
	}
	f.last = s == string(channelsLast)
	return f, d.layout(f) == l && (!f.scaled || d.scaling())
}

// bytes is the storage of a tensor in a form, in bytes.
func (f form) bytes(t op.Type) int {
	if f.narrow {
		return 2 * t.Shape.Size()
	}
	return t.Bytes()
}

// Layout implements device.Device.
func (d *Device) Layout(t op.Type, role device.Role) device.Layout {
	if t.DType != op.Float32 || len(t.Shape) != 4 {
		return rowMajor
	}
	return d.layout(form{last: true, narrow: role == device.Data && d.narrow()})
}

// Bytes implements device.Sizer.
func (d *Device) Bytes(t op.Type, l device.Layout) int {
	f, _ := d.form(l)
	return f.bytes(t)
}

// Upload implements device.Device.
func (d *Device) Upload(r device.Region, l device.Layout, src op.Tensor) error {
	if err := d.upload(r, l, src); err != nil {
		return fmt.Errorf("cuda: upload %v: %w", src.Type(), d.Explain(err))
	}
	return nil
}

func (d *Device) upload(r device.Region, l device.Layout, src op.Tensor) error {
	to, err := d.span(r)
	if err != nil {
		return err
	}
	b, err := d.stored(r, l, src)
	if err == nil && b == nil {
		b, err = d.store(r.Bytes, l, src)
	}
	if err == nil {
		err = d.stream.CopyIn(to, b)
	}
	if v := vectorOf(r); err == nil && v != nil {
		err = v.refresh()
	}
	return err
}

// Download implements device.Device. Scaled elements are divided by the current loss scale.
func (d *Device) Download(dst op.Tensor, r device.Region, l device.Layout) error {
	if err := d.download(dst, r, l); err != nil {
		return fmt.Errorf("cuda: download %v: %w", dst.Type(), d.Explain(err))
	}
	return nil
}

func (d *Device) download(dst op.Tensor, r device.Region, l device.Layout) error {
	from, err := d.span(r)
	if err != nil {
		return err
	}
	b, err := d.stored(r, l, dst)
	if err != nil {
		return err
	}
	direct := b != nil
	if !direct {
		host, err := device.NewHostMemory(r.Bytes) // aligned for any element
		if err != nil {
			return err
		}
		if b, err = device.HostSlice[uint8](device.Region{Memory: host, Bytes: r.Bytes}); err != nil {
			return err
		}
	}
	if err := d.stream.CopyOut(b, from); err != nil {
		return err
	}
	if err := d.stream.Synchronize(); err != nil || direct {
		return err
	}
	return d.load(dst, b, l)
}

// stored returns the data of t if the host stores it as r does, else nil.
func (d *Device) stored(r device.Region, l device.Layout, t op.Tensor) ([]byte, error) {
	f, ok := d.form(l)
	if n := t.Shape.Size(); !ok || f.last && len(t.Shape) != 4 || f != (form{}) &&
		r.Bytes != f.bytes(op.Type{DType: op.Float32, Shape: t.Shape}) {
		return nil, fmt.Errorf("no layout %q of rank %d and %d elements in %d bytes", l, len(t.Shape), n, r.Bytes)
	}
	if f != (form{}) || r.Bytes != t.Type().Bytes() {
		return nil, nil
	}
	var b []byte
	switch x := t.Data.(type) {
	case []float32:
		b = driver.Bytes(x)
	case []float64:
		b = driver.Bytes(x)
	case []int32:
		b = driver.Bytes(x)
	case []uint8:
		b = x
	}
	if len(b) != r.Bytes {
		return nil, fmt.Errorf("%d bytes of elements for a region of %d", len(b), r.Bytes)
	}
	return b, nil
}

// store returns t in layout l, in n bytes; load is its inverse.
func (d *Device) store(n int, l device.Layout, t op.Tensor) ([]byte, error) {
	if l == rowMajor {
		host, err := device.NewHostMemory(n)
		if err != nil {
			return nil, err
		}
		r := device.Region{Memory: host, Bytes: n}
		if err := device.UploadRowMajor(r, t); err != nil {
			return nil, err
		}
		return device.HostSlice[uint8](r)
	}
	f, _ := d.form(l)
	s, err := d.scaleOf(f)
	if err != nil {
		return nil, err
	}
	x := make([]float32, t.Shape.Size())
	err = inOrder(f, t, func(at, logical int, f32 []float32, f64 []float64) {
		if f32 != nil {
			x[at] = f32[logical] * s
		} else {
			x[at] = float32(f64[logical]) * s
		}
	})
	if f.narrow {
		return driver.Bytes(number.Narrow(d.opts.Precision, x)), err
	}
	return driver.Bytes(x), err
}

func (d *Device) load(t op.Tensor, b []byte, l device.Layout) error {
	if l == rowMajor {
		host, err := device.NewHostMemory(len(b))
		if err != nil {
			return err
		}
		r := device.Region{Memory: host, Bytes: len(b)}
		to, err := device.HostSlice[uint8](r)
		if err != nil {
			return err
		}
		copy(to, b)
		return device.DownloadRowMajor(t, r)
	}
	f, _ := d.form(l)
	s, err := d.scaleOf(f)
	if err != nil {
		return err
	}
	x := make([]float32, t.Shape.Size())
	if f.narrow {
		u := make([]uint16, len(x))
		copy(driver.Bytes(u), b)
		x = number.Widen(d.opts.Precision, u)
	} else {
		copy(driver.Bytes(x), b)
	}
	return inOrder(f, t, func(at, logical int, f32 []float32, f64 []float64) {
		if v := x[at] / s; f32 != nil {
			f32[logical] = v
		} else {
			f64[logical] = float64(v)
		}
	})
}

// scaleOf is the factor of elements in a form.
func (d *Device) scaleOf(f form) (float32, error) {
	if !f.scaled {
		return 1, nil
	}
	s, err := d.LossScale()
	return float32(s.Scale), err
}

// inOrder calls f for each element of t with its place in memory, its row-major index and the data.
func inOrder(l form, t op.Tensor, f func(at, logical int, f32 []float32, f64 []float64)) error {
	f32, _ := t.Data.([]float32)
	f64, _ := t.Data.([]float64)
	n := t.Shape.Size()
	if max(len(f32), len(f64)) != n {
		return fmt.Errorf("%v does not have a floating-point type, or has too few elements", t.Type())
	}
	if !l.last || n == 0 {
		for i := range n {
			f(i, i, f32, f64)
		}
		return nil
	}
	channels, pixels := t.Shape[1], t.Shape[2]*t.Shape[3]
	at := 0
	for image := range t.Shape[0] {
		for p := range pixels {
			for c := range channels {
				f(at, (image*channels+c)*pixels+p, f32, f64)
				at++
			}
		}
	}
	return nil
}
