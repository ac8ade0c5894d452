// Package kern has the innermost loops of matrix products in assembly.
//
// A kernel keeps a tile of C, some rows × one or two vectors of columns, in registers and sums
//
//	C[m, j] = Init[j] + Σ over taps t and depth k of A[t, m, k] · B[t, k, j]   (+ From[m, j])
//
// where A is read in place through a table of offsets and B is packed. Package gen generates them.
package kern

//go:generate go run -C ../../../../../internal/simd/gen ./products

import (
	"math"

	"onlinerna/internal/simd"
)

// Half is the row of a tile from which on rows are counted from a base of their own: JumpA and JumpC behind
// that of row 0.
const Half = 7

// Args are the operands of a kernel. Steps, jumps and offsets are in bytes. The assembly knows the order of
// the fields.
type Args struct {
	A, B, C *float32
	Init    *float32 // as many as the tile has columns
	Mask    *int32   // likewise: -1 for the columns of C that are written, 0 for the last few that are not
	Offs    *int     // where A begins for each tap, from A
	Taps    int
	Depth   int // of a tap
	// In products StepA leads to the next row of A, and the next k is the next element; in sums it is the
	// other way round.
	StepA, JumpA int
	StepC, JumpC int
	From         *float32 // what is added, with the steps of C, or nil: C itself for a sum in parts
	ReLU         int      // 1 to write 0 in place of what is negative
}

// Kernel computes a tile. B is Taps × Depth × columns. The Args must be on the heap.
type Kernel func(*Args)

// Set is the kernels of a level.
type Set struct {
	Lanes int // columns are in vectors of so many
	Rows  int // most rows of a tile

	// Products and Sums are the kernels by vectors, 1 or 2, and rows.
	Products, Sums [3][]Kernel
	// Pairs are products of one vector, by rows, that take two steps along the depth at a time, which reads A half as
	// often. Depth counts those pairs, and B is interleaved.
	Pairs []Kernel
	// Interleave does that, in place, to pairs of rows of a vector.
	Interleave func(x *float32, pairs int)

	// Copy copies rows of width elements between arrays with the given strides in bytes. It writes whole
	// vectors: a row is filled up with zeros.
	Copy func(dst, src *float32, rows, width, dstStride, srcStride int)
	// Pack copies rows of so many panels of two vectors: row i of panel j to row i of an array of its own. Strides
	// are in bytes.
	Pack func(dst, src *float32, rows, panels, panelStride, srcStride int)
	// Add adds n elements of src to dst.
	Add func(dst, src *float32, n int)
	// Peak runs n·2·(registers-2) multiply-adds of whole vectors on registers.
	Peak func(n int)
	// Winograd has the transforms of tiles.
	Winograd *Winograd
	// Registers is how many vectors the level has.
	Registers int
	// Narrow is not nil where the factors of products are bfloat16.
	Narrow *Narrow
}

// For is the set of a level, or nil where that is plain Go.
func For(l simd.Level) *Set { return sets[l.Vectors()] }

// Columns are those of the widest tile.
func (s *Set) Columns() int { return 2 * s.Lanes }

// Vectors is how many vectors n columns need.
func (s *Set) Vectors(n int) int { return (n + s.Lanes - 1) / s.Lanes }

// maxColumns is more than the columns of any tile.
const maxColumns = 32

// Zeros are an Init that does not matter.
var Zeros [maxColumns]float32

var masks = func() (m [2 * maxColumns]int32) {
	for i := range maxColumns {
		m[i] = -1
	}
	return m
}()

// Mask is that of the first n columns.
func Mask(n int) *int32 { return &masks[maxColumns-n] }

// Lowest are numbers that are not above any other.
var Lowest = func() (x [maxColumns]float32) {
	for i := range x {
		x[i] = float32(math.Inf(-1))
	}
	return x
}()
