package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a set of instructions, by its vectors.
type isa struct {
	suffix string
	lanes  int // float32 in a vector
	masks  bool
	vector func() reg.VecVirtual
}

var (
	avx512 = isa{"AVX512", 16, true, ZMM}
	avx2   = isa{"AVX2", 8, false, YMM}
)

func (s isa) bytes() int { return 4 * s.lanes }

// Predicates of VCMPPS.
const (
	unordered    = 0x03
	ordered      = 0x07
	notLessEqual = 0x16 // or NaN
)

// mask selects lanes: an opmask, or a vector of sign bits. A nil mask selects all.
type mask struct{ reg.Register }

func (m *mask) vector() reg.VecVirtual    { return m.Register.(reg.VecVirtual) }
func (m *mask) opmask() reg.OpmaskVirtual { return m.Register.(reg.OpmaskVirtual) }

// first is the mask of the first n lanes, of all if there are fewer.
func (s isa) first(n reg.GPVirtual) *mask {
	numbers := s.constant("lanes", func(lane int) uint32 { return uint32(lane) })
	count := s.vector()
	if s.masks {
		VPBROADCASTD(n.As32(), count)
		k := K()
		VPCMPD(Imm(6), numbers, count, k) // count > number
		return &mask{k}
	}
	VMOVD(n.As32(), count.AsX())
	VPBROADCASTD(count.AsX(), count)
	VPCMPGTD(numbers, count, count)
	return &mask{count}
}

var constants = make(map[string]Mem)

// constant is a vector in memory.
func (s isa) constant(name string, lane func(i int) uint32) Mem {
	name += s.suffix
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range s.lanes {
			DATA(4*i, U32(lane(i)))
		}
		constants[name] = m
	}
	return m
}

// load reads a vector; lanes outside m are 0.
func (s isa) load(from Mem, m *mask) reg.VecVirtual {
	x := s.vector()
	switch {
	case m == nil:
		VMOVUPS(from, x)
	case s.masks:
		VMOVUPS_Z(from, m.opmask(), x)
	default:
		VMASKMOVPS(from, m.vector(), x)
	}
	return x
}

func (s isa) store(x reg.VecVirtual, to Mem, m *mask) {
	switch {
	case m == nil:
		VMOVUPS(x, to)
	case s.masks:
		VMOVUPS(x, m.opmask(), to)
	default:
		VMASKMOVPS(x, m.vector(), to)
	}
}

func (s isa) zero() reg.VecVirtual {
	x := s.vector()
	if s.masks {
		VPXORD(x, x, x)
	} else {
		VXORPS(x, x, x)
	}
	return x
}

// scalar is a vector full of an argument.
func (s isa) scalar(name string) reg.VecVirtual {
	x := s.vector()
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(a.Addr, x)
	return x
}

func (s isa) add(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.vector()
	VADDPS(b, a, x)
	return x
}

func (s isa) sub(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.vector()
	VSUBPS(b, a, x)
	return x
}

func (s isa) mul(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.vector()
	VMULPS(b, a, x)
	return x
}

// positive is x, and 0 where x < 0. It is x where x is NaN or a zero: what VMAXPS does for its second operand.
func (s isa) positive(x, zero reg.VecVirtual) reg.VecVirtual {
	y := s.vector()
	VMAXPS(x, zero, y)
	return y
}

// passed is dy, and 0 where y ≤ 0.
func (s isa) passed(y, dy, zero reg.VecVirtual) reg.VecVirtual {
	x := s.vector()
	if s.masks {
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
	lo, hi := s.vector(), s.vector()
	if s.masks {
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
