package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// upsample writes two samples for each of n, a multiple of 16. It also reads the samples before and after them.
func upsample(name string, far bool) {
	signature, even, odd, shift := "func(out, near *uint8, n int)", words("one", 1), words("two", 2), uint64(2)
	if far {
		signature, even, odd, shift = "func(out, near, far *uint8, n int)", words("eight", 8), words("seven", 7), 4
	}
	TEXT(name, NOSPLIT, signature)
	out, near := param("out").(reg.GPVirtual), param("near").(reg.GPVirtual)
	var other reg.GPVirtual
	if far {
		other = param("far").(reg.GPVirtual)
	}
	n := param("n").(reg.GPVirtual)
	var rounds [2]reg.VecVirtual
	for i, m := range []Mem{even, odd} {
		rounds[i] = load(m)
	}
	Label("loop")
	// sample is three times the near row plus the far one, or the sample itself.
	sample := func(offset int) reg.VecVirtual {
		x := YMM()
		VPMOVZXBW(Mem{Base: near, Disp: offset}, x)
		if far {
			x2, f := YMM(), YMM()
			VPADDW(x, x, x2)
			VPADDW(x2, x, x)
			VPMOVZXBW(Mem{Base: other, Disp: offset}, f)
			VPADDW(f, x, x)
		}
		return x
	}
	this := sample(0)
	triple := YMM()
	VPADDW(this, this, triple)
	VPADDW(triple, this, triple)
	var halves [2]reg.VecVirtual
	for i, offset := range []int{-1, 1} {
		x := sample(offset)
		VPADDW(triple, x, x)
		VPADDW(rounds[i], x, x)
		VPSRLW(Imm(shift), x, x)
		halves[i] = x
	}
	VPSLLW(Imm(8), halves[1], halves[1])
	VPOR(halves[0], halves[1], halves[0])
	VMOVDQU(halves[0], Mem{Base: out})
	ADDQ(Imm(32), out)
	ADDQ(Imm(16), near)
	if far {
		ADDQ(Imm(16), other)
	}
	SUBQ(Imm(16), n)
	JG(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// ycbcr converts n pixels, a multiple of 16. The products are libjpeg's in two steps of 16 bits with the same sum:
// 91881 is 65536 + 26345, −46802 is 18734 − 65536 and 116130 is 131072 − 14942.
func ycbcr() {
	TEXT("ycbcrToRGBAVX2", NOSPLIT, "func(dst, luma, cb, cr *uint8, n int)")
	dst, luma := param("dst").(reg.GPVirtual), param("luma").(reg.GPVirtual)
	cb, cr, n := param("cb").(reg.GPVirtual), param("cr").(reg.GPVirtual), param("n").(reg.GPVirtual)
	bias, one := load(words("center", 128)), load(words("one", 1))
	half := load(dwords("half16", 1<<15))
	green := data("green", func() {
		for i := range 8 {
			DATA(4*i, I16(-22554))
			DATA(4*i+2, I16(18734))
		}
	})
	Label("loop")
	y, u, v := YMM(), YMM(), YMM()
	VPMOVZXBW(Mem{Base: luma}, y)
	VPMOVZXBW(Mem{Base: cb}, u)
	VPMOVZXBW(Mem{Base: cr}, v)
	VPSUBW(bias, u, u)
	VPSUBW(bias, v, v)
	// product is (x·fix + 2¹⁵) >> 16.
	product := func(x reg.VecVirtual, fix Mem) reg.VecVirtual {
		p := YMM()
		VPADDW(x, x, p)
		VPMULHW(fix, p, p)
		VPADDW(one, p, p)
		VPSRAW(Imm(1), p, p)
		return p
	}
	r := product(v, words("red", 26345))
	VPADDW(v, r, r)
	VPADDW(y, r, r)
	b := product(u, words("blue", -14942))
	VPADDW(u, b, b)
	VPADDW(u, b, b)
	VPADDW(y, b, b)
	g, g2 := YMM(), YMM()
	VPUNPCKLWD(v, u, g)
	VPUNPCKHWD(v, u, g2)
	for _, x := range []reg.VecVirtual{g, g2} {
		VPMADDWD(green, x, x)
		VPADDD(half, x, x)
		VPSRAD(Imm(16), x, x)
	}
	VPACKSSDW(g2, g, g)
	VPSUBW(v, g, g)
	VPADDW(y, g, g)
	var planes [3]reg.VecVirtual
	for i, x := range []reg.VecVirtual{r, g, b} {
		h := XMM()
		VEXTRACTI128(Imm(1), x, h)
		VPACKUSWB(h, x.AsX(), h)
		planes[i] = h
	}
	// Each 16 bytes of the output take bytes of all three.
	for part := range 3 {
		var sum reg.VecVirtual
		for channel := range 3 {
			mask := make([]byte, 16)
			for i := range mask {
				mask[i] = 0x80
				if at := 16*part + i; at%3 == channel {
					mask[i] = byte(at / 3)
				}
			}
			x := XMM()
			VPSHUFB(octets("interleave"+string(rune('0'+part))+string(rune('0'+channel)), mask), planes[channel], x)
			if channel > 0 {
				VPOR(sum, x, x)
			}
			sum = x
		}
		VMOVDQU(sum, Mem{Base: dst, Disp: 16 * part})
	}
	ADDQ(Imm(48), dst)
	for _, p := range []reg.GPVirtual{luma, cb, cr} {
		ADDQ(Imm(16), p)
	}
	SUBQ(Imm(16), n)
	JG(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
