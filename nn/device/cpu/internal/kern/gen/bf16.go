package main

import (
	"bytes"
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dots writes the kernels of pairs of bfloat16 and their set.
func dots(decl *bytes.Buffer) {
	tiles(decl, bf16)
	copyRows("bf16CopyPairs", bf16, paired)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc bf16CopyPairs(dst, src *float32, rows, width, dstStride, srcStride int)\n")
	pairRows("bf16PairRows", bf16)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc bf16PairRows(dst, first, second *float32, rows, width, dstStride, srcStride int)\n")
	peak("bf16Peak", bf16)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc bf16Peak(n int)\n")
	fmt.Fprintf(decl, "\nvar bf16Set = Set{\n\tRows: %d, Lanes: %d, Registers: %d, Copy: avx512Copy, Pack: avx512Pack, Add: avx512Add, Peak: bf16Peak,\n", bf16.rows, bf16.bytes/4, len(bf16.regs))
	fmt.Fprintf(decl, "\tNarrow: &Narrow{Step: 2, Copy: bf16CopyPairs, PairRows: bf16PairRows},\n")
	listTiles(decl, bf16)
	fmt.Fprintf(decl, "}\n")
}

// dot adds to acc the products of the upper, then of the lower halves of the words of a and b: VDPBF16PS, which Go's
// assembler does not know, in EVEX.512.F3.0F38.W0 52 /r.
func dot(a, b, acc reg.VecPhysical) {
	number := func(r reg.VecPhysical) uint32 { return uint32(slices.Index(bf16.regs, r)) }
	rm, v, r := number(b), number(a), number(acc)
	bit := func(x uint32, i int) uint32 { return ^x >> i & 1 } // they are stored inverted
	const (
		map38, prefixF3, length512 = 2, 2, 2
		fixed                      = 1 << 2
		opcode                     = 0x52
		registers                  = 3 << 6
	)
	p0 := bit(r, 3)<<7 | bit(rm, 4)<<6 | bit(rm, 3)<<5 | bit(r, 4)<<4 | map38
	p1 := ^v&15<<3 | fixed | prefixF3
	p2 := length512<<5 | bit(v, 4)<<3
	emit := func(opcode string, imm Constant) {
		Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{imm}})
	}
	Commentf("VDPBF16PS Z%d, Z%d, Z%d", rm, v, r)
	emit("LONG", U32(0x62|p0<<8|p1<<16|p2<<24))
	emit("WORD", U16(opcode|(registers|r&7<<3|rm&7)<<8))
}

// rounding rounds vectors to bfloat16: to the nearest, ties to even. Denormals become zeros, and a NaN stays one.
type rounding struct {
	isa
	one, half, high, exponent, sign, quiet, t, m, q reg.VecPhysical
}

// roundingConstants are in memory, once each.
var roundingConstants = map[uint32]Mem{}

// newRounding has registers from the first one on.
func newRounding(s isa, first int) rounding {
	take := func() reg.VecPhysical {
		first++
		return s.regs[first-1]
	}
	constant := func(v uint32) reg.VecPhysical {
		at, ok := roundingConstants[v]
		if !ok {
			at = GLOBL(fmt.Sprintf("bits%08x", v), RODATA|NOPTR)
			DATA(0, U32(v))
			roundingConstants[v] = at
		}
		x := take()
		VPBROADCASTD(at, x)
		return x
	}
	return rounding{
		isa: s, one: constant(1), half: constant(0x7fff), high: constant(0xffff0000), exponent: constant(0x7f800000),
		sign: constant(1 << 31), quiet: constant(1 << 22), t: take(), m: take(), q: take(),
	}
}

// round leaves the lower half of each element zero.
func (r rounding) round(x reg.VecPhysical) {
	VPSRLD(Imm(16), x, r.t)
	if r.masks {
		nan, small := reg.K2, reg.K3
		VPANDD(r.one, r.t, r.t)
		VPADDD(r.half, r.t, r.t)
		VPADDD(x, r.t, r.t)
		VCMPPS(Imm(3), x, x, nan)
		VPORD(r.quiet, x, nan, r.t)
		VPTESTNMD(r.exponent, x, small)
		VPANDD(r.sign, x, small, r.t)
		VPANDD(r.high, r.t, x)
		return
	}
	VPAND(r.one, r.t, r.t)
	VPADDD(r.half, r.t, r.t)
	VPADDD(x, r.t, r.t)
	VCMPPS(Imm(3), x, x, r.m)
	VPOR(r.quiet, x, r.q)
	VBLENDVPS(r.m, r.q, r.t, r.t)
	VPAND(r.exponent, x, r.m)
	VPXOR(x, x, x)
	VPCMPEQD(x, r.m, r.m)
	VPSRLD(Imm(1), r.m, r.m)
	VPANDN(r.t, r.m, r.t) // the sign alone of what is small
	VPAND(r.high, r.t, x)
}

// storePairs writes the elements of x, which are rounded, two in a word: the first one in the upper half.
func (r rounding) storePairs(x reg.VecPhysical, to Mem) {
	VPSRLQ(Imm(48), x, r.t)
	VPORD(r.t, x, x)
	VPMOVQD(x, to)
}

// pairRows writes rows of words of an element of each of two rows. Their width is one of whole vectors; dst may be first.
func pairRows(name string, s isa) {
	TEXT(name, NOSPLIT, "func(dst, first, second *float32, rows, width, dstStride, srcStride int)")
	dst, first, second := Load(Param("dst"), GP64()), Load(Param("first"), GP64()), Load(Param("second"), GP64())
	rows, width := Load(Param("rows"), GP64()), Load(Param("width"), GP64())
	dstStride, srcStride := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64())
	x, y := s.regs[0], s.regs[1]
	r := newRounding(s, 2)
	SHLQ(Imm(2), width)
	at := GP64()
	Label("row")
	XORQ(at, at)
	Label("loop")
	VMOVUPS(Mem{Base: first, Index: at, Scale: 1}, x)
	VMOVUPS(Mem{Base: second, Index: at, Scale: 1}, y)
	r.round(x)
	r.round(y)
	VPSRLD(Imm(16), y, y)
	VPORD(y, x, x)
	VMOVUPS(x, Mem{Base: dst, Index: at, Scale: 1})
	ADDQ(Imm(uint64(s.bytes)), at)
	CMPQ(at, width)
	JL(LabelRef("loop"))
	ADDQ(srcStride, first)
	ADDQ(srcStride, second)
	ADDQ(dstStride, dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
