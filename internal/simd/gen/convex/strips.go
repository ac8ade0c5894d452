package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// strips makes the kernels that multiply strips of compressed rows by four vectors at once: with values, and for values
// that are all 1.
func (s isa) strips() {
	for _, ones := range []bool{false, true} {
		s.stripDots(ones)
		s.stripAddRows(ones)
	}
}

// stripRows loops over rows whose columns are counted in fours. Its bodies get four columns, as offsets in units of
// eight bytes, and the current unit.
func (s isa) stripRows(ones bool, before func(), each func(unit int, column, values reg.GPVirtual), after func()) {
	var values reg.GPVirtual
	if !ones {
		values = Load(Param("values"), GP64()).(reg.GPVirtual)
	}
	columns, counts := Load(Param("columns"), GP64()).(reg.GPVirtual), Load(Param("counts"), GP64()).(reg.GPVirtual)
	rows := Load(Param("rows"), GP64()).(reg.GPVirtual)
	Label("row")
	before()
	left := GP32()
	MOVL(Mem{Base: counts}, left)
	TESTL(left, left)
	JZ(LabelRef("done"))
	Label("four")
	all := GP64()
	MOVQ(Mem{Base: columns}, all)
	ADDQ(Imm(8), columns)
	for u := range 4 {
		column := GP64()
		MOVWQZX(all.As16(), column)
		if u < 3 {
			SHRQ(Imm(16), all)
		}
		each(u, column, values)
	}
	if !ones {
		ADDQ(Imm(32), values)
	}
	DECL(left)
	JNZ(LabelRef("four"))
	Label("done")
	after()
	ADDQ(Imm(4), counts)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

func (s isa) stripDots(ones bool) {
	name, params := "stripDots", "out, values *float64, columns *uint16, counts *uint32, w *float64, rows int"
	if ones {
		name, params = "stripSums", "out *float64, columns *uint16, counts *uint32, w *float64, rows int"
	}
	TEXT(name+s.Suffix, NOSPLIT, "func("+params+")")
	Pragma("noescape")
	out, w := Load(Param("out"), GP64()).(reg.GPVirtual), Load(Param("w"), GP64()).(reg.GPVirtual)
	sums := []reg.VecVirtual{YMM(), YMM(), YMM(), YMM()}
	s.stripRows(ones, func() {
		VMOVUPD(Mem{Base: out}, sums[0])
		for _, x := range sums[1:] {
			VXORPD(x, x, x)
		}
	}, func(u int, column, values reg.GPVirtual) {
		at := Mem{Base: w, Index: column, Scale: 8}
		if ones {
			VADDPD(at, sums[u], sums[u])
			return
		}
		v := YMM()
		VBROADCASTSD(Mem{Base: values, Disp: 8 * u}, v)
		VFMADD231PD(at, v, sums[u])
	}, func() {
		VADDPD(sums[1], sums[0], sums[0])
		VADDPD(sums[3], sums[2], sums[2])
		VADDPD(sums[2], sums[0], sums[0])
		VMOVUPD(sums[0], Mem{Base: out})
		ADDQ(Imm(32), out)
	})
}

func (s isa) stripAddRows(ones bool) {
	name, params := "stripAddRows", "dst, values *float64, columns *uint16, counts *uint32, a *float64, rows int"
	if ones {
		name, params = "stripAdds", "dst *float64, columns *uint16, counts *uint32, a *float64, rows int"
	}
	TEXT(name+s.Suffix, NOSPLIT, "func("+params+")")
	Pragma("noescape")
	dst, a := Load(Param("dst"), GP64()).(reg.GPVirtual), Load(Param("a"), GP64()).(reg.GPVirtual)
	scale := YMM()
	s.stripRows(ones, func() {
		VMOVUPD(Mem{Base: a}, scale)
		ADDQ(Imm(32), a)
	}, func(u int, column, values reg.GPVirtual) {
		at, v := Mem{Base: dst, Index: column, Scale: 8}, YMM()
		if ones {
			VADDPD(at, scale, v)
		} else {
			VBROADCASTSD(Mem{Base: values, Disp: 8 * u}, v)
			VFMADD213PD(at, scale, v)
		}
		VMOVUPD(v, at)
	}, func() {})
}
