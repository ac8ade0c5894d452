package main

import "onlinerna/internal/simd/gen/neon"

// neonLoadSome reads the first n numbers from an address, up to four, followed by zeros. It reads nothing behind them.
func neonLoadSome(k *neon.Func, base, n neon.GP) neon.Vec {
	label := k.NewLabel("load")
	x := k.Zero()
	k.CompareI(n, 4)
	k.Branch("LT", label+"Two")
	k.LoadTo(x, 16, base, 0)
	k.Branch("", label+"Done")
	k.Label(label + "Two")
	k.IfNoBit(1, n, label+"One")
	k.LoadTo(x, 8, base, 0)
	k.IfNoBit(0, n, label+"Done")
	last := k.Copy(base)
	k.AddI(last, last, 8)
	k.LoadLane(neon.S4, x, 2, last)
	k.Branch("", label+"Done")
	k.Label(label + "One")
	k.CompareI(n, 1)
	k.Branch("NE", label+"Done")
	k.LoadTo(x, 4, base, 0)
	k.Label(label + "Done")
	return x
}

// neonStoreSome writes the first n numbers of x, up to four.
func neonStoreSome(k *neon.Func, x neon.Vec, base, n neon.GP) {
	label := k.NewLabel("store")
	k.CompareI(n, 4)
	k.Branch("LT", label+"Two")
	k.StoreVec(16, x, base, 0)
	k.Branch("", label+"Done")
	k.Label(label + "Two")
	k.IfNoBit(1, n, label+"One")
	k.StoreVec(8, x, base, 0)
	k.IfNoBit(0, n, label+"Done")
	last := k.Copy(base)
	k.AddI(last, last, 8)
	k.StoreLane(neon.S4, x, 2, last)
	k.Branch("", label+"Done")
	k.Label(label + "One")
	k.CompareI(n, 1)
	k.Branch("NE", label+"Done")
	k.StoreVec(4, x, base, 0)
	k.Label(label + "Done")
}

// neonHalves splits n lanes into those in the first register of a vector and those in the second.
func neonHalves(k *neon.Func, n neon.GP) [neonPair]neon.GP {
	four, zero := k.Int(4), k.Int(0)
	lo, hi := k.Copy(n), k.Copy(n)
	k.SubsI(hi, n, 4)
	k.Choose("GT", hi, hi, zero)
	k.CompareI(n, 4)
	k.Choose("LT", lo, n, four)
	return [neonPair]neon.GP{lo, hi}
}

// neonRow is the state of a kernel within a row: pointers to the remaining elements, and their number.
type neonRow struct{ to, from, left neon.GP }

// neonEachRow processes rows, whose elements have the given sizes, a vector at a time, and times vectors at once while
// they fit. begin comes before the first row and gets the number of elements left at the end of each row; end handles
// those.
func neonEachRow(k *neon.Func, to, from, times int, begin func(left neon.GP), whole func(r neonRow, i int),
	end func(r neonRow)) {
	dst, src, rows, width := k.Arg("dst"), k.Arg("src"), k.Arg("rows"), k.Arg("width")
	dstStride, srcStride := k.Arg("dstStride"), k.Arg("srcStride")
	rest := k.Copy(width)
	k.And(rest, width, neonLanes-1)
	begin(rest)
	k.Label("row")
	r := neonRow{to: k.Copy(dst), from: k.Copy(src), left: k.Copy(width)}
	loop := func(name string, n int) {
		k.Turns(name, r.left, n*neonLanes, func() {
			for i := range n {
				whole(r, i)
			}
			k.AddI(r.from, r.from, n*neonLanes*from)
			k.AddI(r.to, r.to, n*neonLanes*to)
		})
	}
	if times > 1 {
		loop("loops", times)
	}
	loop("loop", 1)
	k.IfZero(r.left, "next")
	end(r)
	k.Label("next")
	k.Add(src, src, srcStride)
	k.Add(dst, dst, dstStride)
	k.SubsI(rows, rows, 1)
	k.Branch("NE", "row")
	k.Ret()
}

