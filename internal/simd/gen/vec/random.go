package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// uniforms generates random numbers from words of Philox-4x32-10: four counters at a time, each word in the lower half
// of a 64-bit lane.
func uniforms() {
	s := avx2
	TEXT("uniforms"+s.Suffix, NOSPLIT, "func(dst *float32, groups int, counter, sample, step uint32, key uint64)")
	Pragma("noescape")
	dst, groups := Load(Param("dst"), GP64()), Load(Param("groups"), GP64())
	wide := func(name string) reg.VecVirtual {
		x, g := YMM(), GP32()
		Load(Param(name), g)
		VMOVD(g, x.AsX())
		VPBROADCASTD(x.AsX(), x)
		return x
	}
	words := func(name string, v func(i int) uint32) reg.VecVirtual {
		x := YMM()
		VMOVDQU(s.constant(name, v), x)
		return x
	}
	all := func(v uint32) func(int) uint32 { return func(int) uint32 { return v } }
	counter, sample, step := wide("counter"), wide("sample"), wide("step")
	VPADDD(s.constant("philoxFirst", func(i int) uint32 { return uint32(i / 2) }), counter, counter)
	key := Load(Param("key"), GP64())
	keys := [2]reg.VecVirtual{YMM(), YMM()}
	for i := range keys {
		VMOVQ(key, keys[i].AsX())
		VPBROADCASTD(keys[i].AsX(), keys[i])
		SHRQ(Imm(32), key)
	}
	m0, m1 := words("philoxM0", all(0xd2511f53)), words("philoxM1", all(0xcd9e8d57))
	w0, w1 := s.constant("philoxW0", all(0x9e3779b9)), s.constant("philoxW1", all(0xbb67ae85))
	next := s.constant("philoxNext", all(4))
	unit := s.constant("philoxUnit", all(0x33800000)) // 2⁻²⁴

	Label("group")
	c := [4]reg.VecVirtual{YMM(), YMM(), YMM(), YMM()}
	VMOVDQA(counter, c[0])
	VMOVDQA(sample, c[1])
	VMOVDQA(step, c[2])
	VPXOR(c[3], c[3], c[3])
	k := [2]reg.VecVirtual{YMM(), YMM()}
	VMOVDQA(keys[0], k[0])
	VMOVDQA(keys[1], k[1])
	for round := range 10 {
		if round > 0 {
			VPADDD(w0, k[0], k[0])
			VPADDD(w1, k[1], k[1])
		}
		p0, p1, h0, h1 := YMM(), YMM(), YMM(), YMM()
		VPMULUDQ(m0, c[0], p0)
		VPMULUDQ(m1, c[2], p1)
		VPSRLQ(Imm(32), p0, h0)
		VPSRLQ(Imm(32), p1, h1)
		VPXOR(c[1], h1, h1)
		VPXOR(k[0], h1, h1)
		VPXOR(c[3], h0, h0)
		VPXOR(k[1], h0, h0)
		c = [4]reg.VecVirtual{h1, p1, h0, p0}
	}
	VPSLLQ(Imm(32), c[1], c[1])
	VPSLLQ(Imm(32), c[3], c[3])
	a, b := YMM(), YMM() // words 0 and 1, and 2 and 3, of each counter
	VPBLENDD(Imm(0xaa), c[1], c[0], a)
	VPBLENDD(Imm(0xaa), c[3], c[2], b)
	low, high, y := YMM(), YMM(), YMM()
	VPUNPCKLQDQ(b, a, low)
	VPUNPCKHQDQ(b, a, high)
	for i, half := range []uint64{0x20, 0x31} {
		VPERM2I128(Imm(half), high, low, y)
		VPSRLD(Imm(8), y, y)
		VCVTDQ2PS(y, y)
		VMULPS(unit, y, y)
		VMOVUPS(y, Mem{Base: dst, Disp: 32 * i})
	}
	VPADDD(next, counter, counter)
	ADDQ(Imm(64), dst)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
