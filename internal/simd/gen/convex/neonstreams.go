package main

import (
	"strings"

	"onlinerna/internal/simd/gen/neon"
)

// neonStream is a kernel with one pass over slices of d elements.
type neonStream struct {
	*neon.Func
	base        map[string]neon.GP
	number      map[string]neon.Vec // in lane 0
	unit, bytes int
}

func (k *neonStream) in(name string) neon.Vec {
	return k.LoadVec(k.bytes, k.base[name], k.unit*neon.Bytes)
}

func (k *neonStream) out(name string, x neon.Vec) {
	k.StoreVec(k.bytes, x, k.base[name], k.unit*neon.Bytes)
}

func (k *neonStream) sub(a, b neon.Vec) neon.Vec { return k.Op("fsub", neon.D2, a, b) }

func (k *neonStream) times(number string, x neon.Vec) neon.Vec {
	return k.Times(neon.D2, x, k.number[number], 0)
}

func (k *neonStream) addTimes(v neon.Vec, number string, x neon.Vec) {
	k.AddTimes(v, neon.D2, x, k.number[number], 0)
}

func (k *neonStream) subTimes(v neon.Vec, number string, x neon.Vec) {
	k.SubTimes(v, neon.D2, x, k.number[number], 0)
}

// neonRun writes a kernel of the given slices and numbers, whose length is an argument. setup returns the code for one
// register, of which the loop takes unroll at a time, and the code at the end.
func neonRun(f *neon.File, name, slices, numbers, length, result string, unroll int,
	setup func(k *neonStream) (body func(unit int), finish func())) {
	names := strings.Fields(slices)
	signature := "(" + strings.Join(names, ", ") + " *float64, "
	if numbers != "" {
		signature += strings.Join(strings.Fields(numbers), ", ") + " float64, "
	}
	f.Func(name+"NEON", signature+length+" int)"+result, func(fn *neon.Func) {
		k := &neonStream{Func: fn, base: make(map[string]neon.GP), number: make(map[string]neon.Vec)}
		for _, n := range names {
			k.base[n] = k.Arg(n)
		}
		left := k.Arg(length)
		for _, n := range strings.Fields(numbers) {
			k.number[n] = k.Scalar(n)
		}
		body, finish := setup(k)
		loop := func(label string, units, bytes int) {
			k.bytes = bytes
			k.Turns(label, left, units*bytes/8, func() {
				for k.unit = range units {
					body(k.unit)
				}
				k.unit = 0
				for _, n := range names {
					k.AddI(k.base[n], k.base[n], units*bytes)
				}
			})
		}
		loop("wide", unroll, neon.Bytes)
		if unroll > 1 {
			loop("one", 1, neon.Bytes)
		}
		loop("last", 1, 8)
		if finish != nil {
			finish()
			return
		}
		k.Ret()
	})
}

func neonStreams(f *neon.File) {
	neonRun(f, "dot", "x w", "", "d", " float64", 4, func(k *neonStream) (func(int), func()) {
		sums := [4]neon.Vec{k.Zero(), k.Zero(), k.Zero(), k.Zero()}
		return func(unit int) { k.Into(sums[unit], "fmla", neon.D2, k.in("x"), k.in("w")) }, func() {
			a, b := k.Op("fadd", neon.D2, sums[0], sums[1]), k.Op("fadd", neon.D2, sums[2], sums[3])
			k.ReturnScalar(k.Pair(k.Op("fadd", neon.D2, a, b)))
		}
	})
	for _, c := range combinations[neon.Vec]() {
		neonRun(f, c.name, c.slices, c.numbers, "d", "", c.unroll, func(k *neonStream) (func(int), func()) {
			return func(int) { c.body(k) }, nil
		})
	}
}

// neonLosses writes the NEON version of losses.
func neonLosses(f *neon.File) {
	numbers := f.Table("lossNumbers")
	for _, slopes := range []bool{false, true} {
		for _, l := range losses[*neonVariable]() {
			name, slices := l.name, "z old y"
			if slopes {
				name, slices = name+"Slopes", "slopes "+slices
			}
			neonRun(f, name, slices, "a b", "rows", " float64", 1, func(k *neonStream) (func(int), func()) {
				m := neonMaths{k.Func, numbers, k.Address(numbers.Symbol, 0)}
				total := k.Zero()
				return func(int) {
					p := k.times("a", k.in("z"))
					k.addTimes(p, "b", k.in("old"))
					value, slope := l.of(m, known(p), known(k.in("y")), slopes)
					sum := value.Vec
					if k.bytes < neon.Bytes {
						sum = k.Op("zip1", neon.D2, sum, k.Zero())
					}
					k.Into(total, "fadd", neon.D2, total, sum)
					if slopes {
						k.out("slopes", slope.Vec)
					}
				}, func() { k.ReturnScalar(k.Pair(total)) }
			})
		}
	}
}

