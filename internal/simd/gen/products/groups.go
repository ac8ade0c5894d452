package main

import (
	"bytes"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The fields of kern.GroupArgs.
const (
	groupDst = 8 * iota
	groupSrc
	groupWeights
	groupInit
	groupOffs
	groupTaps
	groupDepth
	groupRuns
	groupCount
	groupPixels
	groupStepSrc
	groupStepDst
	groupStepWeights
	groupStepTap
	groupFrom
	groupReLU
	groupAdd
)

const (
	groupDepthUnit = 4 // channels of a turn of the loops
	mostGroupTaps  = 3 // of the kernels of sums
	alongTaps      = 3 // side by side, of kernels along lines: kern.AlongTaps
)

// groupRunSizes are the pixels of a run for which there are kernels of products.
var groupRunSizes = []int{7, 4, 1}

// groupAlongSizes are those for lines of taps, by the number of registers.
var groupAlongSizes = map[int][]int{16: {7, 4}, 32: {7}}

// groups writes the kernels of groups of channels: of whole vectors of results, and of groups of four channels.
func groups(decl *bytes.Buffer, s isa) {
	for _, quads := range []bool{false, true} {
		set := s.name + "Groups"
		if quads {
			set = s.name + "Quads"
		}
		value := fmt.Sprintf("\tLanes: %d, Quads: %t,\n\tProducts: []GroupProducts{\n", s.bytes/4, quads)
		declare := func(name string) { fmt.Fprintf(decl, "\n//go:noescape\nfunc %s(a *GroupArgs)\n", name) }
		for _, n := range groupRunSizes {
			name := fmt.Sprintf("%sProducts%d", set, n)
			groupProducts(name, s, n, quads)
			declare(name)
			value += fmt.Sprintf("\t\t{%d, false, %s},\n", n, name)
		}
		for _, n := range groupAlongSizes[len(s.regs)] {
			name := fmt.Sprintf("%sProductsAlong%d", set, n)
			groupProductsAlong(name, s, n, quads)
			declare(name)
			value += fmt.Sprintf("\t\t{%d, true, %s},\n", n, name)
		}
		value += "\t},\n\tSums: []func(*GroupArgs){nil,\n"
		for n := 1; n <= mostGroupTaps; n++ {
			name := fmt.Sprintf("%sSums%d", set, n)
			groupSums(name, s, n, quads)
			declare(name)
			value += "\t\t" + name + ",\n"
		}
		value += "\t},\n\tSumsAlong: []func(*GroupArgs){nil,\n"
		for step := 1; step <= 2; step++ {
			name := fmt.Sprintf("%sSumsAlong%d", set, step)
			groupSumsAlong(name, s, step, quads)
			declare(name)
			value += "\t\t" + name + ",\n"
		}
		fmt.Fprintf(decl, "\nvar %s = Groups{\n%s\t},\n}\n", set, value)
	}
}

// groupRead reads channel u of the groups of a pixel into the lanes of their results.
func groupRead(from Mem, u int, quads bool, x reg.VecPhysical) {
	if quads {
		VPERMILPS(Imm(uint64(0b01010101*u)), from, x)
		return
	}
	from.Disp += 4 * u
	VBROADCASTSS(from, x)
}

// groupPixel returns a function for the place of pixel p, up to n, behind a base.
func groupPixel(args reg.GPVirtual, n int) func(base reg.GPVirtual, p int) Mem {
	step := field(args, groupStepSrc)
	times := map[int]reg.GPVirtual{1: step}
	for _, m := range []struct{ odd, base, scale int }{{3, 1, 2}, {5, 1, 4}, {7, 3, 2}} {
		if m.odd <= n {
			times[m.odd] = GP64()
			LEAQ(Mem{Base: step, Index: times[m.base], Scale: uint8(m.scale)}, times[m.odd])
		}
	}
	return func(base reg.GPVirtual, p int) Mem {
		if p == 0 {
			return Mem{Base: base}
		}
		scale := p & -p
		return Mem{Base: base, Index: times[p/scale], Scale: uint8(scale)}
	}
}

// groupResults visits the results of count runs of n pixels, behind the pointer in field dst.
func groupResults(args, runs reg.GPVirtual, dst, n, count int, visit func(m int, to Mem)) {
	by := field(args, groupStepDst)
	for i := range count {
		to := field(args, dst)
		ADDQ(Mem{Base: runs, Disp: 16*i + 8}, to)
		for p := range n {
			visit(i*n+p, Mem{Base: to})
			if p+1 < n {
				ADDQ(by, to)
			}
		}
	}
}

// groupBegin prefetches the results of runs of n pixels and sets their accumulators.
func groupBegin(args, runs reg.GPVirtual, n int, acc []reg.VecPhysical) {
	groupResults(args, runs, groupDst, n, len(acc)/n, func(_ int, to Mem) { PREFETCHT0(to) })
	VMOVUPS(Mem{Base: field(args, groupInit)}, acc[0])
	for _, a := range acc[1:] {
		VMOVAPS(acc[0], a)
	}
}

// groupBases are the places of count runs under a tap.
func groupBases(args, runs, offs reg.GPVirtual, count int) (base []reg.GPVirtual) {
	for i := range count {
		base = append(base, field(args, groupSrc))
		ADDQ(Mem{Base: runs, Disp: 16 * i}, base[i])
		ADDQ(Mem{Base: offs}, base[i])
	}
	return base
}

// groupNext moves on to the next channels, if there are more.
func groupNext(s isa, w, depth reg.GPVirtual, base []reg.GPVirtual) {
	ADDQ(I32(groupDepthUnit*s.bytes), w)
	for i := range base {
		ADDQ(Imm(4*groupDepthUnit), base[i])
	}
	SUBQ(Imm(groupDepthUnit), depth)
	JNZ(LabelRef("depth"))
}

// groupEnd adds groupFrom to the results of runs of n pixels, clips them to 0 if groupReLU is set, and writes them;
// x is free.
func groupEnd(args, runs reg.GPVirtual, n int, acc []reg.VecPhysical, x reg.VecPhysical) {
	from, relu := field(args, groupFrom), field(args, groupReLU)
	TESTQ(from, from)
	JZ(LabelRef("clip"))
	groupResults(args, runs, groupFrom, n, len(acc)/n, func(m int, from Mem) { VADDPS(from, acc[m], acc[m]) })
	Label("clip")
	TESTQ(relu, relu)
	JZ(LabelRef("store"))
	VXORPS(x, x, x)
	for _, a := range acc {
		VMAXPS(a, x, a) // NaN and −0 stay
	}
	Label("store")
	groupResults(args, runs, groupDst, n, len(acc)/n, func(m int, to Mem) { VMOVUPS(acc[m], to) })
}

// groupProducts writes a kernel of products that multiplies two runs of n pixels at a time.
func groupProducts(name string, s isa, n int, quads bool) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64()).(reg.GPVirtual)
	acc, weight, x := s.regs[:2*n], s.regs[2*n], s.regs[2*n+1]
	pixel := groupPixel(args, n)
	runs, count := field(args, groupRuns), field(args, groupCount)
	Label("runs")
	groupBegin(args, runs, n, acc)
	w, offs, taps := field(args, groupWeights), field(args, groupOffs), field(args, groupTaps)
	Label("tap")
	base := groupBases(args, runs, offs, 2)
	ADDQ(Imm(8), offs)
	depth := field(args, groupDepth)
	Label("depth")
	for u := range groupDepthUnit {
		VMOVUPS(Mem{Base: w, Disp: u * s.bytes}, weight)
		for i := range base {
			for p := range n {
				groupRead(pixel(base[i], p), u, quads, x)
				VFMADD231PS(x, weight, acc[i*n+p])
			}
		}
	}
	groupNext(s, w, depth, base)
	DECQ(taps)
	JNZ(LabelRef("tap"))

	groupEnd(args, runs, n, acc, x)
	ADDQ(Imm(32), runs)
	SUBQ(Imm(2), count)
	JNZ(LabelRef("runs"))
	VZEROUPPER()
	RET()
}

