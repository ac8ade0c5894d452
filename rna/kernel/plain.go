package kernel

import (
	"math"
	"unsafe"

	"onlinerna/internal/simd"
	"onlinerna/internal/simd/convert"
)

// element is the type of elements in plain Go, which widens those of 16 bits first.
type element interface{ float32 | float64 }

// of is n elements from p on.
func of[T any](p *byte, n int) []T { return unsafe.Slice((*T)(unsafe.Pointer(p)), n) }

// at is n elements from byte off after p on.
func at[T any](p *byte, off, n int) []T { return of[T]((*byte)(unsafe.Add(unsafe.Pointer(p), off)), n) }

// plain is the kernels in Go. They do not prefetch.
var plain = set{
	format: [4]ops{
		convert.Float32:  plainOps[float32](),
		convert.Float64:  plainOps[float64](),
		convert.Float16:  plainOps16(convert.Float16),
		convert.BFloat16: plainOps16(convert.BFloat16),
	},
	tile: 1,
	square: func(sums, a, b *float64, n int, _ *[4]uintptr, _, _ int) {
		dot((*[Lanes]float64)(unsafe.Pointer(sums)), unsafe.Slice(a, n), unsafe.Slice(b, n))
	},
	triangle: func(sums, a, _ *float64, n int, _ *[4]uintptr, _, _ int) {
		dot((*[Lanes]float64)(unsafe.Pointer(sums)), unsafe.Slice(a, n), unsafe.Slice(a, n))
	},
}

func plainOps[T element]() ops {
	return ops{
		setDiff: func(row []float64, v *[5]*byte, _ *[4]uintptr, off int) {
			diff(row, at[T](v[1], off, len(row)), at[T](v[0], off, len(row)))
		},
		setFour: func(row []float64, v *[5]*byte, _ *[4]uintptr, off int) {
			n := len(row)
			for i := range 4 {
				to := (*float64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(row)), 8*pitch*i))
				diff(unsafe.Slice(to, n), at[T](v[i+1], off, n), at[T](v[i], off, n))
			}
		},
		dot: func(row []float64, v *[5]*byte, _ *[4]uintptr, off int, sums *[4 * Lanes]float64) {
			dot((*[Lanes]float64)(sums[:]), row, at[T](v[0], off, len(row)))
		},
		dotDiff: func(row []float64, v *[5]*byte, _ *[4]uintptr, off int, sums *[4 * Lanes]float64) {
			dotDiff((*[Lanes]float64)(sums[:]), row, at[T](v[1], off, len(row)), at[T](v[0], off, len(row)))
		},
		dotFour: func(row []float64, v *[5]*byte, _ *[4]uintptr, off int, sums *[4 * Lanes]float64) {
			for i := range 4 {
				dotDiff((*[Lanes]float64)(sums[i*Lanes:]), row, at[T](v[i+1], off, len(row)), at[T](v[i], off, len(row)))
			}
		},
		add: [4]combiner{plainAdd[T](1), plainAdd[T](2), plainAdd[T](3), func(
			row []float64, v *[5]*byte, _ *[4]uintptr, off int, coef *[4]float64) {
			n := len(row)
			x, y, z, w := at[T](v[0], off, n), at[T](v[1], off, n), at[T](v[2], off, n), at[T](v[3], off, n)
			for i, sum := range row {
				sum = math.FMA(coef[0], float64(x[i]), sum)
				sum = math.FMA(coef[1], float64(y[i]), sum)
				sum = math.FMA(coef[2], float64(z[i]), sum)
				row[i] = math.FMA(coef[3], float64(w[i]), sum)
			}
		}},
	}
}

// plainOps16 widens to float64 first, which is exact.
func plainOps16(f convert.Format) ops {
	wide, set := plainOps[float64](), convert.Rows(simd.Go, f)
	widened := func(vectors int, run func(v *[5]*byte), n int, v *[5]*byte, next *[4]uintptr, off int) {
		var rows [5][Run]float64
		var p [5]*byte
		for i := range vectors {
			set(rows[i][:n], &[5]*byte{v[i]}, next, off)
			p[i] = (*byte)(unsafe.Pointer(&rows[i]))
		}
		run(&p)
	}
	setting := func(vectors int, s setter) setter {
		return func(row []float64, v *[5]*byte, next *[4]uintptr, off int) {
			widened(vectors, func(p *[5]*byte) { s(row, p, next, 0) }, len(row), v, next, off)
		}
	}
	combining := func(vectors int, c combiner) combiner {
		return func(row []float64, v *[5]*byte, next *[4]uintptr, off int, coef *[4]float64) {
			widened(vectors, func(p *[5]*byte) { c(row, p, next, 0, coef) }, len(row), v, next, off)
		}
	}
	return ops{
		setDiff: setting(2, wide.setDiff), setFour: setting(5, wide.setFour),
		add: [4]combiner{combining(1, wide.add[0]), combining(2, wide.add[1]),
			combining(3, wide.add[2]), combining(4, wide.add[3])},
	}
}

func plainAdd[T element](vectors int) combiner {
	return func(row []float64, v *[5]*byte, _ *[4]uintptr, off int, coef *[4]float64) {
		for k, c := range coef[:vectors] {
			x := at[T](v[k], off, len(row))
			for i, sum := range row {
				row[i] = math.FMA(c, float64(x[i]), sum)
			}
		}
	}
}

func diff[T element](row []float64, x, y []T) {
	x, y = x[:len(row)], y[:len(row)]
	for i := range row {
		row[i] = float64(x[i]) - float64(y[i])
	}
}

func dot[T element](sums *[Lanes]float64, row []float64, x []T) {
	s0, s1, s2, s3, s4, s5, s6, s7 := sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7]
	for len(row) >= Lanes && len(x) >= Lanes {
		s0 = math.FMA(float64(x[0]), row[0], s0)
		s1 = math.FMA(float64(x[1]), row[1], s1)
		s2 = math.FMA(float64(x[2]), row[2], s2)
		s3 = math.FMA(float64(x[3]), row[3], s3)
		s4 = math.FMA(float64(x[4]), row[4], s4)
		s5 = math.FMA(float64(x[5]), row[5], s5)
		s6 = math.FMA(float64(x[6]), row[6], s6)
		s7 = math.FMA(float64(x[7]), row[7], s7)
		row, x = row[Lanes:], x[Lanes:]
	}
	*sums = [Lanes]float64{s0, s1, s2, s3, s4, s5, s6, s7}
}

func dotDiff[T element](sums *[Lanes]float64, row []float64, x, y []T) {
	s0, s1, s2, s3, s4, s5, s6, s7 := sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7]
	for len(row) >= Lanes && len(x) >= Lanes && len(y) >= Lanes {
		s0 = math.FMA(float64(x[0])-float64(y[0]), row[0], s0)
		s1 = math.FMA(float64(x[1])-float64(y[1]), row[1], s1)
		s2 = math.FMA(float64(x[2])-float64(y[2]), row[2], s2)
		s3 = math.FMA(float64(x[3])-float64(y[3]), row[3], s3)
		s4 = math.FMA(float64(x[4])-float64(y[4]), row[4], s4)
		s5 = math.FMA(float64(x[5])-float64(y[5]), row[5], s5)
		s6 = math.FMA(float64(x[6])-float64(y[6]), row[6], s6)
		s7 = math.FMA(float64(x[7])-float64(y[7]), row[7], s7)
		row, x, y = row[Lanes:], x[Lanes:], y[Lanes:]
	}
	*sums = [Lanes]float64{s0, s1, s2, s3, s4, s5, s6, s7}
}
