package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

// losses makes the kernels of losses at the predictions a·z + b·old: their sum and, for some, their slopes.
func (s isa) losses() {
	for _, slopes := range []bool{false, true} {
		for _, l := range losses[Op]() {
			s.loss(l.name, slopes, l.of)
		}
	}
}

func (s isa) loss(name string, slopes bool, body func(m maths[Op], z, y Op, slopes bool) (value, slope Op)) {
	out := ""
	if slopes {
		name, out = name+"Slopes", "slopes, "
	}
	TEXT(name+s.Suffix, NOSPLIT, fmt.Sprintf("func(%sz, old, y *float64, a, b float64, rows int) float64", out))
	Pragma("noescape")
	z, old, y := Load(Param("z"), GP64()), Load(Param("old"), GP64()), Load(Param("y"), GP64())
	var to reg.Register
	if slopes {
		to = Load(Param("slopes"), GP64())
	}
	left := Load(Param("rows"), GP64()).(reg.GPVirtual)
	a, b := s.Scalar("a"), s.Scalar("b")
	total, at := s.Zero(), GP64()
	XORQ(at, at)
	step := func(m *mask) {
		mem := func(base reg.Register) Mem { return Mem{Base: base, Index: at, Scale: 1} }
		p := s.Mul(s.Load(mem(z), m), a)
		VFMADD231PD(s.Load(mem(old), m), b, p)
		value, slope := body(wide{s}, p, s.Load(mem(y), m), slopes)
		switch {
		case m == nil:
			VADDPD(value, total, total)
		case s.Masks:
			VADDPD(value, total, m.Opmask(), total)
		default:
			VADDPD(s.And(value, m.Vector()), total, total)
		}
		if slopes {
			s.Store(slope.(reg.VecVirtual), mem(to), m)
		}
	}
	Label("loop")
	SUBQ(Imm(uint64(s.Lanes)), left)
	JL(LabelRef("rest"))
	step(nil)
	ADDQ(Imm(uint64(s.Bytes())), at)
	JMP(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(s.Lanes)), left)
	JZ(LabelRef("done"))
	step(s.First(left))
	Label("done")
	Store(s.Sum(total).AsX(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// wide is arithmetic on vectors. Numbers are read from memory.
type wide struct{ isa }

func (w wide) number(name string, x float64) Op { return w.Number(name, x) }
func (w wide) copy(x Op) Op                     { return w.Copy(x) }
func (w wide) zero() Op                         { return w.Zero() }

func (w wide) add(a, b Op) Op         { return w.Add(a, b) }
func (w wide) sub(a, b Op) Op         { return w.Sub(a, b) }
func (w wide) mul(a, b Op) Op         { return w.Mul(a, b) }
func (w wide) div(a, b Op) Op         { return w.Div(a, b) }
func (w wide) above(x, y, a, b Op) Op { return w.Choose(avx.GreaterThan, x, y, a, b) }

func (w wide) plus(y, x Op)        { VADDPD(x, y, y) }
func (w wide) minus(y, x Op)       { VSUBPD(x, y, y) }
func (w wide) from(y, x Op)        { VSUBPD(y, x, y) }
func (w wide) fma(y, a, b Op)      { VFMADD213PD(b, a, y) }
func (w wide) addTimes(y, a, b Op) { VFMADD231PD(b, a, y) }
func (w wide) subTimes(y, a, b Op) { VFNMADD231PD(b, a, y) }

func (w wide) atLeast(x Op, name string, least float64) Op {
	y := w.Vector()
	VMAXPD(x, w.Copy(w.Number(name, least)), y)
	return y
}

func (w wide) minusAbs(x Op) Op {
	y := w.Vector()
	sign := w.Constant("sign", func(int) uint64 { return 1 << 63 })
	if w.Masks {
		VPORQ(sign, x, y)
	} else {
		VORPD(sign, x, y)
	}
	return y
}

func (w wide) negativePart(x Op) (part, zero Op) {
	minus, zeros, y := w.Vector(), w.Zero(), w.Vector()
	VSUBPD(x, zeros, minus)
	VMAXPD(minus, zeros, y)
	return y, zeros
}

func (w wide) round(y Op) {
	const nearest = 8
	if w.Masks {
		VRNDSCALEPD(Imm(nearest), y, y)
	} else {
		VROUNDPD(Imm(nearest), y, y)
	}
}

func (w wide) scaled(x, n Op) Op {
	if w.Masks {
		VSCALEFPD(n, x, x)
		return x
	}
	power, ints := YMM(), n.(reg.VecVirtual).AsX()
	VCVTPD2DQY(n, ints)
	VPMOVSXDQ(ints, power)
	VPADDQ(w.Constant("bias", func(int) uint64 { return 1023 }), power, power)
	VPSLLQ(Imm(52), power, power)
	VMULPD(power, x, x)
	return x
}
