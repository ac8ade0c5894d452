package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// maths allocates registers and writes arithmetic on vectors. Numbers are in registers too while any are free,
// otherwise in memory.
type maths struct {
	isa
	free    []reg.VecPhysical
	numbers map[float64]Op
}

// vectorsOf are in memory, filled with a number each.
var vectorsOf = map[float64]Mem{}

// declare puts the numbers of a transform in memory.
func declare(l line) {
	for _, v := range l.numbers {
		if _, ok := vectorsOf[v]; ok {
			continue
		}
		at := GLOBL(fmt.Sprintf("number%d", len(vectorsOf)), RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, F32(v))
		}
		vectorsOf[v] = at
	}
}

// newMaths has all registers but the first taken, for a transform that needs up to most registers besides its
// numbers.
func newMaths(s isa, taken, most int, l line) *maths {
	m := &maths{isa: s, free: append([]reg.VecPhysical(nil), s.regs[taken:]...), numbers: map[float64]Op{}}
	for _, v := range l.numbers {
		if len(m.free) <= most {
			m.numbers[v] = vectorsOf[v]
			continue
		}
		x := m.take()
		VBROADCASTSS(vectorsOf[v], x)
		m.numbers[v] = x
	}
	return m
}

// take returns a free register.
func (m *maths) take() reg.VecPhysical {
	x := m.free[0]
	m.free = m.free[1:]
	return x
}

func (m *maths) release(x ...reg.VecPhysical) { m.free = append(m.free, x...) }

func (m *maths) number(v float64) Op {
	x, ok := m.numbers[v]
	if !ok {
		panic(fmt.Sprintf("%v is not among the numbers", v))
	}
	return x
}

func (m *maths) copy(x reg.VecPhysical) reg.VecPhysical {
	y := m.take()
	VMOVAPS(x, y)
	return y
}

// add sets y to y + v·x, subtract to y − v·x.
func (m *maths) add(y reg.VecPhysical, v float64, x reg.VecPhysical) { VFMADD231PS(m.number(v), x, y) }
func (m *maths) subtract(y reg.VecPhysical, v float64, x reg.VecPhysical) {
	VFNMADD231PS(m.number(v), x, y)
}

func (m *maths) plus(y, x reg.VecPhysical) { VADDPS(x, y, y) }

// times is v·x in another register, scale sets x to it.
func (m *maths) times(v float64, x reg.VecPhysical) reg.VecPhysical {
	y := m.take()
	VMULPS(m.number(v), x, y)
	return y
}

func (m *maths) scale(x reg.VecPhysical, v float64) { VMULPS(m.number(v), x, x) }

// sums is x + y and x − y, in their registers.
func (m *maths) sums(x, y reg.VecPhysical) (sum, difference reg.VecPhysical) {
	sum = m.take()
	VADDPS(y, x, sum)
	VSUBPS(y, x, x)
	m.release(y)
	return sum, x
}
