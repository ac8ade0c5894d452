// Package kernel holds the inner loops over one block of a vector. Each gives the same
// bits on every architecture: products are rounded before they are
// added, so that no compiler fuses them.
package kernel

import "math"

// Float is the type of stored elements.
type Float interface{ float32 | float64 }

// Diff sets dst to x − y, taken in float64. All have the same length.
func Diff[T Float](dst []float64, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = float64(x[i]) - float64(y[i])
	}
}

// Widen sets dst to x.
func Widen[T Float](dst []float64, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = float64(x[i])
	}
}

// DotDiff returns a·(x − y), taken in float64, in four interleaved sums.
func DotDiff[T Float](a []float64, x, y []T) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(x) >= 4 && len(y) >= 4 {
		s0 += float64(a[0] * (float64(x[0]) - float64(y[0])))
		s1 += float64(a[1] * (float64(x[1]) - float64(y[1])))
		s2 += float64(a[2] * (float64(x[2]) - float64(y[2])))
		s3 += float64(a[3] * (float64(x[3]) - float64(y[3])))
		a, x, y = a[4:], x[4:], y[4:]
	}
	for i, v := range a {
		s0 += float64(v * (float64(x[i]) - float64(y[i])))
	}
	return (s0 + s1) + (s2 + s3)
}

// Dot returns a·x in the order of DotDiff.
func Dot[T Float](a []float64, x []T) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(x) >= 4 {
		s0 += float64(a[0] * float64(x[0]))
		s1 += float64(a[1] * float64(x[1]))
		s2 += float64(a[2] * float64(x[2]))
		s3 += float64(a[3] * float64(x[3]))
		a, x = a[4:], x[4:]
	}
	for i, v := range a {
		s0 += float64(v * float64(x[i]))
	}
	return (s0 + s1) + (s2 + s3)
}

// Scale sets dst to c·x.
func Scale[T Float](dst []float64, c float64, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = c * float64(x[i])
	}
}

// Add adds c·x to dst.
func Add[T Float](dst []float64, c float64, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += float64(c * float64(x[i]))
	}
}

// Narrow sets dst to x, rounded to T.
func Narrow[T Float](dst []T, x []float64) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = T(x[i])
	}
}

// MaxAbs returns the largest |x[i]| and -1, or the index of the first element that is NaN or
// infinite.
func MaxAbs[T Float](x []T) (m T, bad int) {
	for i, v := range x {
		if v < 0 {
			v = -v
		}
		if v > m {
			m = v
		}
		// Only NaN and ±Inf give something other than 0 here.
		if v-v != 0 {
			return m, i
		}
	}
	return m, -1
}

// Shift multiplies x by 2^exp.
func Shift(x []float64, exp int) {
	for i, v := range x {
		x[i] = math.Ldexp(v, exp)
	}
}
