package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/asm"
)

// isa is a set of instructions for float64.
type isa struct{ asm.Set }

var avx512, avx2 = isa{asm.AVX512(8)}, isa{asm.AVX2(8)}

type mask = asm.Mask

func (s isa) and(a, b Op) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPANDQ(b, a, x)
	} else {
		VANDPD(b, a, x)
	}
	return x
}

func (s isa) copy(a Op) reg.VecVirtual {
	x := s.Vector()
	VMOVUPD(a, x)
	return x
}

// Predicates of VCMPPD.
const (
	lessThan    = 0x11
	greaterThan = 0x1e
)

// choose is a where x compares so with y, otherwise b.
func (s isa) choose(predicate uint64, x, y, a, b Op) reg.VecVirtual {
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

// sum is the sum of the lanes of x, in the lowest lane.
func (s isa) sum(x reg.VecVirtual) reg.VecVirtual {
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
