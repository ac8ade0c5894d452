package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	constBits = 13
	pass1Bits = 2
)

// idct keeps eight rows of 32-bit numbers in registers. Columns are transformed first, then, transposed, the rows.
func idct() {
	TEXT("idctAVX2", NOSPLIT, "func(dst *uint8, stride int, coef, quant *int16)")
	dst, stride := param("dst").(reg.GPVirtual), param("stride").(reg.GPVirtual)
	coef, quant := param("coef"), param("quant")
	var c [8]reg.VecVirtual
	for i := range 8 {
		x := XMM()
		VMOVDQU(Mem{Base: coef, Disp: 16 * i}, x)
		VPMULLW(Mem{Base: quant, Disp: 16 * i}, x, x)
		c[i] = YMM()
		VPMOVSXWD(x, c[i])
	}
	c = pass(c, 1<<(constBits-pass1Bits-1), constBits-pass1Bits, "round1")
	c = transpose(c)
	const shift = constBits + pass1Bits + 3
	c = pass(c, 1<<(shift-1)+128<<shift, shift, "round2")

	// Register x holds the column x of the block, a row in each lane. Packed to bytes, the lanes of pairs are
	// columns 0 to 3 of rows 0 to 3 and of rows 4 to 7, and so on.
	for i := 0; i < 8; i += 2 {
		VPACKSSDW(c[i+1], c[i], c[i]) // words: c[i] of four rows, c[i+1] of four rows
	}
	for i := 0; i < 8; i += 4 {
		VPACKUSWB(c[i+2], c[i], c[i]) // bytes: columns i to i+3, four rows each
	}
	// Transpose 4×4 bytes within each lane.
	mask := octets("transpose4", []byte{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15})
	VPSHUFB(mask, c[0], c[0]) // dword r of a lane: columns 0 to 3 of row r (or 4+r)
	VPSHUFB(mask, c[4], c[4])
	VPUNPCKLDQ(c[4], c[0], c[1]) // rows 0, 1 | 4, 5
	VPUNPCKHDQ(c[4], c[0], c[2]) // rows 2, 3 | 6, 7
	three, four := GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	LEAQ(Mem{Base: dst, Index: stride, Scale: 4}, four)
	for half, base := range []reg.GPVirtual{dst, four} {
		a, b := c[1].AsX(), c[2].AsX()
		if half == 1 {
			a, b = XMM(), XMM()
			VEXTRACTI128(Imm(1), c[1], a)
			VEXTRACTI128(Imm(1), c[2], b)
		}
		VMOVQ(a, Mem{Base: base})
		VPEXTRQ(Imm(1), a, Mem{Base: base, Index: stride, Scale: 1})
		VMOVQ(b, Mem{Base: base, Index: stride, Scale: 2})
		VPEXTRQ(Imm(1), b, Mem{Base: base, Index: three, Scale: 1})
	}
	VZEROUPPER()
	RET()
}

// pass transforms along the registers, as butterflies in idct.go and the code after it.
func pass(c [8]reg.VecVirtual, round int32, shift uint64, name string) (out [8]reg.VecVirtual) {
	mul := func(x reg.VecVirtual, fix int32, name string) reg.VecVirtual {
		y := YMM()
		VPMULLD(dwords(name, fix), x, y)
		return y
	}
	add := func(a, b reg.VecVirtual) reg.VecVirtual { y := YMM(); VPADDD(b, a, y); return y }
	sub := func(a, b reg.VecVirtual) reg.VecVirtual { y := YMM(); VPSUBD(b, a, y); return y } // a − b

	z1 := mul(add(c[2], c[6]), 4433, "fix0541196100")
	t2 := sub(z1, mul(c[6], 15137, "fix1847759065"))
	t3 := add(z1, mul(c[2], 6270, "fix0765366865"))
	t0, t1 := add(c[0], c[4]), sub(c[0], c[4])
	for _, t := range []reg.VecVirtual{t0, t1} {
		VPSLLD(Imm(constBits), t, t)
		VPADDD(dwords(name, round), t, t)
	}
	e0, e3, e1, e2 := add(t0, t3), sub(t0, t3), add(t1, t2), sub(t1, t2)

	y3, y4 := add(c[7], c[3]), add(c[5], c[1])
	z5 := mul(add(y3, y4), 9633, "fix1175875602")
	z3 := sub(z5, mul(y3, 16069, "fix1961570560"))
	z4 := sub(z5, mul(y4, 3196, "fix0390180644"))
	z1 = mul(add(c[7], c[1]), -7373, "minus0899976223")
	o0 := add(add(mul(c[7], 2446, "fix0298631336"), z1), z3)
	o3 := add(add(mul(c[1], 12299, "fix1501321110"), z1), z4)
	z2 := mul(add(c[5], c[3]), -20995, "minus2562915447")
	o1 := add(add(mul(c[5], 16819, "fix2053119869"), z2), z4)
	o2 := add(add(mul(c[3], 25172, "fix3072711026"), z2), z3)

	for i, p := range [][2]reg.VecVirtual{{e0, o3}, {e1, o2}, {e2, o1}, {e3, o0}} {
		out[i], out[7-i] = add(p[0], p[1]), sub(p[0], p[1])
		VPSRAD(Imm(shift), out[i], out[i])
		VPSRAD(Imm(shift), out[7-i], out[7-i])
	}
	return out
}

