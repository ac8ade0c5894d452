package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The places of numbers in package vec's mathTable and mathVectors, in its order.
const (
	mOne = iota
	mSign
	mMantissa
	mInf
	mMinusInf
	mNaN
	mExpMost
	mExpLeast
	mLog2E
	mRound
	mMinusLn2
	mBias
	mHalf
	mSqrt2
	mExponent
	mExponentOff
	mLn2
	mTanhSmall
	mMinusTwo
	mErfMost
	mEighth
	mMinusOne
	mExp
	mLog = mExp + expTerms
	mErf = mLog + logTerms

	expTerms, logTerms, erfTerms = 10, 8, 18
)

// functions generates the kernels of Functions.
func functions(s isa) {
	for _, f := range []struct {
		name string
		body func(x reg.VecVirtual) reg.VecVirtual
	}{
		{"neg", func(x reg.VecVirtual) reg.VecVirtual {
			y := s.Vector()
			s.xor(s.Load(s.constant("signs", func(int) uint32 { return 1 << 31 }), nil), x, y)
			return y
		}},
		{"sqrt", func(x reg.VecVirtual) reg.VecVirtual { y := s.Vector(); VSQRTPS(x, y); return y }},
		{"exp", s.halves(s.exponential)},
		{"sigmoid", s.halves(func(x reg.VecVirtual) reg.VecVirtual {
			t := s.exponential(s.signed(x, XOR))
			VADDPD(at(mOne), t, t)
			VDIVPD(t, s.number(mOne), t)
			return t
		})},
		{"tanh", s.halves(s.tanh)},
		{"erf", s.halves(s.erf)},
		{"log", s.halves(s.log)},
	} {
		s.stream(f.name, "dst x", "", ")", func(k *stream) (func(), func()) {
			return func() { k.out("dst", f.body(k.in("x"))) }, nil
		})
	}
	for _, f := range []struct {
		name string
		body func(a, b reg.VecVirtual) reg.VecVirtual
	}{
		{"sub", func(a, b reg.VecVirtual) reg.VecVirtual { return s.Sub(a, b) }},
		{"mul", func(a, b reg.VecVirtual) reg.VecVirtual { return s.Mul(a, b) }},
		{"div", func(a, b reg.VecVirtual) reg.VecVirtual { return s.Div(a, b) }},
		{"minimum", func(a, b reg.VecVirtual) reg.VecVirtual { return s.extreme(a, b, VMINPS, s.or) }},
		{"maximum", func(a, b reg.VecVirtual) reg.VecVirtual { return s.extreme(a, b, VMAXPS, s.and) }},
		{"less", s.compare(0x11)}, {"lessEqual", s.compare(0x12)}, {"equal", s.compare(0x00)},
	} {
		s.stream(f.name, "dst a b", "", ")", func(k *stream) (func(), func()) {
			return func() { k.out("dst", f.body(k.in("a"), k.in("b"))) }, nil
		})
	}
	s.stream("choose", "dst c a b", "", ")", func(k *stream) (func(), func()) {
		return func() { k.out("dst", s.choose(k.in("c"), k.in("a"), k.in("b"))) }, nil
	})
}

// number is a vector full of one of mathTable.
func (s isa) number(i int) reg.VecVirtual {
	x := s.Vector()
	VMOVUPD(at(i), x)
	return x
}

// at is where it lies.
func at(i int) Mem { return NewDataAddr(Symbol{Name: "·mathVectors"}, 64*i) }

