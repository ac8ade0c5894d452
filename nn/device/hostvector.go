package device

import (
	"fmt"
	"math"
	"unsafe"

	"onlinerna/nn/op"
)

// Float is an element type of vectors on the host.
type Float interface{ float32 | float64 }

// HostVector is the storage of a Vector in host memory, with the methods that move numbers without
// computing. A device embeds it and adds the arithmetic.
type HostVector[T Float] struct {
	mem  *HostMemory
	data []T
}

// NewHostVector allocates n zeros.
func NewHostVector[T Float](n int) (*HostVector[T], error) {
	size := sizeof[T]()
	if n < 0 || n > math.MaxInt/2/size {
		return nil, fmt.Errorf("vector of %d elements", n)
	}
	mem, err := NewHostMemory(n * size)
	if err != nil {
		return nil, err
	}
	data, err := HostSlice[T](Region{mem, 0, n * size})
	return &HostVector[T]{mem, data}, err
}

func sizeof[T Float]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// FloatType is the op.DType of T.
func FloatType[T Float]() op.DType {
	if sizeof[T]() == op.Float32.Size() {
		return op.Float32
	}
	return op.Float64
}

// Elements is a Vector in host memory that shows its storage, as a HostVector does.
type Elements[T Float] interface {
	Vector
	Elements() []T
}

// Elements is the storage itself.
func (v *HostVector[T]) Elements() []T { return v.data }

// Float32s returns elements off to off+n themselves, nil if they are out of range or of another type. rna's spaces in
// host memory use it to access the numbers.
func (v *HostVector[T]) Float32s(off, n int) []float32 { return elements[float32](v, off, n) }

// Float64s is Float32s for vectors of float64.
func (v *HostVector[T]) Float64s(off, n int) []float64 { return elements[float64](v, off, n) }

func elements[E, T Float](v *HostVector[T], off, n int) []E {
	s, _ := any(v.data).([]E)
	if off < 0 || n < 0 || off > len(s)-n {
		return nil
	}
	return s[off : off+n : off+n]
}

// HostElements is the storage of x, a vector in host memory that must have n elements of type T.
func HostElements[T Float](x Vector, n int) ([]T, error) {
	h, ok := x.(Elements[T])
	if !ok {
		return nil, fmt.Errorf("vector %T belongs to another device: want one of %vs in host memory", x, FloatType[T]())
	}
	if e := h.Elements(); len(e) == n {
		return e, nil
	}
	return nil, fmt.Errorf("vector of %d elements where one of %d is needed", x.Len(), n)
}

// Len implements Vector.
func (v *HostVector[T]) Len() int { return len(v.data) }

// Region implements Vector.
func (v *HostVector[T]) Region(off, n int) Region {
	size := sizeof[T]()
	return Region{v.mem, off * size, n * size}
}

// span is elements off to off+n.
func (v *HostVector[T]) span(off, n int) ([]T, error) {
	if off < 0 || off > len(v.data)-n {
		return nil, fmt.Errorf("elements %d to %d of a vector of %d", off, off+n, len(v.data))
	}
	return v.data[off : off+n], nil
}

// ReadAt implements Vector.
func (v *HostVector[T]) ReadAt(dst []float32, off int) error { return read(v, dst, off) }

// ReadAt64 implements Vector.
func (v *HostVector[T]) ReadAt64(dst []float64, off int) error { return read(v, dst, off) }

// WriteAt implements Vector.
func (v *HostVector[T]) WriteAt(src []float32, off int) error { return write(v, src, off) }

// WriteAt64 implements Vector.
func (v *HostVector[T]) WriteAt64(src []float64, off int) error { return write(v, src, off) }

func read[T, D Float](v *HostVector[T], dst []D, off int) error {
	e, err := v.span(off, len(dst))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	convert(dst, e)
	return nil
}

func write[T, S Float](v *HostVector[T], src []S, off int) error {
	e, err := v.span(off, len(src))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	convert(e, src)
	return nil
}

// Copy implements Vector.
func (v *HostVector[T]) Copy(x Vector) error {
	e, err := HostElements[T](x, len(v.data))
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	copy(v.data, e)
	return nil
}

// Fill implements Vector.
func (v *HostVector[T]) Fill(a float64) error {
	t := T(a)
	for i := range v.data {
		v.data[i] = t
	}
	return nil
}

// Free implements Vector.
func (v *HostVector[T]) Free() {
	v.mem.Free()
	v.data = nil
}
