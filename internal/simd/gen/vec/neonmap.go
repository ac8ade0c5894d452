package main

import "onlinerna/internal/simd/gen/neon"

// neonFunctions writes the kernels of Functions.
func neonFunctions(f *neon.File) {
	for _, g := range mathFunctions[*neonHalves]() {
		neonRun(f, g.name, "dst x", "", ")", func(k *neonStream) (func(), neonEnds) {
			table := k.Address("·mathVectors", 0)
			return func() {
				x := neonHalves(k.Doubles(k.in("x").Vec))
				y := g.of(neonWide{k.Func, table, make(map[int]neon.Vec)}, &x)
				k.out("dst", vector(k.Singles(y[0], y[1])))
			}, neonEnds{}
		})
	}
	neonKernels(f, unary[neonValue]())
	neonKernels(f, others[neonValue]())
}

// neonWide is arithmetic on both halves of a vector, widened to float64. Setting a variable gives it other registers.
type neonWide struct {
	*neon.Func
	table   neon.GP          // mathVectors
	numbers map[int]neon.Vec // the numbers read so far
}

type neonHalves [2]neon.Vec

func (m neonWide) vector() *neonHalves         { return new(neonHalves) }
func (m neonWide) zero() *neonHalves           { v := m.Zero(); return &neonHalves{v, v} }
func (m neonWide) at(i int) *neonHalves        { return m.number(i) }
func (m neonWide) move(y, x *neonHalves)       { *y = *x }
func (m neonWide) min(y, a, b *neonHalves)     { m.both("fmin", y, a, b) } // a NaN stays
func (m neonWide) max(y, a, b *neonHalves)     { m.both("fmax", y, a, b) }
func (m neonWide) add(y, a, b *neonHalves)     { m.both("fadd", y, a, b) }
func (m neonWide) sub(y, a, b *neonHalves)     { m.both("fsub", y, a, b) }
func (m neonWide) mul(y, a, b *neonHalves)     { m.both("fmul", y, a, b) }
func (m neonWide) div(y, a, b *neonHalves)     { m.both("fdiv", y, a, b) }
func (m neonWide) and(y, a, b *neonHalves)     { m.both("and", y, a, b) }
func (m neonWide) or(y, a, b *neonHalves)      { m.both("orr", y, a, b) }
func (m neonWide) addInts(y, a, b *neonHalves) { m.both("add", y, a, b) }

// both sets y to the result of an operation on both halves.
func (m neonWide) both(op string, y *neonHalves, from ...*neonHalves) {
	var z neonHalves
	for i := range z {
		var list []neon.Vec
		for _, x := range from {
			list = append(list, x[i])
		}
		z[i] = m.Op(op, neon.D2, list...)
	}
	*y = z
}

func (m neonWide) number(i int) *neonHalves {
	v, ok := m.numbers[i]
	if !ok {
		v = m.LoadVec(neon.Bytes, m.table, 64*i)
		m.numbers[i] = v
	}
	return &neonHalves{v, v}
}

func (m neonWide) fma(y, a, b *neonHalves) {
	for i := range y {
		sum := m.Same(b[i])
		m.Into(sum, "fmla", neon.D2, y[i], a[i])
		y[i] = sum
	}
}

func (m neonWide) shift(y, x *neonHalves, n int) {
	for i := range y {
		y[i] = m.Shifted(neon.D2, x[i], n)
	}
}

func (m neonWide) negative(x *neonHalves) *neonHalves {
	y := m.vector()
	m.both("fneg", y, x)
	return y
}
func (m neonWide) magnitude(x *neonHalves) *neonHalves {
	y := m.vector()
	m.both("fabs", y, x)
	return y
}

func (m neonWide) signOf(x, y *neonHalves) *neonHalves {
	sign := m.vector()
	m.and(sign, x, m.number(mSign))
	m.or(y, sign, y)
	return y
}

func (m neonWide) where(r relation, x, b, a, y *neonHalves) {
	mask, other := m.vector(), y
	switch r {
	case equal:
		m.both("fcmeq", mask, x, b)
	case greater:
		m.both("fcmgt", mask, x, b)
	case less:
		m.both("fcmgt", mask, b, x)
	case notLess:
		m.both("fcmgt", mask, b, x)
		a, other = y, a
	}
	for i := range mask {
		m.Into(mask[i], "bsl", neon.D2, a[i], other[i])
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