// halves applies a function of float64 to float32.
func (s isa) halves(f func(x reg.VecVirtual) reg.VecVirtual) func(x reg.VecVirtual) reg.VecVirtual {
	return func(x reg.VecVirtual) reg.VecVirtual {
		h := s.doubles(x)
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
}

func (s isa) and(a, b, y reg.VecVirtual) {
	if s.Masks {
		VPANDD(a, b, y)
	} else {
		VPAND(a, b, y)
	}
}

func (s isa) or(a, b, y reg.VecVirtual) {
	if s.Masks {
		VPORD(a, b, y)
	} else {
		VPOR(a, b, y)
	}
}

func (s isa) xor(a, b, y reg.VecVirtual) {
	if s.Masks {
		VPXORD(a, b, y)
	} else {
		VPXOR(a, b, y)
	}
}

// XOR, OR and ANDNOT say what signed does with the sign.
const (
	XOR = iota
	ANDNOT
)

// signed is x with the other sign, or without.
func (s isa) signed(x reg.VecVirtual, how int) reg.VecVirtual {
	y, sign := s.Vector(), s.number(mSign)
	switch {
	case how == XOR:
		s.xor(sign, x, y)
	case s.Masks:
		VPANDND(x, sign, y)
	default:
		VPANDN(x, sign, y)
	}
	return y
}

// signOf is y, which has none, with the sign of x.
func (s isa) signOf(x, y reg.VecVirtual) reg.VecVirtual {
	sign := s.number(mSign)
	s.and(x, sign, sign)
	s.or(sign, y, y)
	return y
}

// where puts a in y where x compares so with b. y and a are float64.
func (s isa) where(predicate uint64, x, b, a, y reg.VecVirtual) {
	if s.Masks {
		k := K()
		VCMPPD(Imm(predicate), b, x, k)
		VBLENDMPD(a, y, k, y)
		return
	}
	m := s.Vector()
	VCMPPD(Imm(predicate), b, x, m)
	VBLENDVPD(m, a, y, y)
}

// polynomial is package vec's.
func (s isa) polynomial(x reg.VecVirtual, first, n int) reg.VecVirtual {
	z := s.Vector()
	VMULPD(x, x, z)
	odd, even := s.number(first), s.number(first+1)
	for i := first + 2; i < first+n; i += 2 {
		VFMADD213PD(at(i), z, odd)
		VFMADD213PD(at(i+1), z, even)
	}
	VFMADD213PD(even, x, odd)
	return odd
}

// exponential is package vec's.
func (s isa) exponential(x reg.VecVirtual) reg.VecVirtual {
	v, t, r := s.Vector(), s.Vector(), s.Vector()
	VMINPD(x, s.number(mExpMost), v) // x where it is NaN
	VMAXPD(v, s.number(mExpLeast), v)
	VMOVAPD(v, t)
	VFMADD213PD(at(mRound), s.number(mLog2E), t)
	VSUBPD(at(mRound), t, r)
	VFMADD213PD(v, s.number(mMinusLn2), r)
	p := s.polynomial(r, mExp, expTerms)
	VPADDQ(at(mBias), t, t)
	VPSLLQ(Imm(52), t, t)
	VMULPD(t, p, p)
	return p
}

func (s isa) tanh(x reg.VecVirtual) reg.VecVirtual {
	a, y := s.signed(x, ANDNOT), s.Vector()
	VMULPD(at(mMinusTwo), a, y)
	t := s.exponential(y)
	one := s.number(mOne)
	VADDPD(one, t, y)
	VSUBPD(t, one, t)
	VDIVPD(y, t, t)
	const less = 0x11
	s.where(less, a, s.number(mTanhSmall), a, t)
	return s.signOf(x, t)
}

func (s isa) erf(x reg.VecVirtual) reg.VecVirtual {
	a, u := s.signed(x, ANDNOT), s.Vector()
	VMINPD(a, s.number(mErfMost), a)
	VMULPD(a, a, u)
	VFMADD213PD(at(mMinusOne), s.number(mEighth), u)
	p := s.polynomial(u, mErf, erfTerms)
	VMULPD(a, p, p)
	return s.signOf(x, p)
}

func (s isa) log(x reg.VecVirtual) reg.VecVirtual {
	e, m, half, t := s.Vector(), s.Vector(), s.Vector(), s.Vector()
	VPSRLQ(Imm(52), x, e)
	s.or(s.number(mExponent), e, e)
	VSUBPD(at(mExponentOff), e, e)
	one := s.number(mOne)
	s.and(s.number(mMantissa), x, m)
	s.or(one, m, m)
	const greater = 0x1e
	root := s.number(mSqrt2)
	VMULPD(at(mHalf), m, half)
	VADDPD(one, e, t)
	s.where(greater, m, root, t, e)
	s.where(greater, m, root, half, m)

	q := s.Vector()
	VADDPD(one, m, q)
	VSUBPD(one, m, m)
	VDIVPD(q, m, m)
	VMULPD(m, m, q)
	p := s.polynomial(q, mLog, logTerms)
	VADDPD(m, m, m)
	VMULPD(p, m, m)
	VFMADD213PD(m, s.number(mLn2), e)

	const equal, less, notLess = 0x00, 0x11, 0x15
	zero := s.Zero()
	s.where(equal, x, zero, s.number(mMinusInf), e)
	s.where(less, x, zero, s.number(mNaN), e)
	s.where(notLess, x, s.number(mInf), x, e)
	return e
}

// extreme is the smaller or the larger of a and b, as VMINPS and VMAXPS say but that NaN goes through and that zeros are
// ordered.
func (s isa) extreme(a, b reg.VecVirtual, of func(...Op), join func(a, b, y reg.VecVirtual)) reg.VecVirtual {
	x, y, sum := s.Vector(), s.Vector(), s.Vector()
	of(a, b, x)
	of(b, a, y)
	join(x, y, x)
	VADDPS(a, b, sum)
	if s.Masks {
		k := K()
		VCMPPS(Imm(unordered), a, b, k)
		VBLENDMPS(sum, x, k, x)
		return x
	}
	VCMPPS(Imm(unordered), a, b, y)
	VBLENDVPS(y, sum, x, x)
	return x
}

// compare is the truth of a predicate.
func (s isa) compare(predicate uint64) func(a, b reg.VecVirtual) reg.VecVirtual {
	return func(a, b reg.VecVirtual) reg.VecVirtual {
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
}

// choose is a where the truth c holds, otherwise b.
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
