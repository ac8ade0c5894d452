package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// groupProductsAlong writes a kernel of products for lines of three taps side by side and stride 1. It reads each
// pixel of the source once for a line of taps.
func groupProductsAlong(name string, s isa, n int, quads bool) {
	const taps = alongTaps
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64()).(reg.GPVirtual)
	count := min(2, (len(s.regs)-taps-1)/n) // runs at a time
	acc, weights, x := s.regs[:count*n], s.regs[count*n:][:taps], s.regs[count*n+taps]
	pixel := groupPixel(args, n+taps-1)
	runs := field(args, groupRuns)
	Label("runs")
	groupBegin(args, runs, n, acc)
	w, offs, lines, each := field(args, groupWeights), field(args, groupOffs), field(args, groupTaps), GP64()
	Label("line")
	base := groupBases(args, runs, offs, count)
	ADDQ(Imm(8*taps), offs)
	depth := field(args, groupDepth)
	IMUL3Q(I32(s.bytes), depth, each)
	Label("depth")
	for u := range groupDepthUnit {
		for t, r := range weights {
			m := Mem{Base: w, Disp: u * s.bytes}
			if t > 0 {
				m.Index, m.Scale = each, uint8(t)
			}
			VMOVUPS(m, r)
		}
		for i := range base {
			for p := range n + taps - 1 {
				groupRead(pixel(base[i], p), u, quads, x)
				for t, r := range weights {
					if q := p - t; q >= 0 && q < n {
						VFMADD231PS(x, r, acc[i*n+q])
					}
				}
			}
		}
	}
	groupNext(s, w, depth, base)
	LEAQ(Mem{Base: w, Index: each, Scale: taps - 1}, w)
	SUBQ(Imm(taps), lines)
	JNZ(LabelRef("line"))
	groupEnd(args, runs, n, acc, x)
	ADDQ(Imm(uint64(16*count)), runs)
	SUBQ(Imm(uint64(count)), Mem{Base: args, Disp: groupCount})
	JNZ(LabelRef("runs"))
	VZEROUPPER()
	RET()
}

// groupSumsAlong writes a kernel of sums for three taps side by side and runs of at least two pixels. From a pixel
// of dy to the next the source moves on by step pixels. Each of its pixels is read once: the last three of dy stay
// in registers.
func groupSumsAlong(name string, s isa, step int, quads bool) {
	const taps = alongTaps
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64()).(reg.GPVirtual)
	acc := s.regs[:taps*groupDepthUnit]
	dy, read := s.regs[len(acc):][:taps], s.regs[len(acc)+taps]
	groupSumsBegin(args, taps, acc)
	list := field(args, groupOffs)
	off, pixel := GP64(), GP64()
	MOVQ(Mem{Base: list}, off)
	MOVQ(Mem{Base: list, Disp: 8}, pixel)
	SUBQ(off, pixel)
	runs, count := field(args, groupRuns), field(args, groupCount)
	stepY := field(args, groupStepWeights)
	Label("run")
	x, y, pixels := field(args, groupSrc), field(args, groupWeights), field(args, groupPixels)
	ADDQ(Mem{Base: runs}, x)
	ADDQ(off, x)
	ADDQ(Mem{Base: runs, Disp: 8}, y)

	next := func() { // moves dy on by a pixel
		for t := len(dy) - 1; t > 0; t-- {
			VMOVAPS(dy[t-1], dy[t])
		}
		VMOVUPS(Mem{Base: y}, dy[0])
		ADDQ(stepY, y)
	}
	// multiply adds a pixel of the source to the sums of some taps: that of tap t belongs to dy[t/step].
	multiply := func(taps ...int) {
		for u := range groupDepthUnit {
			groupRead(Mem{Base: x}, u, quads, read)
			for _, t := range taps {
				VFMADD231PS(read, dy[t/step], acc[t*groupDepthUnit+u])
			}
		}
		ADDQ(pixel, x)
	}
	if step == 1 {
		next()
		multiply(0)
		next()
		multiply(0, 1)
		SUBQ(Imm(2), pixels)
		JZ(LabelRef("last"))
		Label("pixel")
		next()
		multiply(0, 1, 2)
		DECQ(pixels)
		JNZ(LabelRef("pixel"))
		Label("last")
		VMOVAPS(dy[1], dy[2])
		VMOVAPS(dy[0], dy[1])
		multiply(1, 2)
		VMOVAPS(dy[1], dy[2])
		multiply(2)
	} else {
		next()
		multiply(0)
		multiply(1)
		DECQ(pixels)
		JZ(LabelRef("last"))
		Label("pixel")
		next()
		multiply(0, 2)
		multiply(1)
		DECQ(pixels)
		JNZ(LabelRef("pixel"))
		Label("last")
		VMOVAPS(dy[0], dy[1])
		multiply(2)
	}
	ADDQ(Imm(16), runs)
	DECQ(count)
	JNZ(LabelRef("run"))
	groupSumsOf(args, taps, func(i int, to Mem) { VMOVUPS(acc[i], to) })
	VZEROUPPER()
	RET()
}
