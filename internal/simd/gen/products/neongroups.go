package main

import (
	"bytes"
	"fmt"

	"onlinerna/internal/simd/gen/neon"
)

// neonGroups writes the kernels of groups of channels, and their sets, the longest vectors first. A multiply-add can
// take one lane of a register as a factor, so one load serves four channels; kernels along lines would save no loads.
func neonGroups(f *neon.File, set *bytes.Buffer) {
	fmt.Fprintf(set, "\nvar neonGroups = []*Groups{\n")
	for _, registers := range []int{2, 1} {
		lanes := registers * neon.Bytes / 4
		kernel := func(kind string, n int, generate func(k *neon.Func, registers, n int)) string {
			name := fmt.Sprintf("neonGroups%d%s%d", lanes, kind, n)
			f.Func(name, "(a *GroupArgs)", func(k *neon.Func) { generate(k, registers, n) })
			return name
		}
		fmt.Fprintf(set, "\t{\n\t\tLanes: %d,\n\t\tProducts: []GroupProducts{\n", lanes)
		for _, n := range groupRunSizes {
			fmt.Fprintf(set, "\t\t\t{%d, false, %s},\n", n, kernel("Products", n, neonGroupProducts))
		}
		fmt.Fprintf(set, "\t\t},\n\t\tSums: []func(*GroupArgs){nil,\n")
		for n := 1; n <= mostGroupTaps; n++ {
			fmt.Fprintf(set, "\t\t\t%s,\n", kernel("Sums", n, neonGroupSums))
		}
		fmt.Fprintf(set, "\t\t},\n\t},\n")
	}
	fmt.Fprintf(set, "}\n")
}

// neonGroupResults visits the results of count runs of n pixels, behind the pointer in field dst.
func neonGroupResults(k *neon.Func, args, runs neon.GP, dst, n, count int, visit func(m int, to neon.GP)) {
	by := k.Load(args, groupStepDst)
	for i := range count {
		to := k.Load(args, dst)
		k.Add(to, to, k.Load(runs, 16*i+8))
		for p := range n {
			visit(i*n+p, to)
			if p+1 < n {
				k.Add(to, to, by)
			}
		}
	}
}

// neonGroupProducts is a kernel of products for vectors of some registers and runs of n pixels, up to two at a time.
func neonGroupProducts(k *neon.Func, registers, n int) {
	const most = 14 // sums; there are as many registers of the source at most, and one of weights
	count := max(1, min(2, most/(registers*n)))
	args := k.Arg("a")
	runs, left, step := k.Load(args, groupRuns), k.Load(args, groupCount), k.Load(args, groupStepSrc)
	k.Label("runs")
	neonGroupResults(k, args, runs, groupDst, n, count, func(_ int, to neon.GP) { k.Fetch(to, 0) })
	init := k.Load(args, groupInit)
	acc := make([][]neon.Vec, count*n) // by pixel
	for m := range acc {
		for j := range registers {
			if m == 0 {
				acc[m] = append(acc[m], k.LoadVec(neon.Bytes, init, j*neon.Bytes))
			} else {
				acc[m] = append(acc[m], k.Same(acc[0][j]))
			}
		}
	}
	w, offs, taps := k.Load(args, groupWeights), k.Load(args, groupOffs), k.Load(args, groupTaps)
	k.Label("tap")
	var base []neon.GP
	for i := range count {
		base = append(base, k.Load(args, groupSrc))
		k.Add(base[i], base[i], k.Load(runs, 16*i))
		k.Add(base[i], base[i], k.Load(offs, 0))
	}
	k.AddI(offs, offs, 8)
	depth := k.Load(args, groupDepth)
	k.Label("depth")
	var x []neon.Vec
	for i := range base {
		from := k.Copy(base[i])
		for p := range n {
			x = append(x, k.LoadNear(neon.Bytes, from, 0))
			if p+1 < n {
				k.Add(from, from, step)
			}
		}
		k.AddI(base[i], base[i], 4*groupDepthUnit)
	}
	for u := range groupDepthUnit {
		for j := range registers {
			weight := k.LoadNear(neon.Bytes, w, (u*registers+j)*neon.Bytes)
			for m := range acc {
				k.AddTimes(acc[m][j], neon.S4, weight, x[m], u)
			}
		}
	}
	k.AddI(w, w, groupDepthUnit*registers*neon.Bytes)
	k.SubsI(depth, depth, groupDepthUnit)
	k.Branch("NE", "depth")
	k.SubsI(taps, taps, 1)
	k.Branch("NE", "tap")

	from, relu := k.Load(args, groupFrom), k.Load(args, groupReLU)
	k.IfZero(from, "clip")
	neonGroupResults(k, args, runs, groupFrom, n, count, func(m int, from neon.GP) {
		for j, a := range acc[m] {
			k.Into(a, "fadd", neon.S4, a, k.LoadVec(neon.Bytes, from, j*neon.Bytes))
		}
	})
	k.Label("clip")
	k.IfZero(relu, "store")
	for _, pixel := range acc {
		for _, a := range pixel {
			neonClip(k, a)
		}
	}
	k.Label("store")
	neonGroupResults(k, args, runs, groupDst, n, count, func(m int, to neon.GP) {
		for j, a := range acc[m] {
			k.StoreVec(neon.Bytes, a, to, j*neon.Bytes)
		}
	})
	k.AddI(runs, runs, 16*count)
	k.SubsI(left, left, count)
	k.Branch("NE", "runs")
	k.Ret()
}

