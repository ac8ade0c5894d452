// Package vec has the kernels that run along float32 slices: all of a net's work except matrix products.
//
// Each kernel exists for each level. All levels give the same bits: sums of float32 are float64 and run in a fixed
// order, and a multiply-add rounds twice. Only the sign and payload of a NaN that an operation makes may differ.
//
// Slices have the lengths that the comments give; kernels do not check them, and touch nothing outside. A result may be
// the same slice as an operand. A row is a slice of parameters, one for each column, that is repeated along the other
// slices, which need not hold a whole number of rows.
package vec

//go:generate go run -C ../../../../../internal/simd/gen ./vec

import (
	"unsafe"

	"onlinerna/internal/simd"
)

// Set has the kernels of a level.
type Set struct {
	// ReLU sets dst to x, and to 0 if x < 0.
	ReLU func(dst, x []float32)
	// ReLUGrad sets dst to dy, and to 0 if y ≤ 0.
	ReLUGrad func(dst, y, dy []float32)
	// Add sets dst to a + b.
	Add func(dst, a, b []float32)

	// Normalize sets dst to (x − mean)·gain + bias; mean, gain and bias are rows. The others add other to it, set
	// negative results to 0, or both.
	Normalize        func(dst, x, mean, gain, bias []float32)
	NormalizeReLU    func(dst, x, mean, gain, bias []float32)
	NormalizeAdd     func(dst, x, other, mean, gain, bias []float32)
	NormalizeAddReLU func(dst, x, other, mean, gain, bias []float32)
	// NormalizeAct sets dst to an activation of Normalize's result, NormalizeActGrad to the gradient at that result for
	// the gradient dy of the activation. They have the bits of Normalize and the function in Functions.
	NormalizeAct     normalizeActs
	NormalizeActGrad normalizeActGrads
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

	// Sums adds the elements of each of width columns of a matrix x with the given rows to sum. Rows are stride elements
	// apart. sum must have Padded(width) elements; kernels may overwrite those behind width.
	Sums func(sum []float64, x []float32, width, stride, rows int)
	// Moments adds x and its square.
	Moments func(sum, squares []float64, x []float32, width, stride, rows int)
	// GradSums adds dy·(x − mean) to scale and dy to bias, with a mean of width columns. The difference is rounded to
	// float32. The other variants first set dy to from, or from + more, and to 0 if y ≤ 0.
	GradSums        func(scale, bias []float64, x, dy, mean []float32, width, stride, rows int)
	ReLUGradSums    func(scale, bias []float64, x, dy, y, from, mean []float32, width, stride, rows int)
	AddReLUGradSums func(scale, bias []float64, x, dy, y, from, more, mean []float32, width, stride, rows int)

	// Functions has the kernels of expressions, Rows those along rows.
	Functions
	Rows

	// MaxWindows sets y to the maxima of windows of x. A maximum is NaN if one of its pixels is.
	MaxWindows func(y, x []float32, w Windows)
	// MaxWindowsGrad adds dy to dx at the first maximum of each window of x in row-major order, or at its first NaN.
	// Elsewhere it may add 0, which turns −0 into 0.
	MaxWindowsGrad func(dy, x, dx []float32, w Windows)
	// MaxWindowsSet sets dx to dy there and to 0 in the rest of each window. Windows must not overlap.
	MaxWindowsSet func(dy, x, dx []float32, w Windows)
}

// Activation is an activation that has kernels behind a batch normalisation.
type Activation int

const (
	SiLU Activation = iota
	Hardswish
	ReLU6
	activations // their number
)

type (
	normalizeActs     [activations]func(dst, x, mean, gain, bias []float32)
	normalizeActGrads [activations]func(dst, x, dy, mean, gain, bias []float32)
)

// Windows is a row of windows over an image whose pixels are vectors of channels. All numbers are at least 1, except
// the distances in elements.
type Windows struct {
	Count    int // of windows, and of pixels of y
	Channels int // channels of each pixel that take part
	Pitch    int // elements from a pixel of y to the next

	Rows, Columns int // of a window
	Line, Pixel   int // elements of x from a row to the next, and from a column to the next
	Step          int // elements of x from a window to the next

	// BehindReLU selects the gradient behind a ReLU with result x: 0 if the maximum is neither positive nor NaN.
	BehindReLU bool
}

// widest is the number of elements of the widest vector.
const widest = 16

// Padded is n rounded up to whole vectors of any level.
func Padded(n int) int { return (n + widest - 1) / widest * widest }

// For returns the kernels of a level.
func For(l simd.Level) *Set { return &sets[l.Vectors()] }

// Alignment is the alignment of results, in bytes, for the kernels that require one.
const Alignment = 64

// ForLarge is For with results that the caches do not keep until their next read: Add, ReLU, the four of Normalize and
// NormalizeAct store past the caches, which saves reading the overwritten memory. dst and rows have to begin at
// multiples of Alignment, and dst should not be an operand.
func ForLarge(l simd.Level) *Set { return &large[l.Vectors()] }

// largeResult is the size in bytes from which on caches do not keep a result until the next op reads it: larger ops of
// BenchmarkTraffic gain by storing past the caches.
const largeResult = 16 << 20

// To returns the kernels of a level that write dst, in rows of the given width, from other storage or in place: those
// of ForLarge if they pay.
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
