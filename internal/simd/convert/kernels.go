// Package convert converts numbers between float64 and the storage formats of vectors, given as bytes in the machine's
// order. Results have the same bits at every level of instructions and on every architecture.
package convert

//go:generate go run -C ../gen ./residuals convert

import (
	"unsafe"

	"onlinerna/internal/simd"
)

const (
	// chunk is the number of elements that are widened at a time.
	chunk = 1024

	// group is the number of elements that kernels process at a time.
	group = 16
)

// Format is the storage format of elements.
type Format int

// The formats.
const (
	Float32 Format = iota
	Float64
	Float16
	BFloat16
)

// Size is the size of an element in bytes.
func (f Format) Size() int { return [...]int{Float32: 4, Float64: 8, Float16: 2, BFloat16: 2}[f] }

// Setter widens elements of v[0] from byte off on into row, whose length is a multiple of 16. The elements are aligned.
// It prefetches as many elements from byte off after next[0].
type Setter func(row []float64, v *[5]*byte, next *[4]uintptr, off int)

// ops are the kernels for a format.
type ops struct {
	set Setter

	// narrow rounds row to dst and returns the number of finished elements: for 16-bit formats it stops at a group that it
	// cannot round, such as one with too large elements. narrowPast stores past the caches; its dst is aligned to cache
	// lines.
	narrow, narrowPast func(dst *byte, row []float64) int

	// largest raises the lanes of top, which have the elements' width, to the bits of n elements without their signs;
	// copyLargest also copies them, past the caches.
	largest     func(top *[8]uint64, x *byte, n int)
	copyLargest func(top *[8]uint64, dst, x *byte, n int)
}

// set has the kernels of a level by format.
type set [4]ops

// active has the kernels of the default level; tests try others.
var active = &sets[simd.Default().Vectors()]

// Rows is a level's kernel that widens rows, for loops that prefetch.
func Rows(l simd.Level, f Format) Setter { return sets[l.Vectors()][f].set }

// address is the address of element i of a vector.
func address(v []byte, i, size int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), i*size))
}

// bytesOf is the memory of v.
func bytesOf[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
