package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a set of instructions, by its vectors.
type isa struct {
	suffix string
	lanes  int // float64 in a vector
	masks  bool
	tile   int // rows of a square of products that registers hold
	vector func() reg.VecVirtual
}

var (
	avx512 = isa{"AVX512", 8, true, 5, ZMM}
	avx2   = isa{"AVX2", 4, false, 3, YMM}
)

func (s isa) bytes() int { return 8 * s.lanes }

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
	if s.masks {
		return x.AsY()
	}
	return x.AsX()
}

// widen loads as many elements as a vector has lanes.
func (s isa) widen(f format, from Mem) reg.VecVirtual {
	x := s.vector()
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
	x, g := s.vector(), GP64()
	MOVQ(U64(v), g)
	VMOVQ(g, x.AsX())
	VPBROADCASTQ(x.AsX(), x)
	return x
}

func (s isa) zero() reg.VecVirtual {
	x := s.vector()
	if s.masks {
		VPXORQ(x, x, x)
	} else {
		VPXOR(x, x, x)
	}
	return x
}

func (s isa) and(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.vector()
	if s.masks {
		VPANDQ(a, b, x)
	} else {
		VPAND(a, b, x)
	}
	return x
}

func (s isa) or(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.vector()
	if s.masks {
		VPORQ(a, b, x)
	} else {
		VPOR(a, b, x)
	}
	return x
}

// andNot is b without the bits of a.
func (s isa) andNot(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.vector()
	if s.masks {
		VPANDNQ(b, a, x)
	} else {
		VPANDN(b, a, x)
	}
	return x
}
