package main

import "onlinerna/internal/asm/neon"

// neonLoadSome reads the first n numbers from an address, up to four, and zeros; nothing behind them.
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

// neonHalves is how many of n lanes the first register of a vector has, and how many the second.
func neonHalves(k *neon.Func, n neon.GP) [neonPair]neon.GP {
	four, zero := k.Int(4), k.Int(0)
	lo, hi := k.Copy(n), k.Copy(n)
	k.SubsI(hi, n, 4)
	k.Choose("GT", hi, hi, zero)
	k.CompareI(n, 4)
	k.Choose("LT", lo, n, four)
	return [neonPair]neon.GP{lo, hi}
}

func neonCopy(k *neon.Func) {
	dst, src, rows, width := k.Arg("dst"), k.Arg("src"), k.Arg("rows"), k.Arg("width")
	dstStride, srcStride := k.Arg("dstStride"), k.Arg("srcStride")
	rest := k.Copy(width)
	k.And(rest, width, neonLanes-1)
	halves := neonHalves(k, rest)
	k.Label("row")
	to, from, left := k.Copy(dst), k.Copy(src), k.Copy(width)
	k.SubsI(left, left, neonLanes)
	k.Branch("LT", "tail")
	k.Label("loop")
	x, y := k.LoadTwo(from, 0)
	k.StoreTwo(x, y, to, 0)
	k.AddI(from, from, neonBytes)
	k.AddI(to, to, neonBytes)
	k.SubsI(left, left, neonLanes)
	k.Branch("GE", "loop")
	k.Label("tail")
	k.IfZero(rest, "next")
	x = neonLoadSome(k, from, halves[0])
	k.AddI(from, from, neon.Bytes)
	y = neonLoadSome(k, from, halves[1])
	k.StoreTwo(x, y, to, 0)
	k.Label("next")
	k.Add(src, src, srcStride)
	k.Add(dst, dst, dstStride)
	k.SubsI(rows, rows, 1)
	k.Branch("NE", "row")
	k.Ret()
}

func neonPack(k *neon.Func) {
	dst, src, rows, panels := k.Arg("dst"), k.Arg("src"), k.Arg("rows"), k.Arg("panels")
	panelStride, srcStride := k.Arg("panelStride"), k.Arg("srcStride")
	k.Label("row")
	to, from, n := k.Copy(dst), k.Copy(src), k.Copy(panels)
	k.Label("panel")
	for at := 0; at < 2*neonBytes; at += 2 * neon.Bytes {
		x, y := k.LoadTwo(from, at)
		k.StoreTwo(x, y, to, at)
	}
	k.AddI(from, from, 2*neonBytes)
	k.Add(to, to, panelStride)
	k.SubsI(n, n, 1)
	k.Branch("NE", "panel")
	k.Add(src, src, srcStride)
	k.AddI(dst, dst, 2*neonBytes)
	k.SubsI(rows, rows, 1)
	k.Branch("NE", "row")
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

// neonPeakSums is how many sums neonPeak has: vectors of registers less two.
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
