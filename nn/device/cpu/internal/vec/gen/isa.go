package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/asm"
)

// isa is a set of instructions for float32.
type isa struct{ asm.Set }

var avx512, avx2 = isa{asm.AVX512(4)}, isa{asm.AVX2(4)}

type mask = asm.Mask

// Predicates of VCMPPS.
const (
	unordered    = 0x03
	ordered      = 0x07
	notLessEqual = 0x16 // or NaN
)

// constant is a vector in memory.
func (s isa) constant(name string, lane func(i int) uint32) Mem {
	return s.Constant(name, func(i int) uint64 { return uint64(lane(i)) })
}

func (s isa) add(a, b reg.VecVirtual) reg.VecVirtual { return s.Add(a, b) }
func (s isa) sub(a, b reg.VecVirtual) reg.VecVirtual { return s.Sub(a, b) }
func (s isa) mul(a, b reg.VecVirtual) reg.VecVirtual { return s.Mul(a, b) }
func (s isa) div(a, b reg.VecVirtual) reg.VecVirtual { return s.Div(a, b) }

func (s isa) sqrt(a reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	VSQRTPS(a, x)
	return x
}

// positive is x, and 0 where x < 0. It is x where x is NaN or a zero: what VMAXPS does for its second operand.
func (s isa) positive(x, zero reg.VecVirtual) reg.VecVirtual {
	y := s.Vector()
	VMAXPS(x, zero, y)
	return y
}

// passed is dy, and 0 where y ≤ 0.
func (s isa) passed(y, dy, zero reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		k := K()
		VCMPPS(Imm(notLessEqual), zero, y, k)
		VMOVAPS_Z(dy, k, x)
		return x
	}
	VCMPPS(Imm(notLessEqual), zero, y, x)
	VANDPS(dy, x, x)
	return x
}

// doubles widens the lower and the upper half of x.
func (s isa) doubles(x reg.VecVirtual) [2]reg.VecVirtual {
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
