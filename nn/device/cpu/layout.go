package cpu

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// Layout implements device.Device.
func (d *Device) Layout(t op.Type, role device.Role) device.Layout { return work.Layout(t, role) }

// dimensions lists the logical dimensions of a rank 4 tensor in the storage order of layout l.
func dimensions(l device.Layout) ([4]int, bool) {
	switch l {
	case work.NHWC, work.Stored:
		return [4]int{0, 2, 3, 1}, true
	case work.HWIO:
		return [4]int{2, 3, 1, 0}, true
	}
	return [4]int{}, false
}

// Upload implements device.Device.
func (d *Device) Upload(r device.Region, l device.Layout, src op.Tensor) error {
	if l == work.RowMajor {
		return device.UploadRowMajor(r, src)
	}
	x, err := permuted(r, l, src.Shape)
	if err != nil {
		return fmt.Errorf("cpu: upload %v: %w", src.Type(), err)
	}
	switch s := src.Data.(type) {
	case []float32:
		err = store(x, s)
	case []float64:
		err = store(x, s)
	default:
		err = fmt.Errorf("element type does not fit layout %s", l)
	}
	if err != nil {
		return fmt.Errorf("cpu: upload %v: %w", src.Type(), err)
	}
	return nil
}

// Download implements device.Device.
func (d *Device) Download(dst op.Tensor, r device.Region, l device.Layout) error {
	if l == work.RowMajor {
		return device.DownloadRowMajor(dst, r)
	}
	x, err := permuted(r, l, dst.Shape)
	if err != nil {
		return fmt.Errorf("cpu: download %v: %w", dst.Type(), err)
	}
	switch s := dst.Data.(type) {
	case []float32:
		err = load(s, x)
	case []float64:
		err = load(s, x)
	default:
		err = fmt.Errorf("element type does not fit layout %s", l)
	}
	if err != nil {
		return fmt.Errorf("cpu: download %v: %w", dst.Type(), err)
	}
	return nil
}

// stored is a rank 4 tensor in memory: its extents in storage order, and the step of the logical row-major index along
// each.
type stored struct {
	data   []float32
	half   []uint16 // if elements are bfloat16
	extent [4]int
	stride [4]int
}

func permuted(r device.Region, l device.Layout, shape op.Shape) (stored, error) {
	o, ok := dimensions(l)
	if l == work.StoredRows { // a line
		o, ok, shape = [4]int{0, 1, 2, 3}, true, op.Shape{1, 1, 1, shape.Size()}
	}
	if !ok || len(shape) != 4 {
		return stored{}, fmt.Errorf("no layout %q of rank %d", l, len(shape))
	}
	var x stored
	var err error
	if l == work.Stored || l == work.StoredRows {
		x.half, err = device.HostSlice[uint16](r)
	} else {
		x.data, err = device.HostSlice[float32](r)
	}
	if err != nil {
		return stored{}, err
	}
	if x.size() != shape.Size() {
		return stored{}, fmt.Errorf("region of %d bytes for %d elements", r.Bytes, shape.Size())
	}
	logical := [4]int{shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}
	for i, dim := range o {
		x.extent[i], x.stride[i] = shape[dim], logical[dim]
	}
	return x, nil
}

func (x stored) size() int { return max(len(x.data), len(x.half)) }

// rows calls f for each innermost row of x, with its start in storage and the logical index of its first element.
func (x stored) rows(f func(row, at int)) {
	row := 0
	for a := range x.extent[0] {
		for b := range x.extent[1] {
			for c := range x.extent[2] {
				f(row, a*x.stride[0]+b*x.stride[1]+c*x.stride[2])
				row += x.extent[3]
			}
		}
	}
}

func store[T device.Float](x stored, src []T) error {
	if len(src) != x.size() {
		return fmt.Errorf("%d elements for %d", len(src), x.size())
	}
	n := x.extent[3]
	x.rows(func(row, at int) {
		if x.half != nil {
			for i := range x.half[row:][:n] {
				x.half[row+i] = kern.Bits(float32(src[at+i*x.stride[3]]))
			}
			return
		}
		for i := range x.data[row:][:n] {
			x.data[row+i] = float32(src[at+i*x.stride[3]])
		}
	})
	return nil
}

func load[T device.Float](dst []T, x stored) error {
	if len(dst) != x.size() {
		return fmt.Errorf("%d elements for %d", x.size(), len(dst))
	}
	n := x.extent[3]
	x.rows(func(row, at int) {
		if x.half != nil {
			for i, v := range x.half[row:][:n] {
				dst[at+i*x.stride[3]] = T(kern.Float32(v))
			}
			return
		}
		for i, v := range x.data[row:][:n] {
			dst[at+i*x.stride[3]] = T(v)
		}
	})
	return nil
}
