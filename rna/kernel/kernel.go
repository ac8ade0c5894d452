// Package kernel has the inner loops of package rna, for it and for other implementations of its Space: inner products
// of residuals and linear combinations, over vectors that are given as bytes in the machine's order.
//
// Everything is float64 inside, whatever the elements' format. Results have the same bits at every level of
// instructions (AVX-512, AVX2, NEON, plain Go) and on every architecture: differences are rounded, products are added
// by fused multiply-adds, in [Lanes] interleaved sums that are added up in a fixed order at the end of a [Block], and
// combinations run in the order of their terms.
//
// Kernels are those of package simd's default level.
package kernel

//go:generate go run -C ../../internal/simd/gen ./residuals kernel

import (
	"unsafe"

	"onlinerna/internal/simd"
	"onlinerna/internal/simd/convert"
)

const (
	// Block is the largest number of elements in one sum.
	Block = 8192

	// Run is the number of elements read from one vector before the next: enough for hardware prefetch, and few
	// enough that several vectors' runs fit in the L1 cache.
	Run = 1024

	// Lanes is the number of interleaved sums: element i of a block goes to sum i mod Lanes.
	Lanes = 8

	// group is the number of elements that kernels process at a time.
	group = 16

	// pitch is the distance in elements between rows of residuals if there are several. It is not a power of two, so that
	// rows do not compete for the same lines of a cache.
	pitch = 256 + 8
)

// Kernels take rows of a multiple of group elements, and as many of vectors from byte off on. They prefetch from
// addresses in next, one for each vector up to four, off bytes further on and as far as the row goes.
type (
	setter   = convert.Setter
	dotter   func(row []float64, v *[5]*byte, next *[4]uintptr, off int, sums *[4 * Lanes]float64)
	combiner func(row []float64, v *[5]*byte, next *[4]uintptr, off int, coef *[4]float64)
)

// ops are the kernels for a format.
type ops struct {
	// setDiff sets row to v[1] − v[0], and setFour four rows, pitch apart, to v[i+1] − v[i].
	setDiff, setFour setter

	// dot and the others add to sums the products of row and v[0], or the rows of the setters. Formats of 16 bits have
	// none.
	dot, dotDiff, dotFour dotter

	// add[i] adds i+1 products coef[k]·v[k] to row.
	add [4]combiner
}

// set is the kernels of a level.
type set struct {
	format [4]ops

	// square adds to sums, in lanes, the products of tile rows from a on and as many from b on, pitch apart; triangle
	// those with j ≤ i of rows from a on. From each address in next, off bytes
	// further on, they prefetch a line for each group, step bytes apart.
	tile             int
	square, triangle func(sums, a, b *float64, n int, next *[4]uintptr, off, step int)
}

// active is the level of the kernels; tests try others.
var active = simd.Default().Vectors()

// address points to element i of a vector.
func address(v []byte, i, size int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), i*size))
}

// bytesOf is the memory of v.
func bytesOf[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
