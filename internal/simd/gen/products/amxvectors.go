package main

import (
	"bytes"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileVectors writes kernels that give the bits of AMX by AVX-512, and their list.
func tileVectors(decl *bytes.Buffer) {
	for columns := 1; columns <= 2; columns++ {
		name := fmt.Sprintf("avx512Tiles%d", columns)
		vectorProducts(name, columns)
		fmt.Fprintf(decl, "\n//go:noescape\nfunc %s(a *TileArgs)\n", name)
	}
	fmt.Fprintf(decl, "\nvar avx512Tiles = [3]func(*TileArgs){1: avx512Tiles1, 2: avx512Tiles2}\n")
}

// vectorProducts writes the kernel for one or two vectors of columns. MXCSR rounds to nearest and makes numbers below
// 2^-126 zero, as AMX does. Spans of a pair may overlap in C, so all sums of a pair are kept until it is complete.
func vectorProducts(name string, columns int) {
	const (
		mode  = 0x9fc0 // of MXCSR: FTZ, DAZ, to nearest, no exceptions
		width = 64
		unit  = 4 // words between jumps
	)
	TEXT(name, 0, "func(a *int)")
	sums := AllocLocal(16 * 2 * 2 * width) // by row, span and vector
	saved, used, pairs := AllocLocal(8), AllocLocal(8), AllocLocal(8)
	args, a0, a1, b, words := reg.RDI, reg.RSI, reg.RDX, reg.RBX, reg.RCX
	stepB, depth, steps, x, y := reg.R8, reg.R9, reg.R10, reg.R11, reg.R12
	spans, rows, sum := reg.R13, reg.RAX, reg.R15
	z := avx512.regs
	odd := z[31] // the upper half of each word
	masks := []reg.OpmaskPhysical{reg.K1, reg.K2}[:columns]
	field := func(f int) Mem { return Mem{Base: args, Disp: f} }
	span := func(n, disp int) Mem { return Mem{Base: spans, Disp: 16*n + disp} }
	place := func(s, c int) Mem { return Mem{Base: sum, Disp: (2*s + c) * width} }
	each := func(f func(s, c int)) {
		for s := range 2 {
			for c := range columns {
				f(s, c)
			}
		}
	}
	// eachRow writes a loop over the rows of a pair and their sums.
	eachRow := func(label string, f func()) {
		LEAQ(sums, sum)
		MOVBQZX(field(48), rows)
		Label(label)
		f()
		ADDQ(U32(4*width), sum)
		DECQ(rows)
		JNZ(LabelRef(label))
	}
	// results sets x and y to the first rows of C.
	results := func() {
		MOVQ(field(tileOperandC), x)
		MOVQ(x, y)
		ADDQ(span(0, 8), x)
		ADDQ(span(1, 8), y)
	}
	c := func(s, c int) Mem { return Mem{Base: []reg.GPPhysical{x, y}[s], Disp: c * width} }
	nextResults := func() {
		ADDQ(field(tileStepC), x)
		ADDQ(field(tileStepC), y)
	}

	Load(Param("a"), args)
	STMXCSR(saved)
	MOVL(U32(mode), used)
	LDMXCSR(used)
	for i, k := range masks {
		MOVWQZX(field(16+2*i), x)
		SHRQ(Imm(2), x)
		MOVL(U32(0xffffffff), y.As32())
		BZHIL(x.As32(), y.As32(), y.As32())
		KMOVW(y.As32(), k)
	}
	MOVL(U32(0xffff0000), x.As32())
	VPBROADCASTD(x.As32(), odd)
	MOVQ(U32(uint32(width*columns)), stepB)
	MOVQ(field(tileSpans), spans)
	MOVQ(field(tilePairs), x)
	MOVQ(x, pairs)

	Label("pair")
	MOVQ(field(tileAdd), x)
	TESTQ(x, x)
	JZ(LabelRef("fresh"))
	results()
	eachRow("add", func() {
		each(func(s, v int) {
			VMOVUPS_Z(c(s, v), masks[v], z[0])
			VMOVUPS(z[0], place(s, v))
		})
		nextResults()
	})
	JMP(LabelRef("sum"))
	Label("fresh")
	for v := range columns {
		VXORPS(z[v], z[v], z[v])
	}
	MOVQ(field(tileInit), x)
	TESTQ(x, x)
	JZ(LabelRef("start"))
	for v := range columns {
		VMOVUPS_Z(Mem{Base: x, Disp: v * width}, masks[v], z[v])
	}
	Label("start")
	eachRow("copy", func() { each(func(s, v int) { VMOVUPS(z[v], place(s, v)) }) })

	Label("sum")
	MOVQ(field(tileOperandA), a0)
	MOVQ(a0, a1)
	ADDQ(span(0, 0), a0)
	ADDQ(span(1, 0), a1)
	// Vectors by span, column and parity of the elements.
	acc := func(s, v, parity int) reg.VecPhysical { return z[4*s+2*v+parity] }
	total := func(s, v int) reg.VecPhysical { return z[8+2*s+v] }
	factorA := func(s, parity int) reg.VecPhysical { return z[12+2*s+parity] }
	factorB := func(v, parity int) reg.VecPhysical { return z[16+2*v+parity] }
	eachRow("row", func() {
		each(func(s, v int) { VMOVUPS(place(s, v), total(s, v)) })
		MOVQ(field(tileSteps), steps)
		MOVQ(field(tileDepth), depth)
		Label("step")
		MOVQ(Mem{Base: steps}, y)
		MOVQ(Mem{Base: steps, Disp: 8}, b)
		ADDQ(Imm(16), steps)
		LEAQ(Mem{Base: a0, Index: y, Scale: 1}, x)
		ADDQ(a1, y)
		ADDQ(field(tileOperandB), b)
		each(func(s, v int) {
			for parity := range 2 {
				VXORPS(acc(s, v, parity), acc(s, v, parity), acc(s, v, parity))
			}
		})
		MOVQ(U32(16/unit), words)
		Label("words")
		for i := range unit {
			for v := range columns {
				VMOVDQU32_Z(Mem{Base: b, Disp: v * width}, masks[v], factorB(v, 1))
				VPSLLD(Imm(16), factorB(v, 1), factorB(v, 0))
				VPANDD(odd, factorB(v, 1), factorB(v, 1))
			}
			ADDQ(stepB, b)
			for s, p := range []reg.GPPhysical{x, y} {
				VPBROADCASTD(Mem{Base: p, Disp: 4 * i}, factorA(s, 1))
				VPSLLD(Imm(16), factorA(s, 1), factorA(s, 0))
				VPANDD(odd, factorA(s, 1), factorA(s, 1))
			}
			each(func(s, v int) {
				for parity := range 2 {
					VFMADD231PS(factorB(v, parity), factorA(s, parity), acc(s, v, parity))
				}
			})
		}
		ADDQ(Imm(4*unit), x)
		ADDQ(Imm(4*unit), y)
		DECQ(words)
		JNZ(LabelRef("words"))
		each(func(s, v int) { VADDPS(acc(s, v, 1), acc(s, v, 0), acc(s, v, 0)) })
		each(func(s, v int) { VADDPS(acc(s, v, 0), total(s, v), total(s, v)) })
		DECQ(depth)
		JNZ(LabelRef("step"))
		each(func(s, v int) { VMOVUPS(total(s, v), place(s, v)) })
		ADDQ(field(tileStepA), a0)
		ADDQ(field(tileStepA), a1)
	})

	results()
	eachRow("result", func() {
		each(func(s, v int) {
			VMOVUPS(place(s, v), z[0])
			VMOVUPS(z[0], masks[v], c(s, v))
		})
		nextResults()
	})
	ADDQ(Imm(32), spans)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	LDMXCSR(saved)
	VZEROUPPER()
	RET()
}
