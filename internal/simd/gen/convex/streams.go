package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// stream is a kernel with one pass over slices of d elements.
type stream struct {
	isa
	base map[string]reg.Register
	at   reg.GPVirtual // bytes
	mask *mask
	disp int

	number map[string]reg.VecVirtual // vectors full of each
}

func (k *stream) mem(name string) Mem {
	return Mem{Base: k.base[name], Index: k.at, Scale: 1, Disp: k.disp}
}

func (k *stream) in(name string) reg.VecVirtual     { return k.Load(k.mem(name), k.mask) }
func (k *stream) out(name string, x reg.VecVirtual) { k.Store(x, k.mem(name), k.mask) }

func (k *stream) sub(a, b reg.VecVirtual) reg.VecVirtual { return k.Sub(a, b) }
func (k *stream) times(number string, x reg.VecVirtual) reg.VecVirtual {
	return k.Mul(x, k.number[number])
}

func (k *stream) addTimes(y reg.VecVirtual, number string, x reg.VecVirtual) {
	VFMADD231PD(x, k.number[number], y)
}

func (k *stream) subTimes(y reg.VecVirtual, number string, x reg.VecVirtual) {
	VFNMADD231PD(x, k.number[number], y)
}

// stream makes a kernel of the given slices and numbers. setup returns the code for one vector, of which the loop takes
// unroll at a time, and the code at the end.
func (s isa) stream(name, slices, numbers, result string, unroll int,
	setup func(k *stream) (body func(unit int), finish func())) {
	names := strings.Fields(slices)
	signature := "func(" + strings.Join(names, ", ") + " *float64, "
	if numbers != "" {
		signature += strings.Join(strings.Fields(numbers), ", ") + " float64, "
	}
	TEXT(name+s.Suffix, NOSPLIT, signature+"d int)"+result)
	Pragma("noescape")
	k := &stream{isa: s, base: make(map[string]reg.Register), at: GP64(), number: make(map[string]reg.VecVirtual)}
	for _, n := range names {
		k.base[n] = Load(Param(n), GP64())
	}
	left := Load(Param("d"), GP64()).(reg.GPVirtual)
	for _, n := range strings.Fields(numbers) {
		k.number[n] = s.Scalar(n)
	}
	body, finish := setup(k)
	XORQ(k.at, k.at)
	loop := func(label string, units int) {
		Label(label)
		SUBQ(Imm(uint64(units*s.Lanes)), left)
		JL(LabelRef(label + "End"))
		for u := range units {
			k.disp = u * s.Bytes()
			body(u)
		}
		k.disp = 0
		ADDQ(U32(uint32(units*s.Bytes())), k.at)
		JMP(LabelRef(label))
		Label(label + "End")
		ADDQ(Imm(uint64(units*s.Lanes)), left)
	}
	if unroll > 1 {
		loop("wide", unroll)
	}
	loop("one", 1)
	JZ(LabelRef("done"))
	k.mask = s.First(left)
	body(0)
	Label("done")
	finish()
	VZEROUPPER()
	RET()
}

func (s isa) streams() {
	s.stream("dot", "x w", "", " float64", 4, func(k *stream) (body func(int), finish func()) {
		var sums [4]reg.VecVirtual
		for i := range sums {
			sums[i] = s.Zero()
		}
		return func(unit int) {
				VFMADD231PD(k.in("x"), k.in("w"), sums[unit])
			}, func() {
				VADDPD(sums[1], sums[0], sums[0])
				VADDPD(sums[3], sums[2], sums[2])
				VADDPD(sums[2], sums[0], sums[0])
				Store(s.Sum(sums[0]).AsX(), ReturnIndex(0))
			}
	})
	for _, c := range combinations[reg.VecVirtual]() {
		s.stream(c.name, c.slices, c.numbers, "", c.unroll, func(k *stream) (body func(int), finish func()) {
			return func(int) { c.body(k) }, func() {}
		})
	}
}