func neonCopy(k *neon.Func) { neonCopyOf(k, func(neon.Vec) {}) }

// neonCopyOf copies rows and applies of to each register.
func neonCopyOf(k *neon.Func, of func(x neon.Vec)) {
	var halves [neonPair]neon.GP
	put := func(r neonRow, x, y neon.Vec) {
		of(x)
		of(y)
		k.StoreTwo(x, y, r.to, 0)
	}
	neonEachRow(k, 4, 4, 1,
		func(left neon.GP) { halves = neonHalves(k, left) },
		func(r neonRow, i int) {
			x, y := k.LoadTwo(r.from, 0)
			put(r, x, y)
		},
		func(r neonRow) {
			x := neonLoadSome(k, r.from, halves[0])
			k.AddI(r.from, r.from, neon.Bytes)
			put(r, x, neonLoadSome(k, r.from, halves[1]))
		})
}

// neonPack copies rows into panels of step elements.
func neonPack(k *neon.Func, step int) {
	dst, src, rows, panels := k.Arg("dst"), k.Arg("src"), k.Arg("rows"), k.Arg("panels")
	panelStride, srcStride := k.Arg("panelStride"), k.Arg("srcStride")
	k.Label("row")
	to, from, n := k.Copy(dst), k.Copy(src), k.Copy(panels)
	k.Label("panel")
	for at := 0; at < 4*step; at += 2 * neon.Bytes {
		x, y := k.LoadTwo(from, at)
		k.StoreTwo(x, y, to, at)
	}
	k.AddI(from, from, 4*step)
	k.Add(to, to, panelStride)
	k.SubsI(n, n, 1)
	k.Branch("NE", "panel")
	k.Add(src, src, srcStride)
	k.AddI(dst, dst, 4*step)
	k.SubsI(rows, rows, 1)
	k.Branch("NE", "row")
	k.Ret()
}

func neonFetch(k *neon.Func) {
	src, lines := k.Arg("src"), k.Arg("lines")
	k.Label("loop")
	k.FetchFar(src)
	k.AddI(src, src, 64)
	k.SubsI(lines, lines, 1)
	k.Branch("NE", "loop")
	k.Ret()
}

func neonAdd(k *neon.Func) {
	dst, src, n := k.Arg("dst"), k.Arg("src"), k.Arg("n")
	k.SubsI(n, n, neonLanes)
	k.Branch("LT", "rest")
	k.Label("loop")
	a, b := k.LoadTwo(dst, 0)
	c, d := k.LoadTwo(src, 0)
	k.StoreTwo(k.Op("fadd", neon.S4, a, c), k.Op("fadd", neon.S4, b, d), dst, 0)
	k.AddI(dst, dst, neonBytes)
	k.AddI(src, src, neonBytes)
	k.SubsI(n, n, neonLanes)
	k.Branch("GE", "loop")
	k.Label("rest")
	k.AddsI(n, n, neonLanes)
	k.Branch("EQ", "done")
	k.Label("single")
	k.StoreVec(4, k.Op("fadd", neon.S4, k.LoadVec(4, dst, 0), k.LoadVec(4, src, 0)), dst, 0)
	k.AddI(dst, dst, 4)
	k.AddI(src, src, 4)
	k.SubsI(n, n, 1)
	k.Branch("NE", "single")
	k.Label("done")
	k.Ret()
}

// neonPeakSums is the number of sums of neonPeak: all vectors of registers except two.
const neonPeakSums = 32/neonPair - 2

func neonPeak(k *neon.Func) {
	n := k.Arg("n")
	var acc []neon.Vec
	for range neonPeakSums * neonPair {
		acc = append(acc, k.Zero())
	}
	a, b := k.Zero(), k.Zero()
	k.Label("loop")
	for range 2 {
		for _, x := range acc {
			k.Into(x, "fmla", neon.S4, a, b)
		}
	}
	k.SubsI(n, n, 1)
	k.Branch("NE", "loop")
	k.Ret()
}
