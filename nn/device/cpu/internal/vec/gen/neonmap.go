package main

import "onlinerna/internal/asm/neon"

// neonMaths is arithmetic on both halves of a vector, widened to float64.
type neonMaths struct {
	*neonStream
	table neon.GP // mathVectors
}

type neonHalves = [2]neon.Vec

// number is one of mathTable.
func (m neonMaths) number(i int) neon.Vec { return m.LoadVec(neon.Bytes, m.table, 64*i) }

// each applies an operation to both halves; all make the number of operand beside them.
func (m neonMaths) each(op string, a, b neonHalves) neonHalves {
	return neonHalves{m.Op(op, neon.D2, a[0], b[0]), m.Op(op, neon.D2, a[1], b[1])}
}

func both(v neon.Vec) neonHalves { return neonHalves{v, v} }

// fma is a·b + c.
func (m neonMaths) fma(a, b, c neonHalves) neonHalves {
	var y neonHalves
	for i := range y {
		y[i] = m.Same(c[i])
		m.Into(y[i], "fmla", neon.D2, a[i], b[i])
	}
	return y
}

// where is a where the mask holds, otherwise b.
func (m neonMaths) where(mask, a, b neonHalves) neonHalves {
	for i := range mask {
		m.Into(mask[i], "bsl", neon.D2, a[i], b[i])
	}
	return mask
}

// polynomial is package vec's.
func (m neonMaths) polynomial(x neonHalves, first, n int) neonHalves {
	z := m.each("fmul", x, x)
	odd, even := both(m.number(first)), both(m.number(first+1))
	for i := first + 2; i < first+n; i += 2 {
		odd, even = m.fma(z, odd, both(m.number(i))), m.fma(z, even, both(m.number(i+1)))
	}
	return m.fma(x, odd, even)
}

// exponential is package vec's.
func (m neonMaths) exponential(x neonHalves) neonHalves {
	v := m.each("fmin", x, both(m.number(mExpMost))) // a NaN stays
	v = m.each("fmax", v, both(m.number(mExpLeast)))
	round := both(m.number(mRound))
	t := m.fma(v, both(m.number(mLog2E)), round)
	r := m.fma(m.each("fsub", t, round), both(m.number(mMinusLn2)), v)
	p := m.polynomial(r, mExp, expTerms)
	t = m.each("add", t, both(m.number(mBias)))
	for i := range t {
		t[i] = m.Shifted(neon.D2, t[i], 52)
	}
	return m.each("fmul", p, t)
}

func (m neonMaths) magnitude(x neonHalves) neonHalves {
	return neonHalves{m.Op("fabs", neon.D2, x[0]), m.Op("fabs", neon.D2, x[1])}
}

// signOf is y, which has none, with the sign of x.
func (m neonMaths) signOf(x, y neonHalves) neonHalves {
	sign := both(m.number(mSign))
	return m.each("orr", m.each("and", x, sign), y)
}

func (m neonMaths) sigmoid(x neonHalves) neonHalves {
	t := m.exponential(neonHalves{m.Op("fneg", neon.D2, x[0]), m.Op("fneg", neon.D2, x[1])})
	one := both(m.number(mOne))
	return m.each("fdiv", one, m.each("fadd", one, t))
}

func (m neonMaths) tanh(x neonHalves) neonHalves {
	a := m.magnitude(x)
	t := m.exponential(m.each("fmul", a, both(m.number(mMinusTwo))))
	one := both(m.number(mOne))
	y := m.each("fdiv", m.each("fsub", one, t), m.each("fadd", one, t))
	return m.signOf(x, m.where(m.each("fcmgt", both(m.number(mTanhSmall)), a), a, y))
}

func (m neonMaths) erf(x neonHalves) neonHalves {
	a := m.each("fmin", m.magnitude(x), both(m.number(mErfMost)))
	u := m.fma(m.each("fmul", a, a), both(m.number(mEighth)), both(m.number(mMinusOne)))
	return m.signOf(x, m.each("fmul", a, m.polynomial(u, mErf, erfTerms)))
}

