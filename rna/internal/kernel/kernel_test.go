package kernel

import (
	"math"
	"testing"
)

// Each kernel against a plain loop, at lengths round the unrolled ones, with NaN behind the
// end.
func TestKernels(t *testing.T) {
	t.Run("float32", testKernels[float32])
	t.Run("float64", testKernels[float64])
}

func testKernels[T Float](t *testing.T) {
	nan := math.NaN()
	for n := range 19 {
		x, y, a, dst := make([]T, n+4), make([]T, n+4), make([]float64, n+4), make([]float64, n+4)
		for i := range x {
			x[i], y[i], a[i], dst[i] = T(nan), T(nan), nan, nan
		}
		// Small integers, so that every order of summation is exact.
		dot, dotDiff := 0., 0.
		for i := range n {
			x[i], y[i], a[i] = T(3*i%7-3), T(5*i%11-5), float64(i%5-2)
			dot += a[i] * float64(x[i])
			dotDiff += a[i] * float64(x[i]-y[i])
		}
		if got := Dot(a[:n], x[:n]); got != dot {
			t.Errorf("n = %d: dot is %v, want %v", n, got, dot)
		}
		if got := DotDiff(a[:n], x[:n], y[:n]); got != dotDiff {
			t.Errorf("n = %d: dot with a difference is %v, want %v", n, got, dotDiff)
		}
		// Rounded values: a kernel for several vectors has the bits of one for each.
		var chain [5][]T
		var terms [4][]T
		for k := range chain {
			chain[k] = make([]T, n+4)
			for i := range chain[k] {
				chain[k][i] = T(nan)
				if i < n {
					chain[k][i] = T(1 / float64(3*i+k+1))
				}
			}
			if k < len(terms) {
				terms[k] = chain[k]
			}
		}
		var dots [4]float64
		DotChain(&dots, a[:n], &chain)
		for k, got := range dots {
			if want := DotDiff(a[:n], chain[k+1][:n], chain[k][:n]); got != want {
				t.Errorf("n = %d: dot %d of a chain is %v, want %v", n, k, got, want)
			}
		}
		sums, singly, coef := make([]float64, n), make([]float64, n), [4]float64{.1, -7, .3, 1. / 3}
		Widen(sums, x[:n])
		Widen(singly, x[:n])
		Add4(sums, &coef, &terms)
		for k := range coef {
			Add(singly, coef[k], terms[k][:n])
		}
		for i := range sums {
			if sums[i] != singly[i] {
				t.Errorf("n = %d: four terms give %v at %d, want %v", n, sums[i], i, singly[i])
			}
		}
		narrow := make([]T, n)
		for name, k := range map[string]struct {
			run  func(dst []float64)
			want func(i int) float64
		}{
			"diff":  {func(dst []float64) { Diff(dst, x[:n], y[:n]) }, func(i int) float64 { return float64(x[i]) - float64(y[i]) }},
			"widen": {func(dst []float64) { Widen(dst, x[:n]) }, func(i int) float64 { return float64(x[i]) }},
			"scale": {func(dst []float64) { Scale(dst, 3, x[:n]) }, func(i int) float64 { return 3 * float64(x[i]) }},
			"add": {func(dst []float64) { Widen(dst, y[:n]); Add(dst, 3, x[:n]) },
				func(i int) float64 { return float64(y[i]) + 3*float64(x[i]) }},
			"shift":  {func(dst []float64) { Widen(dst, x[:n]); Shift(dst, 4) }, func(i int) float64 { return 16 * float64(x[i]) }},
			"narrow": {func(dst []float64) { Narrow(narrow, a[:n]); Widen(dst, narrow) }, func(i int) float64 { return a[i] }},
		} {
			k.run(dst[:n])
			for i := range dst {
				if i < n && dst[i] != k.want(i) || i >= n && !math.IsNaN(dst[i]) {
					t.Errorf("n = %d: %s gives %v at %d", n, name, dst[i], i)
				}
			}
		}
	}
}

func TestMaxAbs(t *testing.T) {
	x := make([]float32, 11)
	for i := range x {
		x[i] = float32(i%4) - 3
	}
	if m, bad := MaxAbs(x); m != 3 || bad != -1 {
		t.Errorf("largest is %v, bad %d", m, bad)
	}
	if m, bad := MaxAbs([]float64{-math.MaxFloat64, 1}); m != math.MaxFloat64 || bad != -1 {
		t.Errorf("largest is %v, bad %d", m, bad)
	}
	for i := range x {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			was := x[i]
			x[i] = float32(v)
			if _, bad := MaxAbs(x); bad != i {
				t.Errorf("%v at %d is found at %d", v, i, bad)
			}
			x[i] = was
		}
	}
}
