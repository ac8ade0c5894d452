package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Coefficients of 22 fractional bits are split into high and low parts of 16 bits: see SplitBits.
const (
	precision = 22
	splitBits = 11
)

// across resamples n pixels of three channels, two at a time. Each pixel has pairs of taps from byte starts[i] of in
// on. For two pixels and a pair, coef holds four times 8 words: the high parts of either pixel, then the low parts.
func across() {
	TEXT("acrossAVX2", NOSPLIT, "func(out, in *uint8, starts *int32, coef *int16, pairs, n int)")
	out, in := param("out").(reg.GPVirtual), param("in").(reg.GPVirtual)
	starts, coef := param("starts").(reg.GPVirtual), param("coef").(reg.GPVirtual)
	pairs, n := param("pairs").(reg.GPVirtual), param("n").(reg.GPVirtual)
	const none = 0x80
	mask := load(octets("pixels", []byte{0, none, 3, none, 1, none, 4, none, 2, none, 5, none, none, none, none, none}))
	half := load(dwords("half22", 1<<(precision-1)))
	Label("pixels")
	a, b, left := GP64(), GP64(), GP64()
	MOVLQSX(Mem{Base: starts}, a)
	MOVLQSX(Mem{Base: starts, Disp: 4}, b)
	ADDQ(in, a)
	ADDQ(in, b)
	MOVQ(pairs, left)
	high, low := YMM(), YMM()
	VPXOR(high, high, high)
	VMOVDQA(half, low)
	Label("taps")
	p, q := YMM(), YMM()
	VMOVDQU(Mem{Base: a}, p.AsX())
	VINSERTI128(Imm(1), Mem{Base: b}, p, p)
	VPSHUFB(mask, p, p)
	VPMADDWD(Mem{Base: coef}, p, q)
	VPADDD(q, high, high)
	VPMADDWD(Mem{Base: coef, Disp: 32}, p, q)
	VPADDD(q, low, low)
	ADDQ(Imm(64), coef)
	ADDQ(Imm(6), a)
	ADDQ(Imm(6), b)
	DECQ(left)
	JNZ(LabelRef("taps"))
	VPSLLD(Imm(splitBits), high, high)
	VPADDD(high, low, low)
	VPSRAD(Imm(precision), low, low)
	VPACKSSDW(low, low, low)
	VPACKUSWB(low, low, low)
	VMOVD(low.AsX(), Mem{Base: out})
	second := XMM()
	VEXTRACTI128(Imm(1), low, second)
	VMOVD(second, Mem{Base: out, Disp: 3})
	ADDQ(Imm(6), out)
	ADDQ(Imm(8), starts)
	SUBQ(Imm(2), n)
	JG(LabelRef("pixels"))
	VZEROUPPER()
	RET()
}

// down writes n weighted sums of 2·pairs rows that are stride bytes apart; n is a multiple of 32. For a pair coef holds
// the high parts of both taps, 16 bits each, and then the low parts.
func down() {
	TEXT("downAVX2", NOSPLIT, "func(out, in *uint8, stride int, coef *uint32, pairs, n int)")
	out, in := param("out").(reg.GPVirtual), param("in").(reg.GPVirtual)
	stride, coef := param("stride").(reg.GPVirtual), param("coef").(reg.GPVirtual)
	pairs, n := param("pairs").(reg.GPVirtual), param("n").(reg.GPVirtual)
	zero := YMM()
	VPXOR(zero, zero, zero)
	Label("columns")
	row, taps, left := GP64(), GP64(), GP64()
	MOVQ(in, row)
	MOVQ(coef, taps)
	MOVQ(pairs, left)
	var high, low [4]reg.VecVirtual
	for i := range 4 {
		high[i], low[i] = YMM(), YMM()
		VPXOR(high[i], high[i], high[i])
		VMOVDQU(dwords("half22", 1<<(precision-1)), low[i])
	}
	Label("rows")
	a, b, ch, cl := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: row}, a)
	VMOVDQU(Mem{Base: row, Index: stride, Scale: 1}, b)
	LEAQ(Mem{Base: row, Index: stride, Scale: 2}, row)
	VPBROADCASTD(Mem{Base: taps}, ch)
	VPBROADCASTD(Mem{Base: taps, Disp: 4}, cl)
	ADDQ(Imm(8), taps)
	mixed := YMM()
	VPUNPCKLBW(b, a, mixed)
	VPUNPCKHBW(b, a, b)
	for i := range 4 {
		from, p := mixed, YMM()
		if i >= 2 {
			from = b
		}
		if i%2 == 0 {
			VPUNPCKLBW(zero, from, p)
		} else {
			VPUNPCKHBW(zero, from, p)
		}
		q := YMM()
		VPMADDWD(ch, p, q)
		VPADDD(q, high[i], high[i])
		VPMADDWD(cl, p, p)
		VPADDD(p, low[i], low[i])
	}
	DECQ(left)
	JNZ(LabelRef("rows"))
	for i := range 4 {
		VPSLLD(Imm(splitBits), high[i], high[i])
		VPADDD(high[i], low[i], low[i])
		VPSRAD(Imm(precision), low[i], low[i])
	}
	VPACKSSDW(low[1], low[0], low[0])
	VPACKSSDW(low[3], low[2], low[2])
	VPACKUSWB(low[2], low[0], low[0])
	VMOVDQU(low[0], Mem{Base: out})
	ADDQ(Imm(32), out)
	ADDQ(Imm(32), in)
	SUBQ(Imm(32), n)
	JG(LabelRef("columns"))
	VZEROUPPER()
	RET()
}