// transpose exchanges rows and columns of 8×8 numbers.
func transpose(c [8]reg.VecVirtual) (out [8]reg.VecVirtual) {
	var a, b [8]reg.VecVirtual
	for i := 0; i < 8; i += 2 {
		a[i], a[i+1] = YMM(), YMM()
		VPUNPCKLDQ(c[i+1], c[i], a[i])   // columns 0, 1 of rows i, i+1
		VPUNPCKHDQ(c[i+1], c[i], a[i+1]) // columns 2, 3
	}
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			b[i+2*j], b[i+2*j+1] = YMM(), YMM()
			VPUNPCKLQDQ(a[i+2+j], a[i+j], b[i+2*j])   // column 2j of four rows
			VPUNPCKHQDQ(a[i+2+j], a[i+j], b[i+2*j+1]) // column 2j+1
		}
	}
	for i := range 4 {
		out[i], out[4+i] = YMM(), YMM()
		VPERM2I128(Imm(0x20), b[4+i], b[i], out[i])
		VPERM2I128(Imm(0x31), b[4+i], b[i], out[4+i])
	}
	return out
}

// idct4 is idct to 4×4 samples: reduced4 of idctscaled.go along the registers, twice.
func idct4() {
	TEXT("idct4AVX2", NOSPLIT, "func(dst *uint8, stride int, coef, quant *int16)")
	dst, stride := param("dst").(reg.GPVirtual), param("stride").(reg.GPVirtual)
	coef, quant := param("coef"), param("quant")
	var c [8]reg.VecVirtual
	for _, i := range []int{0, 1, 2, 3, 5, 6, 7} {
		x := XMM()
		VMOVDQU(Mem{Base: coef, Disp: 16 * i}, x)
		VPMULLW(Mem{Base: quant, Disp: 16 * i}, x, x)
		c[i] = YMM()
		VPMOVSXWD(x, c[i])
	}
	s := reduced(c, 1<<(constBits-pass1Bits), constBits-pass1Bits+1, "round3")
	// Column i of the samples so far, in the lower half of register i.
	for i := range 4 {
		c[i] = s[i]
		c[4+i] = s[i] // unused, but defined
	}
	c = transpose(c)
	const shift = constBits + pass1Bits + 4
	s = reduced(c, 1<<(shift-1)+128<<shift, shift, "round4")
	// As in idct: words, bytes, and 4×4 of them transposed.
	VPACKSSDW(s[1], s[0], s[0])
	VPACKSSDW(s[3], s[2], s[2])
	VPACKUSWB(s[2], s[0], s[0])
	VPSHUFB(octets("transpose4", []byte{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}), s[0], s[0])
	x, three := s[0].AsX(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	VMOVD(x, Mem{Base: dst})
	VPEXTRD(Imm(1), x, Mem{Base: dst, Index: stride, Scale: 1})
	VPEXTRD(Imm(2), x, Mem{Base: dst, Index: stride, Scale: 2})
	VPEXTRD(Imm(3), x, Mem{Base: dst, Index: three, Scale: 1})
	VZEROUPPER()
	RET()
}

// reduced is reduced4 along the registers.
func reduced(c [8]reg.VecVirtual, round int32, shift uint64, name string) (s [4]reg.VecVirtual) {
	mul := func(x reg.VecVirtual, fix int32, name string) reg.VecVirtual {
		y := YMM()
		VPMULLD(dwords(name, fix), x, y)
		return y
	}
	add := func(a, b reg.VecVirtual) reg.VecVirtual { y := YMM(); VPADDD(b, a, y); return y }
	sub := func(a, b reg.VecVirtual) reg.VecVirtual { y := YMM(); VPSUBD(b, a, y); return y } // a − b

	t0 := YMM()
	VPSLLD(Imm(constBits+1), c[0], t0)
	VPADDD(dwords(name, round), t0, t0)
	t2 := sub(mul(c[2], 15137, "fix1847759065"), mul(c[6], 6270, "fix0765366865"))
	e0, e1 := add(t0, t2), sub(t0, t2)
	o1 := add(mul(c[5], 11893, "fix1451774981"), mul(c[1], 8697, "fix1061594337"))
	o1 = sub(o1, add(mul(c[7], 1730, "fix0211164243"), mul(c[3], 17799, "fix2172734803")))
	o0 := add(mul(c[3], 7373, "fix0899976223"), mul(c[1], 20995, "fix2562915447"))
	o0 = sub(o0, add(mul(c[7], 4176, "fix0509795579"), mul(c[5], 4926, "fix0601344887")))
	s = [4]reg.VecVirtual{add(e0, o0), add(e1, o1), sub(e1, o1), sub(e0, o0)}
	for _, x := range s {
		VPSRAD(Imm(shift), x, x)
	}
	return s
}
