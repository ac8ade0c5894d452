// Package convert moves numbers between float64 and the formats in which vectors are stored, given as bytes in the
// machine's order. Results have the same bits at every level of instructions and on every architecture.
package convert

//go:generate go run -C ../gen ./residuals convert

import (
	"unsafe"

	"onlinerna/internal/simd"
)

const (
	// chunk is how many elements are widened at a time.
	chunk = 1024

	// group elements are what kernels work on at a time.
	group = 16
)

// Format is how elements are stored.
type Format int

// The formats.
const (
	Float32 Format = iota
	Float64
	Float16
	BFloat16
)

// Size is the bytes of an element.
func (f Format) Size() int { return [...]int{Float32: 4, Float64: 8, Float16: 2, BFloat16: 2}[f] }

// Setter sets row, of a multiple of 16 elements, to as many of v[0] from byte off on, which are aligned. It prefetches
// from next[0], off bytes further on and as far as the row goes.
type Setter func(row []float64, v *[5]*byte, next *[4]uintptr, off int)

// ops are the kernels for a format.
type ops struct {
	set Setter

	// narrow rounds row to dst and returns how many elements are done: of 16-bit formats it stops at a group that it
	// cannot round, such as one with too large elements. narrowPast stores past the caches; dst is aligned to lines.
	narrow, narrowPast func(dst *byte, row []float64) int

	// largest raises the lanes of top, which have the elements' width, to the bits of n elements without their signs;
	// copyLargest copies them too, past the caches.
	largest     func(top *[8]uint64, x *byte, n int)
	copyLargest func(top *[8]uint64, dst, x *byte, n int)
}

// set is the kernels of a level by format.
type set [4]ops

// active is the kernels of the default level; tests try others.
var active = &sets[simd.Default().Vectors()]

// Rows is the kernel of a level that widens rows, for loops that prefetch.
func Rows(l simd.Level, f Format) Setter { return sets[l.Vectors()][f].set }

// address is where element i of a vector lies.
func address(v []byte, i, size int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), i*size))
}

// bytesOf is the memory of v.
func bytesOf[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