// groupSumsOf visits the sums of n taps, by tap and channel.
func groupSumsOf(args reg.GPVirtual, n int, visit func(i int, to Mem)) {
	by, tap := field(args, groupStepDst), field(args, groupDst)
	for t := range n {
		to := GP64()
		MOVQ(tap, to)
		for u := range groupDepthUnit {
			visit(t*groupDepthUnit+u, Mem{Base: to})
			if u+1 < groupDepthUnit {
				ADDQ(by, to)
			}
		}
		if t+1 < n {
			ADDQ(Mem{Base: args, Disp: groupStepTap}, tap)
		}
	}
}

// groupSumsBegin sets the accumulators of n taps: to the sums if groupAdd is set, else to 0.
func groupSumsBegin(args reg.GPVirtual, n int, acc []reg.VecPhysical) {
	add := field(args, groupAdd)
	TESTQ(add, add)
	JZ(LabelRef("zeros"))
	groupSumsOf(args, n, func(i int, to Mem) { VMOVUPS(to, acc[i]) })
	JMP(LabelRef("begin"))
	Label("zeros")
	for _, x := range acc {
		VXORPS(x, x, x)
	}
	Label("begin")
}

// groupSums writes a kernel of sums for n taps.
func groupSums(name string, s isa, n int, quads bool) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64()).(reg.GPVirtual)
	acc := s.regs[:n*groupDepthUnit]
	dy, read := s.regs[len(acc)], s.regs[len(acc)+1:]
	groupSumsBegin(args, n, acc)
	list, offs := field(args, groupOffs), make([]reg.GPVirtual, n)
	for t := range offs {
		offs[t] = GP64()
		MOVQ(Mem{Base: list, Disp: 8 * t}, offs[t])
	}
	runs, count := field(args, groupRuns), field(args, groupCount)
	stepX, stepY := field(args, groupStepSrc), field(args, groupStepWeights)
	Label("run")
	x, y, pixels := field(args, groupSrc), field(args, groupWeights), field(args, groupPixels)
	ADDQ(Mem{Base: runs}, x)
	ADDQ(Mem{Base: runs, Disp: 8}, y)
	Label("pixel")
	VMOVUPS(Mem{Base: y}, dy)
	for t := range n {
		for u := range groupDepthUnit {
			i := t*groupDepthUnit + u
			groupRead(Mem{Base: x, Index: offs[t], Scale: 1}, u, quads, read[i%min(len(read), 3)])
			VFMADD231PS(read[i%min(len(read), 3)], dy, acc[i])
		}
	}
	ADDQ(stepX, x)
	ADDQ(stepY, y)
	DECQ(pixels)
	JNZ(LabelRef("pixel"))
	ADDQ(Imm(16), runs)
	DECQ(count)
	JNZ(LabelRef("run"))
	groupSumsOf(args, n, func(i int, to Mem) { VMOVUPS(acc[i], to) })
	VZEROUPPER()
	RET()
}
