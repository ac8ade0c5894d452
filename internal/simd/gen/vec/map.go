package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

// functions generates the kernels of Functions.
func functions(s isa) {
	s.kernels(unary[reg.VecVirtual]())
	for _, f := range mathFunctions[Op]() {
		s.stream(f.name, "dst x", "", ")", func(k *stream) (func(), func()) {
			half := func(x reg.VecVirtual) reg.VecVirtual { return f.of(wide{s}, x).(reg.VecVirtual) }
			return func() { k.out("dst", s.halves(half, k.in("x"))) }, nil
		})
	}
	s.kernels(others[reg.VecVirtual]())
}

// halves applies a function of float64 to float32.
func (s isa) halves(f func(x reg.VecVirtual) reg.VecVirtual, x reg.VecVirtual) reg.VecVirtual {
	h := s.Doubles(x)
	lo := f(h[0])
	hi := f(h[1])
	y := s.Vector()
	if s.Masks {
		VCVTPD2PS(lo, lo.AsY())
		VCVTPD2PS(hi, hi.AsY())
		VINSERTF64X4(Imm(1), hi.AsY(), lo, y)
	} else {
		VCVTPD2PSY(lo, lo.AsX())
		VCVTPD2PSY(hi, hi.AsX())
		VINSERTF128(Imm(1), hi.AsX(), lo, y)
	}
	return y
}

func (s isa) and(a, b, y Op) {
	if s.Masks {
		VPANDD(a, b, y)
	} else {
		VPAND(a, b, y)
	}
}

func (s isa) or(a, b, y Op) {
	if s.Masks {
		VPORD(a, b, y)
	} else {
		VPOR(a, b, y)
	}
}

func (s isa) xor(a, b, y Op) {
	if s.Masks {
		VPXORD(a, b, y)
	} else {
		VPXOR(a, b, y)
	}
}

func (s isa) neg(x reg.VecVirtual) reg.VecVirtual {
	y := s.Vector()
	s.xor(s.Load(s.constant("signs", func(int) uint32 { return 1 << 31 }), nil), x, y)
	return y
}

func (s isa) minimum(a, b reg.VecVirtual) reg.VecVirtual { return s.extreme(a, b, VMINPS, s.or) }
func (s isa) maximum(a, b reg.VecVirtual) reg.VecVirtual { return s.extreme(a, b, VMAXPS, s.and) }

// extreme is the smaller or the larger of a and b, as VMINPS and VMAXPS, but with NaN for a NaN operand and with −0
// below 0.
func (s isa) extreme(a, b reg.VecVirtual, of func(...Op), join func(a, b, y Op)) reg.VecVirtual {
	x, y, sum := s.Vector(), s.Vector(), s.Vector()
	of(a, b, x)
	of(b, a, y)
	join(x, y, x)
	VADDPS(a, b, sum)
	if s.Masks {
		k := K()
		VCMPPS(Imm(avx.Unordered), a, b, k)
		VBLENDMPS(sum, x, k, x)
		return x
	}
	VCMPPS(Imm(avx.Unordered), a, b, y)
	VBLENDVPS(y, sum, x, x)
	return x
}

func (s isa) less(a, b reg.VecVirtual) reg.VecVirtual      { return s.compare(0x11, a, b) }
func (s isa) lessEqual(a, b reg.VecVirtual) reg.VecVirtual { return s.compare(0x12, a, b) }
func (s isa) equal(a, b reg.VecVirtual) reg.VecVirtual     { return s.compare(0x00, a, b) }

// compare is the truth value of a predicate.
func (s isa) compare(predicate uint64, a, b reg.VecVirtual) reg.VecVirtual {
	y := s.Vector()
	if s.Masks {
		k := K()
		VCMPPS(Imm(predicate), b, a, k)
		VPMOVM2D(k, y)
		return y
	}
	VCMPPS(Imm(predicate), b, a, y)
	return y
}

// choose is a if the truth value c holds, otherwise b.
func (s isa) choose(c, a, b reg.VecVirtual) reg.VecVirtual {
	y := s.Vector()
	if s.Masks {
		k := K()
		VPMOVD2M(c, k)
		VBLENDMPS(a, b, k, y)
		return y
	}
	VBLENDVPS(c, a, b, y)
	return y
}

// wide is arithmetic on vectors of float64. Numbers are read from memory.
type wide struct{ isa }

func (w wide) vector() Op { return w.Vector() }
func (w wide) zero() Op   { return w.Zero() }

func (w wide) number(i int) Op {
	x := w.Vector()
	VMOVUPD(w.at(i), x)
	return x
}

func (w wide) at(i int) Op { return NewDataAddr(Symbol{Name: "·mathVectors"}, 64*i) }

func (w wide) add(y, a, b Op)     { VADDPD(b, a, y) }
func (w wide) sub(y, a, b Op)     { VSUBPD(b, a, y) }
func (w wide) mul(y, a, b Op)     { VMULPD(b, a, y) }
func (w wide) div(y, a, b Op)     { VDIVPD(b, a, y) }
func (w wide) min(y, a, b Op)     { VMINPD(a, b, y) } // the first if one is NaN
func (w wide) max(y, a, b Op)     { VMAXPD(a, b, y) }
func (w wide) fma(y, a, b Op)     { VFMADD213PD(b, a, y) }
func (w wide) move(y, x Op)       { VMOVAPD(x, y) }
func (w wide) and(y, a, b Op)     { w.isa.and(a, b, y) }
func (w wide) or(y, a, b Op)      { w.isa.or(a, b, y) }
func (w wide) addInts(y, a, b Op) { VPADDQ(b, a, y) }

func (w wide) shift(y, x Op, n int) {
	if n < 0 {
		VPSRLQ(Imm(uint64(-n)), x, y)
	} else {
		VPSLLQ(Imm(uint64(n)), x, y)
	}
}

func (w wide) negative(x Op) Op {
	y, sign := w.Vector(), w.number(mSign)
	w.xor(sign, x, y)
	return y
}

func (w wide) magnitude(x Op) Op {
	y, sign := w.Vector(), w.number(mSign)
	if w.Masks {
		VPANDND(x, sign, y)
	} else {
		VPANDN(x, sign, y)
	}
	return y
}

func (w wide) signOf(x, y Op) Op {
	sign := w.number(mSign)
	w.isa.and(x, sign, sign)
	w.isa.or(sign, y, y)
	return y
}

func (w wide) where(r relation, x, b, a, y Op) {
	predicate := Imm(map[relation]uint64{equal: 0x00, less: 0x11, greater: 0x1e, notLess: 0x15}[r])
	if w.Masks {
		k := K()
		VCMPPD(predicate, b, x, k)
		VBLENDMPD(a, y, k, y)
		return
	}
	m := w.Vector()
	VCMPPD(predicate, b, x, m)
	VBLENDVPD(m, a, y, y)
}
