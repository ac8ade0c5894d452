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
	"unsafe"

	"onlinerna/internal/simd"
)

// Half is the row of a tile from which rows are counted from a second base, JumpA and JumpC behind that of row 0.
const Half = 7

// Args are the operands of a kernel. Steps, jumps and offsets are in bytes. The assembly knows the order of
// the fields.
type Args struct {
	A, B, C *float32
	Init    *float32 // one number for each column of the tile
	Mask    *int32   // likewise: -1 for the columns of C that are written, 0 for the unused last ones
	Offs    *int     // start of A for each tap, as an offset from A
	Taps    int
	Depth   int // of a tap
	// In products StepA leads to the next row of A, and the next k is the next element; in sums it is the reverse.
	StepA, JumpA int
	StepC, JumpC int
	From         *float32 // added to the tile, with the steps of C, or nil; C itself for a sum in parts
	ReLU         int      // 1 to write 0 instead of negative results
	// While it multiplies, the kernel prefetches cache lines into the second level: Ahead, then each AheadStep bytes
	// behind the last. It counts AheadLines down; at 0 or less it stays at one line. If Ahead is nil, AheadStep is 0.
	Ahead                 unsafe.Pointer
	AheadStep, AheadLines int
	zero                  int // 0, which the kernel reads
}

// Kernel computes a tile. B is Taps × Depth × columns. The Args must be on the heap.
type Kernel func(*Args)

// Set has the kernels of a level.
type Set struct {
	Lanes int // columns of a vector
	Rows  int // most rows of a tile

	// Products and Sums are the kernels by number of vectors, 1 or 2, and by rows.
	Products, Sums [3][]Kernel
	// Pairs are products of one vector, by rows, that take two steps along the depth at a time and so read A half as
	// often. Depth counts pairs of steps, and B is interleaved.
	Pairs []Kernel
	// Interleave interleaves pairs of rows of one vector in place, for Pairs.
	Interleave func(x *float32, pairs int)

	// Copy copies rows of width elements between arrays with the given strides in bytes. It writes whole vectors and fills
	// the end of a row with zeros.
	Copy func(dst, src *float32, rows, width, dstStride, srcStride int)
	// Pack splits rows into panels of two vectors: row i of panel j goes to row i of the panel's own array. Strides are in
	// bytes.
	Pack func(dst, src *float32, rows, panels, panelStride, srcStride int)
	// PackRows is Pack for panels of Rows elements. It moves whole vectors: it reads and writes Lanes − Rows elements
	// behind each row of a panel.
	PackRows func(dst, src *float32, rows, panels, panelStride, srcStride int)
	// Turn writes squares of 8×8 elements, side by side in 8 rows of src, as their transposes, one below the other: those
	// are 8·squares rows of dst. Strides are in bytes. nil: Transpose does without.
	Turn func(dst, src *float32, squares, dstStride, srcStride int)
	// Fetch prefetches cache lines of 64 bytes into the second level.
	Fetch func(src *byte, lines int)
	// Add adds n elements of src to dst.
	Add func(dst, src *float32, n int)
	// Peak runs n·2·(registers-2) multiply-adds of whole vectors in registers.
	Peak func(n int)
	// Winograd has the transforms of tiles.
	Winograd *Winograd
	// Registers is the number of vector registers of the level.
	Registers int
	// Narrow is nil unless the factors of products are bfloat16.
	Narrow *Narrow
	// Tiles is nil unless products run in tiles.
	Tiles *Tiles
}

// For returns the kernels of a level, or nil for plain Go.
func For(l simd.Level) *Set { return sets[l.Vectors()] }

// Columns is the number of columns of the widest tile.
func (s *Set) Columns() int { return 2 * s.Lanes }

// Vectors is the number of vectors that hold n columns.
func (s *Set) Vectors(n int) int { return (n + s.Lanes - 1) / s.Lanes }

// maxColumns exceeds the columns of any tile.
const maxColumns = 32

// Zeros is an Init of zeros.
var Zeros [maxColumns]float32

var masks = func() (m [2 * maxColumns]int32) {
	for i := range maxColumns {
		m[i] = -1
	}
	return m
}()

// Mask selects the first n columns.
func Mask(n int) *int32 { return &masks[maxColumns-n] }

// Lowest has −∞ in all columns: a lower bound that changes nothing.
var Lowest = func() (x [maxColumns]float32) {
	for i := range x {
		x[i] = float32(math.Inf(-1))
	}
	return x
}()