// neonGroupSums is a kernel of sums for vectors of some registers and n taps.
func neonGroupSums(k *neon.Func, registers, n int) {
	args := k.Arg("a")
	acc := make([][]neon.Vec, n*groupDepthUnit) // by tap and channel
	for i := range acc {
		for range registers {
			acc[i] = append(acc[i], k.Zero())
		}
	}
	sums := func(visit func(x neon.Vec, to neon.GP, offset int)) {
		by, tap, step := k.Load(args, groupStepDst), k.Load(args, groupDst), k.Load(args, groupStepTap)
		for t := range n {
			to := k.Copy(tap)
			for u := range groupDepthUnit {
				for j, x := range acc[t*groupDepthUnit+u] {
					visit(x, to, j*neon.Bytes)
				}
				if u+1 < groupDepthUnit {
					k.Add(to, to, by)
				}
			}
			if t+1 < n {
				k.Add(tap, tap, step)
			}
		}
	}
	k.IfZero(k.Load(args, groupAdd), "begin")
	sums(func(x neon.Vec, to neon.GP, offset int) { k.LoadTo(x, neon.Bytes, to, offset) })
	k.Label("begin")
	runs, count, offs := k.Load(args, groupRuns), k.Load(args, groupCount), k.Load(args, groupOffs)
	stepX, stepY := k.Load(args, groupStepSrc), k.Load(args, groupStepWeights)
	k.Label("run")
	x, y, pixels := make([]neon.GP, n), k.Load(args, groupWeights), k.Load(args, groupPixels)
	for t := range x {
		x[t] = k.Load(args, groupSrc)
		k.Add(x[t], x[t], k.Load(runs, 0))
		k.Add(x[t], x[t], k.Load(offs, 8*t))
	}
	k.Add(y, y, k.Load(runs, 8))
	k.Label("pixel")
	var dy []neon.Vec
	for j := range registers {
		dy = append(dy, k.LoadNear(neon.Bytes, y, j*neon.Bytes))
	}
	k.Add(y, y, stepY)
	for t := range x {
		read := k.LoadNear(neon.Bytes, x[t], 0)
		k.Add(x[t], x[t], stepX)
		for u := range groupDepthUnit {
			for j, a := range acc[t*groupDepthUnit+u] {
				k.AddTimes(a, neon.S4, dy[j], read, u)
			}
		}
	}
	k.SubsI(pixels, pixels, 1)
	k.Branch("NE", "pixel")
	k.AddI(runs, runs, 16)
	k.SubsI(count, count, 1)
	k.Branch("NE", "run")
	sums(func(x neon.Vec, to neon.GP, offset int) { k.StoreVec(neon.Bytes, x, to, offset) })
	k.Ret()
}
