package main

import (
	"strings"

	"onlinerna/internal/simd/gen/neon"
)

// neonFunctions writes the kernels of Functions.
func neonFunctions(f *neon.File) {
	for _, g := range singles[*neonParts]() {
		neonRun(f, g.name, "dst x", "", ")", func(k *neonStream) (func(), neonEnds) {
			table := k.Address("·singleVectors", 0)
			return func() {
				m := neonMaths{k.Func, neon.S4, table, make(map[int]neon.Vec)}
				k.out("dst", vector((*g.of(m, &neonParts{k.in("x").Vec}))[0]))
			}, neonEnds{}
		})
	}
	for _, g := range fused[*neonParts]() {
		write := func(name, rows string, first func(k *neonStream) neonValue) {
			neonRun(f, name, "dst "+g.operands, rows, ")", func(k *neonStream) (func(), neonEnds) {
				table := k.Address("·singleVectors", 0)
				return func() {
					m := neonMaths{k.Func, neon.S4, table, make(map[int]neon.Vec)}
					in := []*neonParts{{first(k).Vec}}
					for _, name := range strings.Fields(g.operands)[1:] {
						in = append(in, &neonParts{k.in(name).Vec})
					}
					k.out("dst", vector((*g.of(m, in))[0]))
				}, neonEnds{}
			})
		}
		write(g.name, "", func(k *neonStream) neonValue { return k.in("x") })
		for _, way := range g.waysOf(ways[:1]) {
			write(g.normalized+way, normalRows, func(k *neonStream) neonValue { return normalized[neonValue](k) })
		}
	}
	for _, g := range doubles[*neonParts]() {
		neonRun(f, g.name, "dst x", "", ")", func(k *neonStream) (func(), neonEnds) {
			table := k.Address("·doubleVectors", 0)
			return func() {
				m := neonMaths{k.Func, neon.D2, table, make(map[int]neon.Vec)}
				x := k.Doubles(k.in("x").Vec)
				both := neonParts(x[:])
				y := *g.of(m, &both)
				k.out("dst", vector(k.Singles(y[0], y[1])))
			}, neonEnds{}
		})
	}
	neonKernels(f, unary[neonValue]())
	neonKernels(f, others[neonValue]())
}

// neonMaths is arithmetic on a vector of float32, or on both halves of one, widened to float64. Setting a variable
// gives it other registers.
type neonMaths struct {
	*neon.Func
	lanes   neon.Shape
	table   neon.GP
	numbers map[int]neon.Vec // the numbers read so far
}

// neonParts is a variable: a vector, or the two of its halves.
type neonParts []neon.Vec

func (m neonMaths) vector() *neonParts         { v := make(neonParts, m.parts()); return &v }
func (m neonMaths) zero() *neonParts           { return m.all(m.Zero()) }
func (m neonMaths) at(i int) *neonParts        { return m.number(i) }
func (m neonMaths) move(y, x *neonParts)       { *y = append(neonParts(nil), *x...) }
func (m neonMaths) min(y, a, b *neonParts)     { m.each("fmin", y, a, b) } // a NaN stays
func (m neonMaths) max(y, a, b *neonParts)     { m.each("fmax", y, a, b) }
func (m neonMaths) add(y, a, b *neonParts)     { m.each("fadd", y, a, b) }
func (m neonMaths) sub(y, a, b *neonParts)     { m.each("fsub", y, a, b) }
func (m neonMaths) mul(y, a, b *neonParts)     { m.each("fmul", y, a, b) }
func (m neonMaths) div(y, a, b *neonParts)     { m.each("fdiv", y, a, b) }
func (m neonMaths) and(y, a, b *neonParts)     { m.each("and", y, a, b) }
func (m neonMaths) or(y, a, b *neonParts)      { m.each("orr", y, a, b) }
func (m neonMaths) subInts(y, a, b *neonParts) { m.each("sub", y, a, b) }
func (m neonMaths) power(y, _, t *neonParts)   { byPowers(m, y, t) }

func (m neonMaths) parts() int {
	if m.lanes == neon.S4 {
		return 1
	}
	return 2
}

// all is a variable whose parts are v.
func (m neonMaths) all(v neon.Vec) *neonParts {
	y := m.vector()
	for i := range *y {
		(*y)[i] = v
	}
	return y
}

// each sets y to the result of an operation on each part.
func (m neonMaths) each(op string, y *neonParts, from ...*neonParts) {
	z := *m.vector()
	for i := range z {
		var list []neon.Vec
		for _, x := range from {
			list = append(list, (*x)[i])
		}
		z[i] = m.Op(op, m.lanes, list...)
	}
	*y = z
}

