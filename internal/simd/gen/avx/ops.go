package avx

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Predicates of VCMPPS and VCMPPD.
const (
	Unordered    = 0x03
	Ordered      = 0x07
	LessThan     = 0x11
	NotLessEqual = 0x16 // or NaN
	GreaterThan  = 0x1e
)

// Half is the lower half of x.
func (s Set) Half(x reg.VecVirtual) reg.Register {
	if s.Masks {
		return x.AsY()
	}
	return x.AsX()
}

// Full is a vector full of v, made in a register.
func (s Set) Full(v uint64) reg.VecVirtual {
	x, g := s.Vector(), GP64()
	MOVQ(U64(v), g)
	VMOVQ(g, x.AsX())
	VPBROADCASTQ(x.AsX(), x)
	return x
}

// ZeroBits is a vector of zeros, by instructions on integers.
func (s Set) ZeroBits() reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPXORQ(x, x, x)
	} else {
		VPXOR(x, x, x)
	}
	return x
}

// AndBits is a & b, by instructions on integers.
func (s Set) AndBits(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPANDQ(a, b, x)
	} else {
		VPAND(a, b, x)
	}
	return x
}

// OrBits is a | b.
func (s Set) OrBits(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPORQ(a, b, x)
	} else {
		VPOR(a, b, x)
	}
	return x
}

// AndNotBits is b without the bits of a.
func (s Set) AndNotBits(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPANDNQ(b, a, x)
	} else {
		VPANDN(b, a, x)
	}
	return x
}

// And is a & b of float64.
func (s Set) And(a, b Op) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPANDQ(b, a, x)
	} else {
		VANDPD(b, a, x)
	}
	return x
}

// Copy is a, float64, in a register of its own.
func (s Set) Copy(a Op) reg.VecVirtual {
	x := s.Vector()
	VMOVUPD(a, x)
	return x
}

// Choose is a if x compares with y by the predicate, otherwise b.
func (s Set) Choose(predicate uint64, x, y, a, b Op) reg.VecVirtual {
	out := s.Vector()
	if s.Masks {
		k := K()
		VCMPPD(Imm(predicate), y, x, k)
		VBLENDMPD(a, b, k, out)
		return out
	}
	m := s.Vector()
	VCMPPD(Imm(predicate), y, x, m)
	VBLENDVPD(m, a, b, out)
	return out
}

// Sum is the sum of the lanes of x, float64, in the lowest lane.
func (s Set) Sum(x reg.VecVirtual) reg.VecVirtual {
	low, high := XMM(), XMM()
	if s.Masks {
		y := YMM()
		VEXTRACTF64X4(Imm(1), x, y)
		VADDPD(x.AsY(), y, y)
		VEXTRACTF64X2(Imm(1), y, high)
		VADDPD(y.AsX(), high, high)
	} else {
		VEXTRACTF128(Imm(1), x, high)
		VADDPD(x.AsX(), high, high)
	}
	VUNPCKHPD(high, high, low)
	VADDPD(low, high, high)
	return high
}

// Sqrt is the square root of float32.
func (s Set) Sqrt(a reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	VSQRTPS(a, x)
	return x
}

// Positive is x, and 0 if x < 0. It is x if x is NaN or a zero: VMAXPS returns its second operand then.
func (s Set) Positive(x, zero reg.VecVirtual) reg.VecVirtual {
	y := s.Vector()
	VMAXPS(x, zero, y)
	return y
}

// Passed is dy, and 0 if y ≤ 0.
func (s Set) Passed(y, dy, zero reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		k := K()
		VCMPPS(Imm(NotLessEqual), zero, y, k)
		VMOVAPS_Z(dy, k, x)
		return x
	}
	VCMPPS(Imm(NotLessEqual), zero, y, x)
	VANDPS(dy, x, x)
	return x
}

// Doubles widens the lower and the upper half of x.
func (s Set) Doubles(x reg.VecVirtual) [2]reg.VecVirtual {
	lo, hi := s.Vector(), s.Vector()
	if s.Masks {
		VEXTRACTF64X4(Imm(1), x, hi.AsY())
		VCVTPS2PD(x.AsY(), lo)
		VCVTPS2PD(hi.AsY(), hi)
	} else {
		VEXTRACTF128(Imm(1), x, hi.AsX())
		VCVTPS2PD(x.AsX(), lo)
		VCVTPS2PD(hi.AsX(), hi)
	}
	return [2]reg.VecVirtual{lo, hi}
}
