// Package avx provides AVX-512 and AVX2 to the generators of assembly: their vectors, and operations that both have.
// The generators are a module of their own, so that nothing else depends on avo.
package avx

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Set is a set of instructions, by its vectors of floating-point numbers.
type Set struct {
	Suffix  string // of names
	Element int    // bytes of a number, 4 or 8
	Lanes   int    // numbers in a vector
	Masks   bool   // has mask registers
	Vector  func() reg.VecVirtual
}

// AVX512 and AVX2 return those sets for numbers of element bytes.
func AVX512(element int) Set { return Set{"AVX512", element, 64 / element, true, ZMM} }
func AVX2(element int) Set   { return Set{"AVX2", element, 32 / element, false, YMM} }

// Bytes is the size of a vector.
func (s Set) Bytes() int { return s.Element * s.Lanes }

// single reports whether numbers are float32.
func (s Set) single() bool { return s.Element == 4 }

// Mask selects lanes: an opmask, or a vector of sign bits. A nil mask selects all.
type Mask struct{ reg.Register }

// Vector and Opmask return the mask as a register of either kind.
func (m *Mask) Vector() reg.VecVirtual    { return m.Register.(reg.VecVirtual) }
func (m *Mask) Opmask() reg.OpmaskVirtual { return m.Register.(reg.OpmaskVirtual) }

// First is the mask of the first n lanes, or of all lanes if n exceeds them.
func (s Set) First(n reg.GPVirtual) *Mask {
	numbers := s.Constant("lanes", func(lane int) uint64 { return uint64(lane) })
	count := s.Vector()
	if s.Masks {
		const less = 6 // not less or equal: count > number
		k := K()
		if s.single() {
			VPBROADCASTD(n.As32(), count)
			VPCMPD(Imm(less), numbers, count, k)
		} else {
			VPBROADCASTQ(n, count)
			VPCMPQ(Imm(less), numbers, count, k)
		}
		return &Mask{k}
	}
	if s.single() {
		VMOVD(n.As32(), count.AsX())
		VPBROADCASTD(count.AsX(), count)
		VPCMPGTD(numbers, count, count)
	} else {
		VMOVQ(n, count.AsX())
		VPBROADCASTQ(count.AsX(), count)
		VPCMPGTQ(numbers, count, count)
	}
	return &Mask{count}
}

var constants = make(map[string]Mem)

// Constant is a vector in memory, given by the bits of its lanes.
func (s Set) Constant(name string, lane func(i int) uint64) Mem {
	name += s.Suffix
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range s.Lanes {
			if s.single() {
				DATA(4*i, U32(uint32(lane(i))))
			} else {
				DATA(8*i, U64(lane(i)))
			}
		}
		constants[name] = m
	}
	return m
}

// Number is a vector in memory that is full of x.
func (s Set) Number(name string, x float64) Mem {
	bits := math.Float64bits(x)
	if s.single() {
		bits = uint64(math.Float32bits(float32(x)))
	}
	return s.Constant(name, func(int) uint64 { return bits })
}

// Load reads a vector; lanes outside m are 0.
func (s Set) Load(from Mem, m *Mask) reg.VecVirtual {
	x := s.Vector()
	switch {
	case m == nil && s.single():
		VMOVUPS(from, x)
	case m == nil:
		VMOVUPD(from, x)
	case s.Masks && s.single():
		VMOVUPS_Z(from, m.Opmask(), x)
	case s.Masks:
		VMOVUPD_Z(from, m.Opmask(), x)
	case s.single():
		VMASKMOVPS(from, m.Vector(), x)
	default:
		VMASKMOVPD(from, m.Vector(), x)
	}
	return x
}

// Store writes the lanes of m.
func (s Set) Store(x reg.VecVirtual, to Mem, m *Mask) {
	switch {
	case m == nil && s.single():
		VMOVUPS(x, to)
	case m == nil:
		VMOVUPD(x, to)
	case s.Masks && s.single():
		VMOVUPS(x, m.Opmask(), to)
	case s.Masks:
		VMOVUPD(x, m.Opmask(), to)
	case s.single():
		VMASKMOVPS(x, m.Vector(), to)
	default:
		VMASKMOVPD(x, m.Vector(), to)
	}
}

// Zero is a vector of zeros.
func (s Set) Zero() reg.VecVirtual {
	x := s.Vector()
	switch {
	case s.Masks && s.single():
		VPXORD(x, x, x)
	case s.Masks:
		VPXORQ(x, x, x)
	case s.single():
		VXORPS(x, x, x)
	default:
		VXORPD(x, x, x)
	}
	return x
}

// Broadcast is a vector full of a number in memory.
func (s Set) Broadcast(from Mem) reg.VecVirtual {
	x := s.Vector()
	if s.single() {
		VBROADCASTSS(from, x)
	} else {
		VBROADCASTSD(from, x)
	}
	return x
}

// Scalar is a vector full of an argument.
func (s Set) Scalar(name string) reg.VecVirtual {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return s.Broadcast(a.Addr)
}

// Add is a + b, Sub a − b, Mul a · b and Div a / b.
func (s Set) Add(a, b Op) reg.VecVirtual { return s.apply(VADDPS, VADDPD, a, b) }
func (s Set) Sub(a, b Op) reg.VecVirtual { return s.apply(VSUBPS, VSUBPD, a, b) }
func (s Set) Mul(a, b Op) reg.VecVirtual { return s.apply(VMULPS, VMULPD, a, b) }
func (s Set) Div(a, b Op) reg.VecVirtual { return s.apply(VDIVPS, VDIVPD, a, b) }

func (s Set) apply(single, double func(...Op), a, b Op) reg.VecVirtual {
	x := s.Vector()
	if s.single() {
		single(b, a, x)
	} else {
		double(b, a, x)
	}
	return x
}
