package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/asm"
)

// isa is a set of instructions for float64.
type isa struct {
	asm.Set
	tile int // rows of a square of products that registers hold
}

var avx512, avx2 = isa{asm.AVX512(8), 5}, isa{asm.AVX2(8), 3}

// Package kernel has the same numbers.
const (
	group    = 16            // elements that kernels take at a time
	sumLanes = 8             // of a sum
	pitch    = 8 * (256 + 8) // bytes from a row of residuals to the next
)

// line is the bytes of a line of cache.
const line = 64

// format is how elements are stored.
type format struct {
	name string
	size int
}

var formats = []format{{"Float32", 4}, {"Float64", 8}, {"Float16", 2}, {"BFloat16", 2}}

// half is the lower half of x.
func (s isa) half(x reg.VecVirtual) reg.Register {
	if s.Masks {
		return x.AsY()
	}
	return x.AsX()
}

// widen loads as many elements as a vector has lanes.
func (s isa) widen(f format, from Mem) reg.VecVirtual {
	x := s.Vector()
	switch f.name {
	case "Float64":
		VMOVUPD(from, x)
	case "Float32":
		VCVTPS2PD(from, x)
	case "Float16":
		VCVTPH2PS(from, s.half(x))
		VCVTPS2PD(s.half(x), x)
	case "BFloat16":
		VPMOVZXWD(from, s.half(x))
		VPSLLD(Imm(16), s.half(x), s.half(x))
		VCVTPS2PD(s.half(x), x)
	}
	return x
}

// constant is a vector full of v.
func (s isa) constant(v uint64) reg.VecVirtual {
	x, g := s.Vector(), GP64()
	MOVQ(U64(v), g)
	VMOVQ(g, x.AsX())
	VPBROADCASTQ(x.AsX(), x)
	return x
}

func (s isa) zero() reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPXORQ(x, x, x)
	} else {
		VPXOR(x, x, x)
	}
	return x
}

func (s isa) and(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPANDQ(a, b, x)
	} else {
		VPAND(a, b, x)
	}
	return x
}

func (s isa) or(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPORQ(a, b, x)
	} else {
		VPOR(a, b, x)
	}
	return x
}

// andNot is b without the bits of a.
func (s isa) andNot(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VPANDNQ(b, a, x)
	} else {
		VPANDN(b, a, x)
	}
	return x
}
