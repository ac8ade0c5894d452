package cpu

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// Layout implements device.Device.
func (d *Device) Layout(t op.Type, role device.Role) device.Layout { return work.Layout(t, role) }

// dimensions gives the logical dimensions of a rank 4 tensor in the order in which layout l stores them.
func dimensions(l device.Layout) ([4]int, bool) {
	switch l {
	case work.NHWC:
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

// stored is a rank 4 tensor in memory: its extents in the order of storage, and how far the logical
// row-major index moves with each.
type stored struct {
	data   []float32
	extent [4]int
	stride [4]int
}

func permuted(r device.Region, l device.Layout, shape op.Shape) (stored, error) {
	o, ok := dimensions(l)
	if !ok || len(shape) != 4 {
		return stored{}, fmt.Errorf("no layout %q of rank %d", l, len(shape))
	}
	data, err := device.HostSlice[float32](r)
	if err != nil {
		return stored{}, err
	}
	if len(data) != shape.Size() {
		return stored{}, fmt.Errorf("region of %d bytes for %d elements", r.Bytes, shape.Size())
	}
	logical := [4]int{shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}
	x := stored{data: data}
	for i, dim := range o {
		x.extent[i], x.stride[i] = shape[dim], logical[dim]
	}
	return x, nil
}

// rows calls f for each innermost row of x: its place in storage and the logical index of its first element.
func (x stored) rows(f func(row []float32, at int)) {
	n := x.extent[3]
	rest := x.data
	for a := range x.extent[0] {
		for b := range x.extent[1] {
			for c := range x.extent[2] {
				f(rest[:n], a*x.stride[0]+b*x.stride[1]+c*x.stride[2])
				rest = rest[n:]
			}
		}
	}
}

func store[T device.Float](x stored, src []T) error {
	if len(src) != len(x.data) {
		return fmt.Errorf("%d elements for %d", len(src), len(x.data))
	}
	x.rows(func(row []float32, at int) {
		for i := range row {
			row[i] = float32(src[at+i*x.stride[3]])
		}
	})
	return nil
}

func load[T device.Float](dst []T, x stored) error {
	if len(dst) != len(x.data) {
		return fmt.Errorf("%d elements for %d", len(x.data), len(dst))
	}
	x.rows(func(row []float32, at int) {
		for i, v := range row {
			dst[at+i*x.stride[3]] = T(v)
		}
	})
	return nil
}