// neonMaths is arithmetic with numbers in memory. Setting a variable gives it another register.
type neonMaths struct {
	*neon.Func
	numbers *neon.Table
	table   neon.GP
}

// neonVariable is in a register, or a number at a place of the table until it is read.
type neonVariable struct {
	neon.Vec
	unread bool
	place  int
}

func known(x neon.Vec) *neonVariable { return &neonVariable{Vec: x} }

// load reads a number into a register of its own.
func (m neonMaths) load(x *neonVariable) neon.Vec { return m.LoadVec(neon.Bytes, m.table, x.place) }

// value is the register of x.
func (m neonMaths) value(x *neonVariable) neon.Vec {
	if x.unread {
		x.Vec, x.unread = m.load(x), false
	}
	return x.Vec
}

func (m neonMaths) op(name string, from ...*neonVariable) *neonVariable {
	var list []neon.Vec
	for _, x := range from {
		list = append(list, m.value(x))
	}
	return known(m.Op(name, neon.D2, list...))
}

func (m neonMaths) number(_ string, x float64) *neonVariable {
	return &neonVariable{unread: true, place: m.numbers.Place(x)}
}

func (m neonMaths) copy(x *neonVariable) *neonVariable {
	if x.unread {
		return known(m.load(x))
	}
	return known(m.Same(x.Vec))
}

func (m neonMaths) zero() *neonVariable                  { return known(m.Zero()) }
func (m neonMaths) add(a, b *neonVariable) *neonVariable { return m.op("fadd", a, b) }
func (m neonMaths) sub(a, b *neonVariable) *neonVariable { return m.op("fsub", a, b) }
func (m neonMaths) mul(a, b *neonVariable) *neonVariable { return m.op("fmul", a, b) }
func (m neonMaths) div(a, b *neonVariable) *neonVariable { return m.op("fdiv", a, b) }
func (m neonMaths) plus(y, x *neonVariable)              { *y = *m.add(y, x) }
func (m neonMaths) minus(y, x *neonVariable)             { *y = *m.sub(y, x) }
func (m neonMaths) from(y, x *neonVariable)              { *y = *m.sub(x, y) }
func (m neonMaths) round(y *neonVariable)                { *y = *m.op("frintn", y) }

func (m neonMaths) minusAbs(x *neonVariable) *neonVariable { return m.op("fneg", m.op("fabs", x)) }

func (m neonMaths) atLeast(x *neonVariable, name string, least float64) *neonVariable {
	return m.op("fmax", x, m.number(name, least)) // a NaN stays
}

func (m neonMaths) negativePart(x *neonVariable) (part, zero *neonVariable) {
	zero = m.zero()
	return m.op("fmax", m.sub(zero, x), zero), zero
}

func (m neonMaths) above(x, y, a, b *neonVariable) *neonVariable {
	mask := m.op("fcmgt", x, y)
	m.Into(mask.Vec, "bsl", neon.D2, m.value(a), m.value(b))
	return mask
}

func (m neonMaths) fma(y, a, b *neonVariable) {
	sum := m.copy(b)
	m.Into(sum.Vec, "fmla", neon.D2, m.value(y), m.value(a))
	*y = *sum
}

func (m neonMaths) addTimes(y, a, b *neonVariable) {
	m.Into(m.value(y), "fmla", neon.D2, m.value(a), m.value(b))
}

func (m neonMaths) subTimes(y, a, b *neonVariable) {
	m.Into(m.value(y), "fmls", neon.D2, m.value(a), m.value(b))
}

func (m neonMaths) scaled(x, n *neonVariable) *neonVariable {
	power := m.Op("add", neon.D2, m.Op("fcvtzs", neon.D2, n.Vec), m.Bits(neon.D2, 1023))
	return m.mul(x, known(m.Shifted(neon.D2, power, 52)))
}
