package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// windows generates a kernel over a row of windows of one image. It runs body for some channels of a window at a
// time.
type windows struct {
	isa
	channel reg.GPVirtual // bytes to the channels in hand
	window  map[string]reg.Register
	mask    *mask
}

// each runs body for the pixels of the window of x and of the named companions, which move alike.
func (k *windows) each(label string, names []string, body func(mem func(name string) Mem)) {
	line, pixel := make(map[string]reg.GPVirtual), make(map[string]reg.GPVirtual)
	for _, n := range names {
		line[n], pixel[n] = GP64(), GP64()
		MOVQ(k.window[n], line[n])
		ADDQ(k.channel, line[n])
	}
	rows, columns := Load(Param("rows"), GP64()), GP64()
	Label(label + "Row")
	for _, n := range names {
		MOVQ(line[n], pixel[n])
	}
	Load(Param("columns"), columns)
	Label(label + "Column")
	body(func(name string) Mem { return Mem{Base: pixel[name]} })
	step := Load(Param("pixel"), GP64())
	for _, n := range names {
		LEAQ(Mem{Base: pixel[n], Index: step, Scale: 4}, pixel[n])
	}
	DECQ(columns)
	JNZ(LabelRef(label + "Column"))
	Load(Param("line"), step)
	for _, n := range names {
		LEAQ(Mem{Base: line[n], Index: step, Scale: 4}, line[n])
	}
	DECQ(rows)
	JNZ(LabelRef(label + "Row"))
}

func (s isa) windows(name, signature string, moving []string, body func(k *windows, at Mem)) {
	k := &windows{isa: s, window: make(map[string]reg.Register)}
	TEXT(name+s.suffix, NOSPLIT, signature)
	Pragma("noescape")
	y := Load(Param("y").Base(), GP64())
	for _, n := range moving {
		k.window[n] = Load(Param(n).Base(), GP64())
	}
	k.channel = GP64()
	count := Load(Param("count"), GP64())
	n := GP64()
	Label("window")
	XORQ(k.channel, k.channel)
	Load(Param("channels"), n)
	Label("channel")
	k.mask = s.first(n)
	body(k, Mem{Base: y, Index: k.channel, Scale: 1})
	ADDQ(U32(uint32(s.bytes())), k.channel)
	SUBQ(Imm(uint64(s.lanes)), n)
	JG(LabelRef("channel"))
	step := Load(Param("step"), GP64())
	for _, m := range moving {
		LEAQ(Mem{Base: k.window[m], Index: step, Scale: 4}, k.window[m].(reg.GPVirtual))
	}
	Load(Param("pitch"), step)
	LEAQ(Mem{Base: y, Index: step, Scale: 4}, y.(reg.GPVirtual))
	DECQ(count)
	JNZ(LabelRef("window"))
	VZEROUPPER()
	RET()
}

// replace makes v the best where it is larger, or the first NaN, and notes its position.
func (s isa) replace(best, v reg.VecVirtual, at, position reg.VecVirtual) {
	if s.masks {
		known, k := K(), K()
		VCMPPS(Imm(ordered), best, best, known)
		VCMPPS(Imm(notLessEqual), best, v, known, k)
		VMOVAPS(v, k, best)
		VMOVDQA32(position, k, at)
		return
	}
	known, k := s.vector(), s.vector()
	VCMPPS(Imm(ordered), best, best, known)
	VCMPPS(Imm(notLessEqual), best, v, k)
	VANDPS(known, k, k)
	VBLENDVPS(k, v, best, best)
	VBLENDVPS(k, position, at, at)
}

func pools(s isa) {
	const extents = "count, channels, pitch, rows, columns, line, pixel, step int"
	infinity := s.constant("infinity", func(int) uint32 { return 0xff800000 })
	ones := s.constant("ones", func(int) uint32 { return 1 })
	s.windows("maxWindows", "func(y, x []float32, "+extents+")", []string{"x"}, func(k *windows, y Mem) {
		best := s.vector()
		VMOVUPS(infinity, best)
		k.each("scan", []string{"x"}, func(mem func(string) Mem) {
			v := s.load(mem("x"), k.mask)
			// The larger, and best where one is NaN. Then v where it is NaN.
			if s.masks {
				nan := K()
				VCMPPS(Imm(unordered), v, v, nan)
				VMAXPS(best, v, best)
				VMOVAPS(v, nan, best)
				return
			}
			nan := s.vector()
			VCMPPS(Imm(unordered), v, v, nan)
			VMAXPS(best, v, best)
			VBLENDVPS(nan, v, best, best)
		})
		s.store(best, y, k.mask)
	})
	s.windows("maxWindowsGrad", "func(y, x, dx []float32, "+extents+")", []string{"x", "dx"}, func(k *windows, dy Mem) {
		best, at, position := s.vector(), s.zero(), s.zero()
		VMOVUPS(infinity, best)
		next := func() { VPADDD(ones, position, position) }
		k.each("scan", []string{"x"}, func(mem func(string) Mem) {
			s.replace(best, s.load(mem("x"), k.mask), at, position)
			next()
		})
		g := s.load(dy, k.mask)
		VPSUBD(position, position, position)
		k.each("spread", []string{"dx"}, func(mem func(string) Mem) {
			to := s.load(mem("dx"), k.mask)
			if s.masks {
				here := K()
				VPCMPEQD(position, at, here)
				VADDPS(g, to, here, to)
			} else {
				here := s.vector()
				VPCMPEQD(position, at, here)
				VANDPS(g, here, here)
				VADDPS(here, to, to)
			}
			s.store(to, mem("dx"), k.mask)
			next()
		})
	})
}
