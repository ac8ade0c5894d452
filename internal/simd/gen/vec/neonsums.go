package main

import (
	"strings"

	"onlinerna/internal/simd/gen/neon"
)

// neonColumns is a kernel that sums down the columns of matrices whose rows are stride elements apart. The sums are
// float64 and stay in registers for several columns at a time.
type neonColumns struct {
	*neonStream
	sums map[string][][2]neon.Vec // by vector
}

func (k *neonColumns) accumulate(to string, d [2]neon.Vec) { accumulate(k.Func, k.sums[to][k.unit], d) }
func (k *neonColumns) multiply(to string, a, b [2]neon.Vec) {
	multiply(k.Func, k.sums[to][k.unit], a, b)
}

// accumulate adds to the sums of a vector, multiply adds products.
func accumulate(k *neon.Func, sums, d [2]neon.Vec) {
	for i, s := range sums {
		k.Into(s, "fadd", neon.D2, s, d[i])
	}
}

func multiply(k *neon.Func, sums, a, b [2]neon.Vec) {
	for i, s := range sums {
		k.Into(s, "fmla", neon.D2, a[i], b[i])
	}
}

// doubles widens the used lanes of x: a single number has no second half.
func (k *neonColumns) doubles(x neonValue) [2]neon.Vec {
	if k.bytes == neonOne {
		d := k.Double(x.Vec)
		return [2]neon.Vec{d, d}
	}
	return k.Doubles(x.Vec)
}

// neonDown writes a kernel with the given sums, matrices and, if not empty, a row beside them.
func neonDown(f *neon.File, name, sums, matrices, row string, body func(k *neonColumns, row neonValue)) {
	totals, names := strings.Fields(sums), strings.Fields(matrices)
	slices := names
	if row != "" {
		slices = append(slices[:len(slices):len(slices)], row)
	}
	f.Func(name+"NEON", "("+strings.Join(totals, ", ")+" []float64, "+strings.Join(slices,
		", ")+" []float32, width, stride, rows int)", func(fn *neon.Func) {
		k := &neonColumns{&neonStream{Func: fn, base: make(map[string]neon.GP)}, make(map[string][][2]neon.Vec)}
		n, stride := k.Arg("width"), k.Arg("stride")
		k.Shift(stride, stride, 2)
		column := k.Int(0) // bytes
		next := k.Arg("rows")
		k.Mul(next, next, stride) // the start of the next call's data
		block := func(label string, vectors, bytes int) {
			k.bytes = bytes
			k.Turns(label, n, vectors*bytes/neonOne, func() {
				for _, s := range slices {
					k.base[s] = k.Arg(s + "_base")
					k.Add(k.base[s], k.base[s], column)
				}
				at := make(map[string]neon.GP)
				for _, t := range totals {
					at[t] = k.Arg(t + "_base")
					k.AddShift(at[t], at[t], column, 1)
					k.sums[t] = make([][2]neon.Vec, vectors)
					for v := range k.sums[t] {
						if bytes == neonOne {
							x := k.LoadVec(8, at[t], 0)
							k.sums[t][v] = [2]neon.Vec{x, k.Zero()}
							continue
						}
						k.sums[t][v][0], k.sums[t][v][1] = k.LoadTwo(at[t], 32*v)
					}
				}
				side := make([]neonValue, vectors)
				if row != "" {
					for k.unit = range vectors {
						side[k.unit] = k.in(row)
					}
				}
				left := k.Arg("rows")
				k.Label(label + "Row")
				if bytes == neonWhole {
					for _, m := range names {
						k.FetchAt(k.base[m], next)
					}
				}
				for k.unit = range vectors {
					body(k, side[k.unit])
				}
				for _, m := range names {
					k.Add(k.base[m], k.base[m], stride)
				}
				k.SubsI(left, left, 1)
				k.Branch("NE", label+"Row")
				for _, t := range totals {
					for v, s := range k.sums[t] {
						if bytes == neonOne {
							k.StoreVec(8, s[0], at[t], 0)
						} else {
							k.StoreTwo(s[0], s[1], at[t], 32*v)
						}
					}
				}
				k.AddI(column, column, vectors*bytes)
			})
		}
		block("four", 4, neonWhole)
		block("vector", 1, neonWhole)
		block("single", 1, neonOne)
		k.Ret()
	})
}

func neonSums(f *neon.File) {
	for _, g := range columnSums[neonValue, [2]neon.Vec]() {
		neonDown(f, g.name, g.sums, g.matrices, g.row, func(k *neonColumns, row neonValue) { g.body(k, row) })
	}
}
