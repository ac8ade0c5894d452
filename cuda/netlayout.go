//go:build gpu && cgo

package cuda

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// The layouts of a Net: tensors of rank 4 have their second dimension last.
const (
	rowMajor     device.Layout = ""
	channelsLast device.Layout = "NHWC" // activations NHWC, weights of convolutions OHWI
)

// Layout implements device.Device.
func (d *Net) Layout(t op.Type, _ device.Role) device.Layout {
	if t.DType != op.Float32 || len(t.Shape) != 4 {
		return rowMajor
	}
	return channelsLast
}

// Upload implements device.Device.
func (d *Net) Upload(r device.Region, l device.Layout, src op.Tensor) error {
	if err := d.upload(r, l, src); err != nil {
		return fmt.Errorf("cuda: upload %v: %w", src.Type(), d.explain(err))
	}
	return nil
}

func (d *Net) upload(r device.Region, l device.Layout, src op.Tensor) error {
	to, err := d.span(r)
	if err != nil {
		return err
	}
	b, err := stored(r, l, src)
	if err != nil {
		return err
	}
	if b == nil {
		host, err := device.NewHostMemory(r.Bytes)
		if err != nil {
			return err
		}
		there := device.Region{Memory: host, Bytes: r.Bytes}
		if err := store(there, l, src); err != nil {
			return err
		}
		if b, err = device.HostSlice[uint8](there); err != nil {
			return err
		}
	}
	return d.stream.CopyIn(to, b)
}

// Download implements device.Device.
func (d *Net) Download(dst op.Tensor, r device.Region, l device.Layout) error {
	if err := d.download(dst, r, l); err != nil {
		return fmt.Errorf("cuda: download %v: %w", dst.Type(), d.explain(err))
	}
	return nil
}

func (d *Net) download(dst op.Tensor, r device.Region, l device.Layout) error {
	from, err := d.span(r)
	if err != nil {
		return err
	}
	b, err := stored(r, l, dst)
	if err != nil {
		return err
	}
	var there device.Region
	if b == nil {
		host, err := device.NewHostMemory(r.Bytes)
		if err != nil {
			return err
		}
		there = device.Region{Memory: host, Bytes: r.Bytes}
		if b, err = device.HostSlice[uint8](there); err != nil {
			return err
		}
	}
	if err := d.stream.CopyOut(b, from); err != nil {
		return err
	}
	if err := d.stream.Synchronize(); err != nil || there.Memory == nil {
		return err
	}
	return load(dst, there, l)
}

// stored is the data of t where it lies on the host as it does in r, else nil.
func stored(r device.Region, l device.Layout, t op.Tensor) ([]byte, error) {
	if l != rowMajor && l != channelsLast || l == channelsLast && (len(t.Shape) != 4 || r.Bytes != 4*t.Shape.Size()) {
		return nil, fmt.Errorf("no layout %q of rank %d in %d bytes", l, len(t.Shape), r.Bytes)
	}
	if l != rowMajor || r.Bytes != t.Type().Bytes() {
		return nil, nil
	}
	var b []byte
	switch x := t.Data.(type) {
	case []float32:
		b = Bytes(x)
	case []float64:
		b = Bytes(x)
	case []int32:
		b = Bytes(x)
	case []uint8:
		b = x
	}
	if len(b) != r.Bytes {
		return nil, fmt.Errorf("%d bytes of elements for a region of %d", len(b), r.Bytes)
	}
	return b, nil
}

// store writes t to a region of host memory as layout l has it, and load is its inverse.
func store(to device.Region, l device.Layout, t op.Tensor) error {
	if l == rowMajor {
		return device.UploadRowMajor(to, t)
	}
	x, err := device.HostSlice[float32](to)
	if err != nil {
		return err
	}
	return lastChannels(t, func(at, logical int, f32 []float32, f64 []float64) {
		if f32 != nil {
			x[at] = f32[logical]
		} else {
			x[at] = float32(f64[logical])
		}
	})
}

func load(t op.Tensor, from device.Region, l device.Layout) error {
	if l == rowMajor {
		return device.DownloadRowMajor(t, from)
	}
	x, err := device.HostSlice[float32](from)
	if err != nil {
		return err
	}
	return lastChannels(t, func(at, logical int, f32 []float32, f64 []float64) {
		if f32 != nil {
			f32[logical] = x[at]
		} else {
			f64[logical] = float64(x[at])
		}
	})
}

// lastChannels calls f for each element of t, of rank 4, with its place in memory, its row-major index and the data.
func lastChannels(t op.Tensor, f func(at, logical int, f32 []float32, f64 []float64)) error {
	f32, _ := t.Data.([]float32)
	f64, _ := t.Data.([]float64)
	if max(len(f32), len(f64)) != t.Shape.Size() {
		return fmt.Errorf("%v is not of a floating-point type, or has too few elements", t.Type())
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