func (m neonMaths) number(i int) *neonParts {
	v, ok := m.numbers[i]
	if !ok {
		v = m.LoadVec(neon.Bytes, m.table, 64*i)
		m.numbers[i] = v
	}
	return m.all(v)
}

func (m neonMaths) fma(y, a, b *neonParts) {
	z := *m.vector()
	for i := range z {
		z[i] = m.Same((*b)[i])
		m.Into(z[i], "fmla", m.lanes, (*y)[i], (*a)[i])
	}
	*y = z
}

func (m neonMaths) shift(y, x *neonParts, n int) {
	z := *m.vector()
	for i := range z {
		z[i] = m.Shifted(m.lanes, (*x)[i], n)
	}
	*y = z
}

func (m neonMaths) where(r relation, x, b, a, y *neonParts) {
	mask, other := m.vector(), y
	switch r {
	case equal:
		m.each("fcmeq", mask, x, b)
	case greater:
		m.each("fcmgt", mask, x, b)
	case less:
		m.each("fcmgt", mask, b, x)
	case lessEqual:
		m.each("fcmge", mask, b, x)
	case greaterEqual:
		m.each("fcmge", mask, x, b)
	case notLess:
		m.each("fcmgt", mask, b, x)
		a, other = y, a
	}
	for i := range *mask {
		m.Into((*mask)[i], "bsl", m.lanes, (*a)[i], (*other)[i])
	}
	*y = *mask
}

// neonUniforms writes uniforms: four counters of Philox-4x32-10 at a time, with each of their words in a vector.
func neonUniforms(f *neon.File) {
	f.Func("uniformsNEON", "(dst *float32, groups int, counter, sample, step uint32, key uint64)", func(k *neon.Func) {
		dst, groups := k.Arg("dst"), k.Arg("groups")
		counter, sample, step := k.AllOf(neon.S4, k.Arg("counter")), k.AllOf(neon.S4, k.Arg("sample")),
			k.AllOf(neon.S4, k.Arg("step"))
		first := f.Constant("philoxFirst", [4]uint32{0, 1, 2, 3})
		k.Into(counter, "add", neon.S4, counter, k.LoadVec(neon.Bytes, k.Address(first, 0), 0))
		key := k.Arg("key")
		low := k.AllOf(neon.S4, key)
		k.ShiftRight(key, key, 32)
		keys := [2]neon.Vec{low, k.AllOf(neon.S4, key)}
		m := [2]neon.Vec{k.Bits(neon.S4, 0xd2511f53), k.Bits(neon.S4, 0xcd9e8d57)}
		w := [2]neon.Vec{k.Bits(neon.S4, 0x9e3779b9), k.Bits(neon.S4, 0xbb67ae85)}
		next, unit := k.Bits(neon.S4, 4), k.Number(neon.S4, 0x1p-24)

		k.Label("group")
		c := [4]neon.Vec{k.Same(counter), k.Same(sample), k.Same(step), k.Zero()}
		now := [2]neon.Vec{k.Same(keys[0]), k.Same(keys[1])}
		for round := range 10 {
			var lo, hi [2]neon.Vec
			for i := range m {
				if round > 0 {
					k.Into(now[i], "add", neon.S4, now[i], w[i])
				}
				a, b := k.Products32(false, m[i], c[2*i]), k.Products32(true, m[i], c[2*i])
				lo[i], hi[i] = k.Op("uzp1", neon.S4, a, b), k.Op("uzp2", neon.S4, a, b)
			}
			xor := func(a, b, c neon.Vec) neon.Vec { return k.Op("eor", neon.S4, k.Op("eor", neon.S4, a, b), c) }
			c = [4]neon.Vec{xor(hi[1], c[1], now[0]), lo[1], xor(hi[0], c[3], now[1]), lo[0]}
		}
		for i := range c {
			c[i] = k.Op("fmul", neon.S4, k.Op("ucvtf", neon.S4, k.Shifted(neon.S4, c[i], -8)), unit)
		}
		for i, zip := range []string{"zip1", "zip2"} { // counters 0 and 1, and 2 and 3
			a, b := k.Op(zip, neon.S4, c[0], c[1]), k.Op(zip, neon.S4, c[2], c[3])
			k.StoreTwo(k.Op("zip1", neon.D2, a, b), k.Op("zip2", neon.D2, a, b), dst, 32*i)
		}
		k.Into(counter, "add", neon.S4, counter, next)
		k.AddI(dst, dst, 64)
		k.SubsI(groups, groups, 1)
		k.Branch("NE", "group")
		k.Ret()
	})
}
