// Package kern has the kernels of linear models: products of rows with vectors and their transposes, losses, and the
// steps of methods that go by samples. All numbers are float64.
//
// Each kernel exists for each level of instructions of package simd; levels differ by rounding.
//
// Kernels take pointers to first elements and check no length. Vectors that lie side by side are width or pitch
// elements apart. Vectors w in Dots and dst in AddRows have a width of at least [Padded] of d; kernels read and write
// all of it, zeros behind d.
package kern

//go:generate go run -C ../../../../internal/simd/gen ./convex

import "onlinerna/internal/simd"

// Most is the number of vectors that Dots and AddRows take at most, Quad that of SparseDots and SparseAddRows.
const (
	Most = 4
	Quad = 4
)

// Padded is d rounded up to whole vectors of the widest kind.
func Padded(d int) int { return (d + 7) &^ 7 }

// Set is the kernels of a level.
type Set struct {
	// Dots[n-1] sets out[k*pitch+i] to the product of row i of x, at x[i*stride], with vector k of n, at w[k*width].
	Dots [Most]dots

	// AddRows[n-1] adds Σ a[k*pitch+i] xᵢ to dst[k*width:] for each k of n. It fetches the rows that lie ahead elements
	// further on.
	AddRows [Most]addRows

	// CodedDots and CodedAddRows are the like for a matrix of integers in the order of [Encode]. d and the stride are
	// whole blocks.
	CodedDots    [Most]codedDots
	CodedAddRows [Most]codedAddRows

	// SparseDots and SparseAddRows do the same for compressed rows with the values start[0] to start[rows], and for four
	// vectors whose elements j are at w[4*j] and dst[4*j].
	SparseDots    func(out, values *float64, index *int32, start *int, w *float64, rows, pitch int)
	SparseAddRows func(dst, values *float64, index *int32, start *int, a *float64, rows, pitch int)

	// StripDots and StripAddRows do the same for a strip of columns: row i has the next 4·counts[i] of values and of
	// columns, which are four times the numbers of columns in the strip. out[4*i+k] and a[4*i+k] belong to row i
	// and vector k; products are added to out. StripSums and StripAdds have values of 1. Rows are padded to multiples of
	// four with zero values, or with a column whose elements are zero in w and ignored in dst.
	StripDots    func(out, values *float64, columns *uint16, counts *uint32, w *float64, rows int)
	StripAddRows func(dst, values *float64, columns *uint16, counts *uint32, a *float64, rows int)
	StripSums    func(out *float64, columns *uint16, counts *uint32, w *float64, rows int)
	StripAdds    func(dst *float64, columns *uint16, counts *uint32, a *float64, rows int)

	// Logistic and Squares return the sum of losses at predictions a·z + b·old, for targets y; the others set
	// slopes to their derivatives, too. Targets of the logistic loss are ±1.
	Logistic, Squares             func(z, old, y *float64, a, b float64, rows int) float64
	LogisticSlopes, SquaresSlopes func(slopes, z, old, y *float64, a, b float64, rows int) float64

	// Dot is xᵀw.
	Dot func(x, w *float64, d int) float64
	// Combine2 sets dst to a·dst + b·x, Combine3 to a·dst + b·x + c·y.
	Combine2 func(dst, x *float64, a, b float64, d int)
	Combine3 func(dst, x, y *float64, a, b, c float64, d int)
	// SAGAStep sets w to a·w + b·mean + c·x, then mean to mean + e·x.
	SAGAStep func(w, mean, x *float64, a, b, c, e float64, d int)
	// Mix sets dst to a·x + b·y + c·z.
	Mix func(dst, x, y, z *float64, a, b, c float64, d int)
	// KatyushaStep sets z to (z − alpha·g)·shrinkZ, y to (x − short·g)·shrinkY, and moves mean to y by weight.
	KatyushaStep func(z, y, mean, x, g *float64, alpha, shrinkZ, short, shrinkY, weight float64, d int)
}

type (
	dots         = func(out, x, w *float64, d, stride, rows, width, pitch int)
	addRows      = func(dst, x, a *float64, d, stride, rows, width, pitch, ahead int)
	codedDots    = func(out *float64, x *uint16, w *float64, d, stride, rows, width, pitch int)
	codedAddRows = func(dst *float64, x *uint16, a *float64, d, stride, rows, width, pitch int)
)

// Default is the kernels of the default level.
func Default() *Set { return For(simd.Default()) }

// For is the kernels of a level.
func For(l simd.Level) *Set { return &sets[l.Vectors()] }
