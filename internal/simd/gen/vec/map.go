package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

// functions generates the kernels of Functions.
func functions(s isa) {
	s.kernels(unary[reg.VecVirtual]())
	for _, f := range singles[Op]() {
		s.stream(f.name, "dst x", "", ")", func(k *stream) (func(), func()) {
			return func() { k.out("dst", f.of(single{s}, k.in("x")).(reg.VecVirtual)) }, nil
		})
	}
	for _, f := range fused[Op]() {
		s.stream(f.name, "dst "+f.operands, "", ")", func(k *stream) (func(), func()) {
			return func() { k.apply(f, k.in("x")) }, nil
		})
		s.normalizedBy(f, f.waysOf(ways))
	}
	for _, f := range doubles[Op]() {
		s.stream(f.name, "dst x", "", ")", func(k *stream) (func(), func()) {
			half := func(x reg.VecVirtual) reg.VecVirtual { return f.of(double{isa: s}, x).(reg.VecVirtual) }
			return func() { k.out("dst", s.halves(half, k.in("x"))) }, nil
		})
	}
	s.kernels(others[reg.VecVirtual]())
}

// apply stores f of x and of the current parts of its other operands.
func (k *stream) apply(f fusion[Op], x reg.VecVirtual) {
	in := []Op{x}
	for _, name := range strings.Fields(f.operands)[1:] {
		in = append(in, k.in(name))
	}
	k.out("dst", f.of(single{k.isa}, in).(reg.VecVirtual))
}

// normalizedBy generates the kernels of f of a normalised x, for each of ways.
func (s isa) normalizedBy(f fusion[Op], ways []string) {
	for _, way := range ways {
		s.stream(f.normalized+way, "dst "+f.operands, normalRows, ")", func(k *stream) (func(), func()) {
			return func() { k.apply(f, normalized[reg.VecVirtual](k)) }, nil
		})
	}
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

// single is arithmetic on vectors of float32, double on vectors of float64. Numbers are read from memory.
type (
	single struct{ isa }
	double struct{ isa }
)

func (s isa) table(name string, i int) Op { return NewDataAddr(Symbol{Name: "·" + name}, 64*i) }

func (w single) vector() Op { return w.Vector() }
func (w double) vector() Op { return w.Vector() }
func (w single) zero() Op   { return w.Zero() }
func (w double) zero() Op   { return w.Zero() }

func (w single) at(i int) Op { return w.table("singleVectors", i) }
func (w double) at(i int) Op { return w.table("doubleVectors", i) }

func (w single) number(i int) Op { x := w.Vector(); VMOVUPS(w.at(i), x); return x }
func (w double) number(i int) Op { x := w.Vector(); VMOVUPD(w.at(i), x); return x }

func (w single) add(y, a, b Op) { VADDPS(b, a, y) }
func (w double) add(y, a, b Op) { VADDPD(b, a, y) }
func (w single) sub(y, a, b Op) { VSUBPS(b, a, y) }
func (w double) sub(y, a, b Op) { VSUBPD(b, a, y) }
func (w single) mul(y, a, b Op) { VMULPS(b, a, y) }
func (w double) mul(y, a, b Op) { VMULPD(b, a, y) }
func (w single) div(y, a, b Op) { VDIVPS(b, a, y) }
func (w double) div(y, a, b Op) { VDIVPD(b, a, y) }
func (w single) min(y, a, b Op) { VMINPS(a, b, y) } // the first if one is NaN
func (w double) min(y, a, b Op) { VMINPD(a, b, y) }
func (w single) max(y, a, b Op) { VMAXPS(a, b, y) }
func (w double) max(y, a, b Op) { VMAXPD(a, b, y) }
func (w single) fma(y, a, b Op) { VFMADD213PS(b, a, y) }
func (w double) fma(y, a, b Op) { VFMADD213PD(b, a, y) }

func (w single) subInts(y, a, b Op) { VPSUBD(b, a, y) }
func (w double) subInts(y, a, b Op) { VPSUBQ(b, a, y) }

func (s isa) move(y, x Op)            { VMOVAPS(x, y) }
func (w single) and(y, a, b Op)       { w.isa.and(a, b, y) }
func (w double) and(y, a, b Op)       { w.isa.and(a, b, y) }
func (w single) or(y, a, b Op)        { w.isa.or(a, b, y) }
func (w double) or(y, a, b Op)        { w.isa.or(a, b, y) }
func (w single) shift(y, x Op, n int) { w.isa.shift(y, x, n, VPSLLD, VPSRLD) }
func (w double) shift(y, x Op, n int) { w.isa.shift(y, x, n, VPSLLQ, VPSRLQ) }

func (w single) power(y, n, t Op) {
	if w.Masks {
		w.add(y, y, w.at(sOne))
		VSCALEFPS(n, y, y)
	} else {
		byPowers[Op](w, y, t)
	}
}
func (w double) power(_, _, _ Op) { panic("only functions of float32 have powers") }

func (s isa) shift(y, x Op, n int, up, down func(...Op)) {
	if n < 0 {
		down(Imm(uint64(-n)), x, y)
	} else {
		up(Imm(uint64(n)), x, y)
	}
}

func (w single) where(r relation, x, b, a, y Op) {
	w.isa.where(r, x, b, a, y, VCMPPS, VBLENDMPS, VBLENDVPS)
}
func (w double) where(r relation, x, b, a, y Op) {
	w.isa.where(r, x, b, a, y, VCMPPD, VBLENDMPD, VBLENDVPD)
}

func (s isa) where(r relation, x, b, a, y Op, compare, blendMask func(...Op),
	blend func(mask, a, b, y Op)) {
	predicate := Imm(map[relation]uint64{equal: 0x00, less: 0x11, greater: 0x1e,
		lessEqual: 0x12, greaterEqual: 0x1d, notLess: 0x15}[r])
	if s.Masks {
		k := K()
		compare(predicate, b, x, k)
		blendMask(a, y, k, y)
		return
	}
	m := s.Vector()
	compare(predicate, b, x, m)
	blend(m, a, y, y)
}
