package device

import (
	"fmt"
	"math"
	"unsafe"

	"onlinerna/nn/op"
)

// hostAlign is the alignment of host memory: a cache line, and the widest vector register.
const hostAlign = 64

// HostMemory is a Memory in the host's address space. It starts at a multiple of 64 bytes.
type HostMemory struct{ buf []byte }

var _ Memory = (*HostMemory)(nil)

// NewHostMemory allocates n zero bytes.
func NewHostMemory(n int) (*HostMemory, error) {
	if n < 0 || n > math.MaxInt-hostAlign {
		return nil, fmt.Errorf("host memory of %d bytes", n)
	}
	buf := make([]byte, n+hostAlign)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf))) % hostAlign)
	return &HostMemory{buf[skip : skip+n : skip+n]}, nil
}

// ViewHostMemory is b as a memory, for bytes that are not Go's. Tensors lie in it where their elements are aligned.
func ViewHostMemory(b []byte) *HostMemory { return &HostMemory{b[:len(b):len(b)]} }

// Bytes is the size of m, 0 once it is freed.
func (m *HostMemory) Bytes() int { return len(m.buf) }

// Free lets the garbage collector have the memory.
func (m *HostMemory) Free() { m.buf = nil }

// HostElement is an element type of tensors on the host.
type HostElement interface {
	float32 | float64 | int32 | uint16 | uint8
}

// HostSlice is region r of a HostMemory as a slice, sharing memory. Offset and size have to be multiples
// of the element's size. The zero Region, as that of no workspace, is an empty slice.
func HostSlice[T HostElement](r Region) ([]T, error) {
	if r == (Region{}) {
		return []T{}, nil
	}
	m, ok := r.Memory.(*HostMemory)
	if !ok {
		return nil, fmt.Errorf("region of a %T, not of host memory", r.Memory)
	}
	if r.Offset < 0 || r.Bytes < 0 || r.Offset > len(m.buf)-r.Bytes {
		return nil, fmt.Errorf("region of %d bytes at %d lies outside %d bytes of host memory", r.Bytes, r.Offset,
			len(m.buf))
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	if r.Offset%size != 0 || r.Bytes%size != 0 {
		return nil, fmt.Errorf("region of %d bytes at %d does not hold whole elements of type %T", r.Bytes,
			r.Offset, zero)
	}
	if r.Bytes == 0 {
		return []T{}, nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&m.buf[r.Offset])), r.Bytes/size), nil
}

// HostTensor is region r of a HostMemory as a row-major tensor of type t, sharing memory.
func HostTensor(r Region, t op.Type) (op.Tensor, error) {
	if r.Bytes != t.Bytes() {
		return op.Tensor{}, fmt.Errorf("region of %d bytes for %v of %d", r.Bytes, t, t.Bytes())
	}
	x := op.Tensor{Shape: t.Shape}
	var err error
	switch t.DType {
	case op.Float32:
		x.Data, err = HostSlice[float32](r)
	case op.Float64:
		x.Data, err = HostSlice[float64](r)
	case op.Int32:
		x.Data, err = HostSlice[int32](r)
	case op.Uint8:
		x.Data, err = HostSlice[uint8](r)
	default:
		err = fmt.Errorf("no tensors of type %v", t)
	}
	return x, err
}

// UploadRowMajor is Device.Upload for the empty layout in host memory.
func UploadRowMajor(r Region, src op.Tensor) error {
	dst, err := HostTensor(r, stored(r, src.Type()))
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	return ConvertTensor(dst, src)
}

// DownloadRowMajor is Device.Download for the empty layout in host memory.
func DownloadRowMajor(dst op.Tensor, r Region) error {
	src, err := HostTensor(r, stored(r, dst.Type()))
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	return ConvertTensor(dst, src)
}

// stored is the type under which region r holds a tensor that the host has as t: the size tells float32
// from float64.
func stored(r Region, t op.Type) op.Type {
	n := t.Shape.Size()
	switch {
	case t.DType == op.Float64 && r.Bytes == n*op.Float32.Size():
		t.DType = op.Float32
	case t.DType == op.Float32 && r.Bytes == n*op.Float64.Size():
		t.DType = op.Float64
	}
	return t
}

// ConvertTensor copies src to dst, which has the same shape and the same element type, or float32 for
// float64 or the reverse.
func ConvertTensor(dst, src op.Tensor) error {
	if !dst.Shape.Equal(src.Shape) {
		return fmt.Errorf("copy of %v to %v: shapes differ", src.Type(), dst.Type())
	}
	ok := true
	switch d := dst.Data.(type) {
	case []float32:
		ok = convertFrom(d, src.Data)
	case []float64:
		ok = convertFrom(d, src.Data)
	case []int32:
		ok = copyFrom(d, src.Data)
	case []uint8:
		ok = copyFrom(d, src.Data)
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("copy of %v to %v: element types or sizes do not fit", src.Type(), dst.Type())
	}
	return nil
}

func convertFrom[T Float](dst []T, src any) bool {
	switch s := src.(type) {
	case []float32:
		return convert(dst, s)
	case []float64:
		return convert(dst, s)
	}
	return false
}

func copyFrom[T HostElement](dst []T, src any) bool {
	s, ok := src.([]T)
	return ok && len(s) == len(dst) && copy(dst, s) == len(s)
}

// convert copies src to dst and reports whether the lengths agree.
func convert[T, S Float](dst []T, src []S) bool {
	if len(src) != len(dst) {
		return false
	}
	if s, ok := any(src).([]T); ok {
		copy(dst, s)
		return true
	}
	for i, a := range src {
		dst[i] = T(a)
	}
	return true
}
