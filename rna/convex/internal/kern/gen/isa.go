package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a set of instructions, by its vectors.
type isa struct {
	suffix string
	lanes  int // float64 in a vector
	masks  bool
	vector func() reg.VecVirtual
}

var (
	avx512 = isa{"AVX512", 8, true, ZMM}
	avx2   = isa{"AVX2", 4, false, YMM}
)

func (s isa) bytes() int { return 8 * s.lanes }

// mask selects lanes: an opmask, or a vector of sign bits. A nil mask selects all.
type mask struct{ reg.Register }

func (m *mask) vector() reg.VecVirtual    { return m.Register.(reg.VecVirtual) }
func (m *mask) opmask() reg.OpmaskVirtual { return m.Register.(reg.OpmaskVirtual) }

// first is the mask of the first n lanes, of all if there are fewer.
func (s isa) first(n reg.GPVirtual) *mask {
	numbers, count := s.constantInts("lanes", func(lane int) uint64 { return uint64(lane) }), s.vector()
	if s.masks {
		VPBROADCASTQ(n, count)
		k := K()
		VPCMPQ(Imm(6), numbers, count, k) // count > number
		return &mask{k}
	}
	VMOVQ(n, count.AsX())
	VPBROADCASTQ(count.AsX(), count)
	VPCMPGTQ(numbers, count, count)
	return &mask{count}
}

var constants = make(map[string]Mem)

// constantInts is a vector in memory.
func (s isa) constantInts(name string, lane func(i int) uint64) Mem {
	name += s.suffix
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range s.lanes {
			DATA(8*i, U64(lane(i)))
		}
		constants[name] = m
	}
	return m
}

// constant is a vector full of x, in memory.
func (s isa) constant(name string, x float64) Mem {
	return s.constantInts(name, func(int) uint64 { return math.Float64bits(x) })
}

// load reads a vector; lanes outside m are 0.
func (s isa) load(from Mem, m *mask) reg.VecVirtual {
	x := s.vector()
	switch {
	case m == nil:
		VMOVUPD(from, x)
	case s.masks:
		VMOVUPD_Z(from, m.opmask(), x)
	default:
		VMASKMOVPD(from, m.vector(), x)
	}
	return x
}

func (s isa) store(x reg.VecVirtual, to Mem, m *mask) {
	switch {
	case m == nil:
		VMOVUPD(x, to)
	case s.masks:
		VMOVUPD(x, m.opmask(), to)
	default:
		VMASKMOVPD(x, m.vector(), to)
	}
}

func (s isa) zero() reg.VecVirtual {
	x := s.vector()
	if s.masks {
		VPXORQ(x, x, x)
	} else {
		VXORPD(x, x, x)
	}
	return x
}

// scalar is a vector full of an argument.
func (s isa) scalar(name string) reg.VecVirtual {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return s.broadcast(a.Addr)
}

func (s isa) broadcast(from Mem) reg.VecVirtual {
	x := s.vector()
	VBROADCASTSD(from, x)
	return x
}

func (s isa) add(a, b Op) reg.VecVirtual {
	x := s.vector()
	VADDPD(b, a, x)
	return x
}

// sub is a − b.
func (s isa) sub(a, b Op) reg.VecVirtual {
	x := s.vector()
	VSUBPD(b, a, x)
	return x
}

func (s isa) mul(a, b Op) reg.VecVirtual {
	x := s.vector()
	VMULPD(b, a, x)
	return x
}

// div is a / b.
func (s isa) div(a, b Op) reg.VecVirtual {
	x := s.vector()
	VDIVPD(b, a, x)
	return x
}

func (s isa) and(a, b Op) reg.VecVirtual {
	x := s.vector()
	if s.masks {
		VPANDQ(b, a, x)
	} else {
		VANDPD(b, a, x)
	}
	return x
}

func (s isa) copy(a Op) reg.VecVirtual {
	x := s.vector()
	VMOVUPD(a, x)
	return x
}

// Predicates of VCMPPD.
const (
	lessThan    = 0x11
	greaterThan = 0x1e
)

// choose is a where x compares so with y, otherwise b.
func (s isa) choose(predicate uint64, x, y Op, a, b reg.VecVirtual) reg.VecVirtual {
	out := s.vector()
	if s.masks {
		k := K()
		VCMPPD(Imm(predicate), y, x, k)
		VBLENDMPD(a, b, k, out)
		return out
	}
	m := s.vector()
	VCMPPD(Imm(predicate), y, x, m)
	VBLENDVPD(m, a, b, out)
	return out
}

// sum is the sum of the lanes of x, in the lowest lane.
func (s isa) sum(x reg.VecVirtual) reg.VecVirtual {
	low, high := XMM(), XMM()
	if s.masks {
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
