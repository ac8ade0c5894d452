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

// DotDiff returns a·(x − y), taken in float64, in two interleaved sums.
func DotDiff[T Float](a []float64, x, y []T) float64 {
	var s0, s1 float64
	x, y = x[:len(a)], y[:len(a)]
	for i := 1; i < len(a); i += 2 {
		s0 += float64(a[i-1] * (float64(x[i-1]) - float64(y[i-1])))
		s1 += float64(a[i] * (float64(x[i]) - float64(y[i])))
	}
	if i := len(a) - 1; i >= 0 && i%2 == 0 {
		s0 += float64(a[i] * (float64(x[i]) - float64(y[i])))
	}
	return s0 + s1
}

// DotChain sets dots[k] to a·(v[k+1] − v[k]), with the bits of DotDiff. Each element is
// widened once, which is most of the work.
func DotChain[T Float](dots *[4]float64, a []float64, v *[5][]T) {
	var p0, p1, q0, q1, r0, r1, s0, s1 float64
	n := len(a)
	v0, v1, v2, v3, v4 := v[0][:n], v[1][:n], v[2][:n], v[3][:n], v[4][:n]
	for i := 1; i < len(a); i += 2 {
		c := a[i-1]
		x, y := float64(v0[i-1]), float64(v1[i-1])
		p0 += float64(c * (y - x))
		x = float64(v2[i-1])
		q0 += float64(c * (x - y))
		y = float64(v3[i-1])
		r0 += float64(c * (y - x))
		x = float64(v4[i-1])
		s0 += float64(c * (x - y))

		c = a[i]
		x, y = float64(v0[i]), float64(v1[i])
		p1 += float64(c * (y - x))
		x = float64(v2[i])
		q1 += float64(c * (x - y))
		y = float64(v3[i])
		r1 += float64(c * (y - x))
		x = float64(v4[i])
		s1 += float64(c * (x - y))
	}
	if i := n - 1; i >= 0 && i%2 == 0 {
		p0 += float64(a[i] * (float64(v1[i]) - float64(v0[i])))
		q0 += float64(a[i] * (float64(v2[i]) - float64(v1[i])))
		r0 += float64(a[i] * (float64(v3[i]) - float64(v2[i])))
		s0 += float64(a[i] * (float64(v4[i]) - float64(v3[i])))
	}
	*dots = [4]float64{p0 + p1, q0 + q1, r0 + r1, s0 + s1}
}

// Dot returns a·x in the order of DotDiff.
func Dot[T Float](a []float64, x []T) float64 {
	var s0, s1 float64
	x = x[:len(a)]
	for i := 1; i < len(a); i += 2 {
		s0 += float64(a[i-1] * float64(x[i-1]))
		s1 += float64(a[i] * float64(x[i]))
	}
	if i := len(a) - 1; i >= 0 && i%2 == 0 {
		s0 += float64(a[i] * float64(x[i]))
	}
	return s0 + s1
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

// Add4 adds c[0]·x[0], then c[1]·x[1] and so on to dst, with the bits of four calls of Add.
func Add4[T Float](dst []float64, c *[4]float64, x *[4][]T) {
	n := len(dst)
	x0, x1, x2, x3 := x[0][:n], x[1][:n], x[2][:n], x[3][:n]
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
	for i, v := range dst {
		v += float64(c0 * float64(x0[i]))
		v += float64(c1 * float64(x1[i]))
		v += float64(c2 * float64(x2[i]))
		v += float64(c3 * float64(x3[i]))
		dst[i] = v
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
