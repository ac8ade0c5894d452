package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sparse makes the kernels that multiply compressed rows by four vectors at once, whose elements with the same index
// are adjacent. Rows occupy start[0] to start[rows] in values and index.
func (s isa) sparse() {
	// each runs body for the values of a row, two at a time.
	each := func(index, at, end reg.GPVirtual, body func(unit int, column reg.GPVirtual)) {
		step := func(units int) {
			for u := range units {
				column := GP64()
				MOVLQSX(Mem{Base: index, Index: at, Scale: 4, Disp: 4 * u}, column)
				SHLQ(Imm(5), column) // bytes of four elements
				body(u, column)
			}
			ADDQ(Imm(uint64(units)), at)
		}
		two := GP64()
		LEAQ(Mem{Base: end, Disp: -2}, two)
		Label("two")
		CMPQ(at, two)
		JG(LabelRef("one"))
		step(2)
		JMP(LabelRef("two"))
		Label("one")
		CMPQ(at, end)
		JGE(LabelRef("end"))
		step(1)
		Label("end")
	}
	TEXT("sparseDots4"+s.Suffix, NOSPLIT,
		"func(out, values *float64, index *int32, start *int, w *float64, rows, pitch int)")
	Pragma("noescape")
	out, values, index := Load(Param("out"), GP64()).(reg.GPVirtual), Load(Param("values"), GP64()).(reg.GPVirtual),
		Load(Param("index"), GP64()).(reg.GPVirtual)
	start, w, left, pitch := Load(Param("start"), GP64()).(reg.GPVirtual), Load(Param("w"), GP64()).(reg.GPVirtual),
		Load(Param("rows"), GP64()).(reg.GPVirtual), elements("pitch", 8)
	at, end := GP64(), GP64()
	MOVQ(Mem{Base: start}, at)
	Label("row")
	MOVQ(Mem{Base: start, Disp: 8}, end)
	sums := []reg.VecVirtual{s.Zero(), s.Zero()}
	each(index, at, end, func(unit int, column reg.GPVirtual) {
		v := s.Broadcast(Mem{Base: values, Index: at, Scale: 8, Disp: 8 * unit})
		VFMADD231PD(Mem{Base: w, Index: column, Scale: 1}, v, sums[unit])
	})
	VADDPD(sums[1], sums[0], sums[0])
	high, to := XMM(), GP64()
	VEXTRACTF128(Imm(1), sums[0], high)
	VMOVLPD(sums[0].AsX(), Mem{Base: out})
	VMOVHPD(sums[0].AsX(), Mem{Base: out, Index: pitch, Scale: 1})
	LEAQ(Mem{Base: out, Index: pitch, Scale: 2}, to)
	VMOVLPD(high, Mem{Base: to})
	VMOVHPD(high, Mem{Base: to, Index: pitch, Scale: 1})
	ADDQ(Imm(8), out)
	ADDQ(Imm(8), start)
	DECQ(left)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()

	TEXT("sparseAddRows4"+s.Suffix, NOSPLIT,
		"func(dst, values *float64, index *int32, start *int, a *float64, rows, pitch int)")
	Pragma("noescape")
	dst, values, index := Load(Param("dst"), GP64()).(reg.GPVirtual), Load(Param("values"), GP64()).(reg.GPVirtual),
		Load(Param("index"), GP64()).(reg.GPVirtual)
	start, a, left, pitch := Load(Param("start"), GP64()).(reg.GPVirtual), Load(Param("a"), GP64()).(reg.GPVirtual),
		Load(Param("rows"), GP64()).(reg.GPVirtual), elements("pitch", 8)
	at, end = GP64(), GP64()
	MOVQ(Mem{Base: start}, at)
	Label("row")
	MOVQ(Mem{Base: start, Disp: 8}, end)
	from, lower, upper, scale := GP64(), XMM(), XMM(), YMM()
	LEAQ(Mem{Base: a, Index: pitch, Scale: 2}, from)
	VMOVSD(Mem{Base: a}, lower)
	VMOVHPD(Mem{Base: a, Index: pitch, Scale: 1}, lower, lower)
	VMOVSD(Mem{Base: from}, upper)
	VMOVHPD(Mem{Base: from, Index: pitch, Scale: 1}, upper, upper)
	VINSERTF128(Imm(1), upper, lower.AsY(), scale)
	each(index, at, end, func(unit int, column reg.GPVirtual) {
		v := s.Broadcast(Mem{Base: values, Index: at, Scale: 8, Disp: 8 * unit})
		place := Mem{Base: dst, Index: column, Scale: 1}
		VFMADD213PD(place, scale, v)
		VMOVUPD(v, place)
	})
	ADDQ(Imm(8), a)
	ADDQ(Imm(8), start)
	DECQ(left)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