func (m neonMaths) log(x neonHalves) neonHalves {
	e := neonHalves{m.Shifted(neon.D2, x[0], -52), m.Shifted(neon.D2, x[1], -52)}
	e = m.each("fsub", m.each("orr", e, both(m.number(mExponent))), both(m.number(mExponentOff)))
	one := both(m.number(mOne))
	v := m.each("orr", m.each("and", x, both(m.number(mMantissa))), one)
	large := m.each("fcmgt", v, both(m.number(mSqrt2)))
	e = m.each("fadd", e, m.each("and", large, one))
	v = m.where(large, m.each("fmul", v, both(m.number(mHalf))), v)

	s := m.each("fdiv", m.each("fsub", v, one), m.each("fadd", v, one))
	p := m.polynomial(m.each("fmul", s, s), mLog, logTerms)
	y := m.fma(e, both(m.number(mLn2)), m.each("fmul", m.each("fadd", s, s), p))

	zero := both(m.Zero())
	y = m.where(m.each("fcmeq", x, zero), both(m.number(mMinusInf)), y)
	y = m.where(m.each("fcmgt", zero, x), both(m.number(mNaN)), y)
	return m.where(m.each("fcmgt", both(m.number(mInf)), x), y, x)
}

// neonFunctions writes the kernels of Functions.
func neonFunctions(f *neon.File) {
	for _, g := range []struct {
		name string
		body func(m neonMaths, x neonHalves) neonHalves
	}{
		{"exp", neonMaths.exponential}, {"sigmoid", neonMaths.sigmoid}, {"tanh", neonMaths.tanh}, {"erf", neonMaths.erf}, {"log", neonMaths.log},
	} {
		neonRun(f, g.name, "dst x", "", ")", func(k *neonStream) (func(), neonEnds) {
			m := neonMaths{k, k.Address("·mathVectors", 0)}
			return func() {
				y := g.body(m, k.Doubles(k.in("x")))
				k.out("dst", k.Singles(y[0], y[1]))
			}, neonEnds{}
		})
	}
	for _, g := range []struct {
		name, slices string
		body         func(k *neonStream) neon.Vec
	}{
		{"neg", "dst x", func(k *neonStream) neon.Vec { return k.Op("fneg", neon.S4, k.in("x")) }},
		{"sqrt", "dst x", func(k *neonStream) neon.Vec { return k.Op("fsqrt", neon.S4, k.in("x")) }},
		{"sub", "dst a b", func(k *neonStream) neon.Vec { return k.sub(k.in("a"), k.in("b")) }},
		{"mul", "dst a b", func(k *neonStream) neon.Vec { return k.mul(k.in("a"), k.in("b")) }},
		{"div", "dst a b", func(k *neonStream) neon.Vec { return k.Op("fdiv", neon.S4, k.in("a"), k.in("b")) }},
		// A NaN goes through, and zeros are ordered.
		{"minimum", "dst a b", func(k *neonStream) neon.Vec { return k.Op("fmin", neon.S4, k.in("a"), k.in("b")) }},
		{"maximum", "dst a b", func(k *neonStream) neon.Vec { return k.Op("fmax", neon.S4, k.in("a"), k.in("b")) }},
		{"less", "dst a b", func(k *neonStream) neon.Vec { return k.Op("fcmgt", neon.S4, k.in("b"), k.in("a")) }},
		{"lessEqual", "dst a b", func(k *neonStream) neon.Vec { return k.Op("fcmge", neon.S4, k.in("b"), k.in("a")) }},
		{"equal", "dst a b", func(k *neonStream) neon.Vec { return k.Op("fcmeq", neon.S4, k.in("a"), k.in("b")) }},
		{"choose", "dst c a b", func(k *neonStream) neon.Vec {
			truth := k.Negative(k.in("c"))
			k.Into(truth, "bsl", neon.S4, k.in("a"), k.in("b"))
			return truth
		}},
	} {
		neonRun(f, g.name, g.slices, "", ")", func(k *neonStream) (func(), neonEnds) {
			return func() { k.out("dst", g.body(k)) }, neonEnds{}
		})
	}
}

// neonUniforms writes uniforms: four counters of Philox-4x32-10 at a time, each word of theirs in a vector.
func neonUniforms(f *neon.File) {
	f.Func("uniformsNEON", "(dst *float32, groups int, counter, sample, step uint32, key uint64)", func(k *neon.Func) {
		dst, groups := k.Arg("dst"), k.Arg("groups")
		counter, sample, step := k.AllOf(neon.S4, k.Arg("counter")), k.AllOf(neon.S4, k.Arg("sample")), k.AllOf(neon.S4, k.Arg("step"))
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
