package main

import (
	"bytes"
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

// dots writes the kernels of pairs of bfloat16 and their set.
func dots(decl *bytes.Buffer) {
	tiles(decl, bf16)
	copyPairs("bf16CopyPairs", bf16, true)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc bf16CopyPairs%s\n", copies)
	copyStored("bf16CopyStored", bf16, true)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc bf16CopyStored%s\n", widens)
	narrow("bf16Narrow", bf16)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc bf16Narrow%s\n", narrows)
	pairRows("bf16PairRows", bf16, true)
	fmt.Fprintf(decl, "\n//go:noescape\n"+
		"func bf16PairRows(dst, first, second *float32, rows, width, dstStride, srcStride int)\n")
	peak("bf16Peak", bf16)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc bf16Peak(n int)\n")
	fmt.Fprintf(decl, "\nvar bf16Set = Set{\n\tRows: %d, Lanes: %d, Registers: %d, Copy: avx512Copy, Pack: avx512Pack, "+
		"Fetch: fetch, Add: avx512Add, Peak: bf16Peak,\n", bf16.rows, bf16.bytes/4, len(bf16.regs))
	fmt.Fprintf(decl, "\tNarrow: &Narrow{Step: 2, Copy: bf16CopyPairs, Stored: bf16CopyStored, PairRows: bf16PairRows},\n")
	listTiles(decl, bf16)
	fmt.Fprintf(decl, "}\n")
}

// dot adds the products of the upper halves of the words of a and b to acc, then those of the lower halves.
func dot(a, b, acc reg.VecPhysical) { encode("VDPBF16PS", 0x52, b, a, acc) }

// convert rounds low and high to bfloat16, as rounding does, and makes them the halves of low. VCVTNE2PS2BF16 does both
// at once, but Bochs 3.0, on which this is tested, reads one of its operands twice.
func convert(low, high reg.VecPhysical) {
	for _, x := range []reg.VecPhysical{low, high} {
		encode("VCVTNEPS2BF16", 0x72, x, nil, x)
	}
	VINSERTI64X4(Imm(1), high.AsY(), low, low)
}

// encode writes such an instruction, with operands in the assembler's order. src1 is nil for two operands.
func encode(name string, opcode uint32, src2, src1, dst reg.VecPhysical) {
	number := func(r reg.VecPhysical) int { return slices.Index(bf16.regs, r) }
	if src1 == nil {
		avx.EncodeBF16(name, opcode, number(src2), -1, number(dst))
		return
	}
	avx.EncodeBF16(name, opcode, number(src2), number(src1), number(dst))
}

// rounding rounds vectors to bfloat16: to nearest, ties to even. Denormals become zeros, and a NaN stays NaN.
type rounding struct {
	isa
	one, half, high, exponent, sign, quiet, t, m, q reg.VecPhysical
}

// roundingConstants are in memory, once each.
var roundingConstants = map[uint32]Mem{}

// newRounding uses registers from first on.
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
	r.sum(x)
	if r.masks {
		VPANDD(r.high, r.t, x)
	} else {
		VPAND(r.high, r.t, x)
	}
}

// upper leaves bfloat16 as integers.
func (r rounding) upper(x reg.VecPhysical) {
	r.sum(x)
	VPSRLD(Imm(16), r.t, x)
}

// sum leaves x plus the rounding term in t: cutting off the lower halves then rounds.
func (r rounding) sum(x reg.VecPhysical) {
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
	VPANDN(r.t, r.m, r.t) // only the sign of small numbers
}

// copyPairs is copyRows for words of two elements, the first one in the upper half if upper is set.
func copyPairs(name string, s isa, upper bool) {
	x, y := s.regs[0], s.regs[1]
	put := func(r rowAt) {
		convert(x, y)
		if upper {
			VPROLD(Imm(16), x, x)
		}
		VMOVUPS(x, r.in(r.dst, 2, 0, 0))
	}
	eachRow(name, copies, s.bytes/2, 1,
		func(r rowAt) {
			bits := first(r.left)
			KMOVW(bits.As32(), reg.K1) // the remaining elements
			SHRQ(Imm(uint64(s.bytes/4)), bits)
			KMOVW(bits.As32(), reg.K2)
		},
		func(r rowAt, _ int) {
			VMOVUPS(r.in(r.src, 4, 0, 0), x)
			VMOVUPS(r.in(r.src, 4, s.bytes, 1), y)
			put(r)
		},
		func(r rowAt) {
			VMOVUPS_Z(r.in(r.src, 4, 0, 0), reg.K1, x)
			VMOVUPS_Z(r.in(r.src, 4, s.bytes, 1), reg.K2, y)
			put(r)
		})
}

// first returns n set bits.
func first(n reg.Register) reg.GPVirtual {
	bits := GP64()
	MOVQ(I32(-1), bits)
	SHLXQ(n, bits, bits)
	NOTQ(bits)
	return bits
}

// pairOrder combines the halves of a vector of words.
var pairOrder Mem

// pairRows writes rows of words that combine an element of each of two rows, that of the first one in the upper half if
// upper is set. Their width is a whole number of vectors; dst may be first.
func pairRows(name string, s isa, upper bool) {
	if pairOrder.Symbol.Name == "" {
		pairOrder = GLOBL("pairOrder", RODATA|NOPTR)
		for i := range s.bytes / 4 {
			DATA(4*i, U32((16+i)<<16|i))
		}
	}
	TEXT(name, NOSPLIT, "func(dst, first, second *float32, rows, width, dstStride, srcStride int)")
	dst, first, second := Load(Param("dst"), GP64()), Load(Param("first"), GP64()), Load(Param("second"), GP64())
	rows, width := Load(Param("rows"), GP64()), Load(Param("width"), GP64())
	dstStride, srcStride := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64())
	x, y, turn := s.regs[0], s.regs[1], s.regs[2]
	VMOVUPS(pairOrder, turn)
	SHLQ(Imm(2), width)
	at := GP64()
	Label("row")
	XORQ(at, at)
	Label("loop")
	VMOVUPS(Mem{Base: first, Index: at, Scale: 1}, x)
	VMOVUPS(Mem{Base: second, Index: at, Scale: 1}, y)
	low, high := x, y
	if upper {
		low, high = y, x
	}
	convert(low, high)
	VPERMW(low, turn, low)
	VMOVUPS(low, Mem{Base: dst, Index: at, Scale: 1})
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
