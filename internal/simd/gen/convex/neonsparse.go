package main

import "onlinerna/internal/simd/gen/neon"

// neonSparse writes the NEON version of sparse: the four vectors are two registers.
func neonSparse(f *neon.File) {
	// each runs body for the values of the current row, as lanes, and the addresses of their columns.
	each := func(k *neon.Func, values, index, left, base neon.GP, body func(unit int, value neon.Vec, place neon.GP)) {
		step := func(label string, units int) {
			k.Turns(label, left, units, func() {
				v := k.LoadVec(8*units, values, 0)
				for u := range units {
					place := k.LoadWord(index, 4*u)
					k.AddShift(place, base, place, 5) // bytes of four elements
					body(u, v, place)
				}
				k.AddI(values, values, 8*units)
				k.AddI(index, index, 4*units)
			})
		}
		step("two", 2)
		step("one", 1)
	}
	// rows loops over the rows.
	rows := func(k *neon.Func, each func(values, index, count neon.GP)) {
		start, left := k.Arg("start"), k.Arg("rows")
		first := k.Load(start, 0)
		values, index := k.Arg("values"), k.Arg("index")
		k.AddShift(values, values, first, 3)
		k.AddShift(index, index, first, 2)
		k.Label("row")
		count := k.Load(start, 8)
		k.Sub(count, count, k.Load(start, 0))
		each(values, index, count)
		k.AddI(start, start, 8)
		k.SubsI(left, left, 1)
		k.Branch("NE", "row")
		k.Ret()
	}
	// four returns the addresses of a row's four numbers, pitch apart.
	four := func(k *neon.Func, first, pitch neon.GP) (at [4]neon.GP) {
		at[0] = k.Copy(first)
		for i := range 3 {
			at[i+1] = k.Copy(at[i])
			k.Add(at[i+1], at[i+1], pitch)
		}
		return at
	}
	f.Func("sparseDots4NEON", "(out, values *float64, index *int32, start *int, w *float64, rows, pitch int)",
		func(k *neon.Func) {
			out, w, pitch := k.Arg("out"), k.Arg("w"), k.Arg("pitch")
			k.Shift(pitch, pitch, 3)
			rows(k, func(values, index, count neon.GP) {
				var sums [2][2]neon.Vec
				for u := range sums {
					sums[u] = [2]neon.Vec{k.Zero(), k.Zero()}
				}
				each(k, values, index, count, w, func(u int, value neon.Vec, place neon.GP) {
					lo, hi := k.LoadTwo(place, 0)
					k.AddTimes(sums[u][0], neon.D2, lo, value, u)
					k.AddTimes(sums[u][1], neon.D2, hi, value, u)
				})
				at := four(k, out, pitch)
				for i := range 2 {
					sum := k.Op("fadd", neon.D2, sums[0][i], sums[1][i])
					k.StoreVec(8, sum, at[2*i], 0)
					k.StoreLane(neon.D2, sum, 1, at[2*i+1])
				}
				k.AddI(out, out, 8)
			})
		})
	f.Func("sparseAddRows4NEON", "(dst, values *float64, index *int32, start *int, a *float64, rows, pitch int)",
		func(k *neon.Func) {
			dst, a, pitch := k.Arg("dst"), k.Arg("a"), k.Arg("pitch")
			k.Shift(pitch, pitch, 3)
			rows(k, func(values, index, count neon.GP) {
				var scale [2]neon.Vec
				at := four(k, a, pitch)
				for i := range scale {
					scale[i] = k.LoadVec(8, at[2*i], 0)
					k.LoadLane(neon.D2, scale[i], 1, at[2*i+1])
				}
				each(k, values, index, count, dst, func(u int, value neon.Vec, place neon.GP) {
					lo, hi := k.LoadTwo(place, 0)
					k.AddTimes(lo, neon.D2, scale[0], value, u)
					k.AddTimes(hi, neon.D2, scale[1], value, u)
					k.StoreTwo(lo, hi, place, 0)
				})
				k.AddI(a, a, 8)
			})
		})
}

// neonStrips writes the NEON version of strips.
func neonStrips(f *neon.File) {
	for _, ones := range []bool{false, true} {
		names, arguments := [2]string{"stripDots", "stripAddRows"}, ", values *float64, columns *uint16, counts *uint32, "
		if ones {
			names, arguments = [2]string{"stripSums", "stripAdds"}, " *float64, columns *uint16, counts *uint32, "
		}
		// rows loops over the rows; body gets the values, as lanes, and the address of a column.
		rows := func(k *neon.Func, base neon.GP, before func(), body func(u int, value neon.Vec, place neon.GP),
			after func()) {
			var values neon.GP
			if !ones {
				values = k.Arg("values")
			}
			columns, counts, rows := k.Arg("columns"), k.Arg("counts"), k.Arg("rows")
			k.Label("row")
			before()
			left := k.LoadWord(counts, 0)
			k.IfZero(left, "done")
			k.Label("four")
			var v [2]neon.Vec
			if !ones {
				v[0], v[1] = k.LoadTwo(values, 0)
				k.AddI(values, values, 32)
			}
			for u := range 4 {
				place := k.LoadHalf(columns, 2*u)
				k.AddShift(place, base, place, 3)
				body(u, v[u/2], place)
			}
			k.AddI(columns, columns, 8)
			k.SubsI(left, left, 1)
			k.Branch("NE", "four")
			k.Label("done")
			after()
			k.AddI(counts, counts, 4)
			k.SubsI(rows, rows, 1)
			k.Branch("NE", "row")
			k.Ret()
		}
		f.Func(names[0]+"NEON", "(out"+arguments+"w *float64, rows int)", func(k *neon.Func) {
			out, w := k.Arg("out"), k.Arg("w")
			var sums [4][2]neon.Vec
			rows(k, w, func() {
				sums[0][0], sums[0][1] = k.LoadTwo(out, 0)
				for u := range 3 {
					sums[u+1] = [2]neon.Vec{k.Zero(), k.Zero()}
				}
			}, func(u int, value neon.Vec, place neon.GP) {
				lo, hi := k.LoadTwo(place, 0)
				for i, x := range [2]neon.Vec{lo, hi} {
					if ones {
						k.Into(sums[u][i], "fadd", neon.D2, sums[u][i], x)
					} else {
						k.AddTimes(sums[u][i], neon.D2, x, value, u%2)
					}
				}
			}, func() {
				var total [2]neon.Vec
				for i := range total {
					a := k.Op("fadd", neon.D2, sums[0][i], sums[1][i])
					total[i] = k.Op("fadd", neon.D2, a, k.Op("fadd", neon.D2, sums[2][i], sums[3][i]))
				}
				k.StoreTwo(total[0], total[1], out, 0)
				k.AddI(out, out, 32)
			})
		})
		f.Func(names[1]+"NEON", "(dst"+arguments+"a *float64, rows int)", func(k *neon.Func) {
			dst, a := k.Arg("dst"), k.Arg("a")
			var scale [2]neon.Vec
			rows(k, dst, func() {
				scale[0], scale[1] = k.LoadTwo(a, 0)
				k.AddI(a, a, 32)
			}, func(u int, value neon.Vec, place neon.GP) {
				lo, hi := k.LoadTwo(place, 0)
				for i, x := range [2]neon.Vec{lo, hi} {
					if ones {
						k.Into(x, "fadd", neon.D2, x, scale[i])
					} else {
						k.AddTimes(x, neon.D2, scale[i], value, u%2)
					}
				}
				k.StoreTwo(lo, hi, place, 0)
			}, func() {})
		})
	}
}
