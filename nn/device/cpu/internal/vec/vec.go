// Package vec has the kernels that run along float32 slices: what a net does besides matrix products.
//
// Each kernel exists for each level. All levels give the same bits: sums of float32 are float64 and run in a
// fixed order, and what multiplies and adds rounds twice. Only the sign and payload of a NaN that an operation
// makes may differ.
//
// Slices have the lengths that the comments give; kernels do not check them, and touch nothing outside. A result may
// be the same slice as an operand. A row is a slice of parameters, one for each column, that is repeated along
// the others: those need not hold a whole number of rows.
package vec

//go:generate go run -C ../../../../../internal/simd/gen ./vec

import (
	"unsafe"

	"onlinerna/internal/simd"
)

// Set is the kernels of a level.
type Set struct {
	// ReLU sets dst to x, and to 0 where x < 0.
	ReLU func(dst, x []float32)
	// ReLUGrad sets dst to dy, and to 0 where y ≤ 0.
	ReLUGrad func(dst, y, dy []float32)
	// Add sets dst to a + b.
	Add func(dst, a, b []float32)

	// Normalize sets dst to (x − mean)·gain + bias; mean, gain and bias are rows. The others add other to it, set
	// negative results to 0, or both.
	Normalize        func(dst, x, mean, gain, bias []float32)
	NormalizeReLU    func(dst, x, mean, gain, bias []float32)
	NormalizeAdd     func(dst, x, other, mean, gain, bias []float32)
	NormalizeAddReLU func(dst, x, other, mean, gain, bias []float32)
	// NormalizeGrad sets dst to (dy − meanGrad − (x − mean)·slope)·gain, with four rows.
	NormalizeGrad func(dst, x, dy, mean, gain, meanGrad, slope []float32)
	// Scale sets dst to x·gain, with gain a row.
	Scale func(dst, x, gain []float32)

	// Fill sets all elements of dst to a.
	Fill func(dst []float32, a float32)
	// AddScaled sets dst to dst + a·x.
	AddScaled func(dst, x []float32, a float32)
	// Lerp sets dst to dst + a·(x − dst).
	Lerp func(dst, x []float32, a float32)
	// Strange is not 0 if an element of x is infinite or NaN.
	Strange func(x []float32) uint32
	// Squares sets sums[i] to the sum of the squares of all elements x[j] with j%8 = i.
	Squares func(x []float32, sums *[8]float64)

	// Sums adds to sum, for each of width columns of a matrix x of the given rows, its elements. Rows lie stride
	// elements apart. Kernels may write what sum has up to Padded(width), which it must have.
	Sums func(sum []float64, x []float32, width, stride, rows int)
	// Moments adds x and its square.
	Moments func(sum, squares []float64, x []float32, width, stride, rows int)
	// GradSums adds dy·(x − mean) to scale and dy to bias, with mean one of width. The difference is rounded to
	// float32. The others first set dy to from, or from + more, and to 0 where y ≤ 0.
	GradSums        func(scale, bias []float64, x, dy, mean []float32, width, stride, rows int)
	ReLUGradSums    func(scale, bias []float64, x, dy, y, from, mean []float32, width, stride, rows int)
	AddReLUGradSums func(scale, bias []float64, x, dy, y, from, more, mean []float32, width, stride, rows int)

	// Functions are the kernels of expressions.
	Functions

	// MaxWindows sets y to the maxima of windows of x. A maximum is NaN where one of the pixels is.
	MaxWindows func(y, x []float32, w Windows)
	// MaxWindowsGrad adds dy to dx where x has the first maximum of each window in row-major order, or its first
	// NaN. Elsewhere it may add 0, which makes 0 of a −0.
	MaxWindowsGrad func(dy, x, dx []float32, w Windows)
	// MaxWindowsSet sets dx to dy there and to 0 in the rest of each window. Windows must not overlap.
	MaxWindowsSet func(dy, x, dx []float32, w Windows)
}

// Windows is a row of windows over an image whose pixels are vectors of channels. All numbers are at least 1, but
// for those of elements from one thing to the next.
type Windows struct {
	Count    int // of windows, and of pixels of y
	Channels int // of each pixel that take part
	Pitch    int // elements from a pixel of y to the next

	Rows, Columns int // of a window
	Line, Pixel   int // elements of x from a row to the next, and from a column to the next
	Step          int // elements of x from a window to the next

	// BehindReLU makes gradients those behind a ReLU with result x: 0 where the maximum is not positive, and not NaN.
	BehindReLU bool
}

// widest is the elements of the widest vector.
const widest = 16

// Padded is n rounded up to whole vectors of any level.
func Padded(n int) int { return (n + widest - 1) / widest * widest }

// For is the kernels of a level.
func For(l simd.Level) *Set { return &sets[l.Vectors()] }

// Alignment is that of results in bytes, for the kernels that ask for one.
const Alignment = 64

// ForLarge is For where caches do not keep a result until it is read: Add, ReLU and the four of Normalize
// store past them, which saves reading what is overwritten. dst and rows have to begin at multiples of Alignment,
// and dst should not be an operand.
func ForLarge(l simd.Level) *Set { return &large[l.Vectors()] }

// largeResult is the bytes of a result that caches do not keep until the next op reads it: from there on BenchmarkTraffic's
// ops gain by storing past them.
const largeResult = 16 << 20

// To is the kernels of a level that make dst, in rows of the given width, of other storage or their own:
// those of ForLarge where they pay.
func To(l simd.Level, dst []float32, width int, operands ...[]float32) *Set {
	const size = 4
	if size*len(dst) < largeResult || size*width%Alignment != 0 || uintptr(unsafe.Pointer(&dst[0]))%Alignment != 0 {
		return For(l)
	}
	for _, x := range operands {
		if len(x) > 0 && &x[0] == &dst[0] {
			return For(l)
		}
	}
	return ForLarge(l)
}
