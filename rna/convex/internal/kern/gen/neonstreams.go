package main

import (
	"math"
	"strings"

	"onlinerna/internal/asm/neon"
)

// neonStream is a kernel that goes once along slices of d elements.
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

func (k *neonStream) times(number string, x neon.Vec) neon.Vec {
	return k.Times(neon.D2, x, k.number[number], 0)
}

func (k *neonStream) addTimes(v neon.Vec, number string, x neon.Vec) {
	k.AddTimes(v, neon.D2, x, k.number[number], 0)
}

func (k *neonStream) subTimes(v neon.Vec, number string, x neon.Vec) {
	k.SubTimes(v, neon.D2, x, k.number[number], 0)
}

// neonRun writes a kernel of the given slices and numbers, whose length is an argument. setup gives the code for a register, of
// which unroll are in hand, and what comes at the end.
func neonRun(f *neon.File, name, slices, numbers, length, result string, unroll int, setup func(k *neonStream) (body func(unit int), finish func())) {
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
			count := units * bytes / 8
			k.bytes = bytes
			k.SubsI(left, left, count)
			k.Branch("LT", label+"End")
			k.Label(label)
			for k.unit = range units {
				body(k.unit)
			}
			for _, n := range names {
				k.AddI(k.base[n], k.base[n], units*bytes)
			}
			k.SubsI(left, left, count)
			k.Branch("GE", label)
			k.Label(label + "End")
			k.AddI(left, left, count)
			k.unit = 0
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
	neonRun(f, "combine2", "dst x", "a b", "d", "", 2, func(k *neonStream) (func(int), func()) {
		return func(int) {
			v := k.times("a", k.in("dst"))
			k.addTimes(v, "b", k.in("x"))
			k.out("dst", v)
		}, nil
	})
	neonRun(f, "combine3", "dst x y", "a b c", "d", "", 2, func(k *neonStream) (func(int), func()) {
		return func(int) {
			v := k.times("a", k.in("dst"))
			k.addTimes(v, "b", k.in("x"))
			k.addTimes(v, "c", k.in("y"))
			k.out("dst", v)
		}, nil
	})
	neonRun(f, "sagaStep", "w mean x", "a b c e", "d", "", 2, func(k *neonStream) (func(int), func()) {
		return func(int) {
			m, x := k.in("mean"), k.in("x")
			v := k.times("a", k.in("w"))
			k.addTimes(v, "b", m)
			k.addTimes(v, "c", x)
			k.out("w", v)
			k.addTimes(m, "e", x)
			k.out("mean", m)
		}, nil
	})
	neonRun(f, "mix", "dst x y z", "a b c", "d", "", 2, func(k *neonStream) (func(int), func()) {
		return func(int) {
			v := k.times("a", k.in("x"))
			k.addTimes(v, "b", k.in("y"))
			k.addTimes(v, "c", k.in("z"))
			k.out("dst", v)
		}, nil
	})
	neonRun(f, "katyushaStep", "z y mean x grad", "alpha shrinkZ short shrinkY weight", "d", "", 1, func(k *neonStream) (func(int), func()) {
		return func(int) {
			g, z, y, mean := k.in("grad"), k.in("z"), k.in("x"), k.in("mean")
			k.subTimes(z, "alpha", g)
			k.out("z", k.times("shrinkZ", z))
			k.subTimes(y, "short", g)
			y = k.times("shrinkY", y)
			k.out("y", y)
			k.addTimes(mean, "weight", k.Op("fsub", neon.D2, y, mean))
			k.out("mean", mean)
		}, nil
	})
}

// neonLosses writes what losses does.
func neonLosses(f *neon.File) {
	m := newNEONNumbers(f)
	for _, slopes := range []bool{false, true} {
		for _, loss := range []struct {
			name string
			body func(m neonNumbers, z, y neon.Vec, slopes bool) (value, slope neon.Vec)
		}{{"squares", neonNumbers.squares}, {"logistic", neonNumbers.logistic}} {
			name, slices := loss.name, "z old y"
			if slopes {
				name, slices = name+"Slopes", "slopes "+slices
			}
			neonRun(f, name, slices, "a b", "rows", " float64", 1, func(k *neonStream) (func(int), func()) {
				m := m
				m.Func, m.table = k.Func, k.Address(m.symbol, 0)
				total := k.Zero()
				return func(int) {
					p := k.times("a", k.in("z"))
					k.addTimes(p, "b", k.in("old"))
					value, slope := loss.body(m, p, k.in("y"), slopes)
					if k.bytes < neon.Bytes {
						value = k.Op("zip1", neon.D2, value, k.Zero())
					}
					k.Into(total, "fadd", neon.D2, total, value)
					if slopes {
						k.out("slopes", slope)
					}
				}, func() { k.ReturnScalar(k.Pair(total)) }
			})
		}
	}
}

// neonNumbers is arithmetic with numbers that lie in memory.
type neonNumbers struct {
	*neon.Func
	symbol neon.Symbol
	table  neon.GP
	place  map[float64]int
}

const neonDegree = 13 // of the polynomial of exp

func newNEONNumbers(f *neon.File) neonNumbers {
	list := []float64{0.5, 1, 2, -708, math.Log2E, ln2High, ln2Low, math.Sqrt2 - 1}
	for k := range neonDegree + 1 {
		list = append(list, 1/factorial(k))
	}
	list = append(list, logarithm...)
	m := neonNumbers{place: make(map[float64]int)}
	var numbers []float64
	for _, x := range list {
		if _, ok := m.place[x]; !ok {
			m.place[x] = len(numbers)
			numbers = append(numbers, x)
		}
	}
	m.symbol = f.Numbers("lossNumbers", numbers)
	return m
}

func factorial(k int) float64 {
	x := 1.0
	for i := 2; i <= k; i++ {
		x *= float64(i)
	}
	return x
}

func (m neonNumbers) number(x float64) neon.Vec {
	return m.LoadVec(neon.Bytes, m.table, neon.Bytes*m.place[x])
}

func (m neonNumbers) add(a, b neon.Vec) neon.Vec { return m.Op("fadd", neon.D2, a, b) }
func (m neonNumbers) sub(a, b neon.Vec) neon.Vec { return m.Op("fsub", neon.D2, a, b) }
func (m neonNumbers) mul(a, b neon.Vec) neon.Vec { return m.Op("fmul", neon.D2, a, b) }
func (m neonNumbers) div(a, b neon.Vec) neon.Vec { return m.Op("fdiv", neon.D2, a, b) }

// fma is a·b + c, in a register of its own.
func (m neonNumbers) fma(a, b, c neon.Vec) neon.Vec {
	x := m.Same(c)
	m.Into(x, "fmla", neon.D2, a, b)
	return x
}

// above is a where x > y, otherwise b.
func (m neonNumbers) above(x, y, a, b neon.Vec) neon.Vec {
	mask := m.Op("fcmgt", neon.D2, x, y)
	m.Into(mask, "bsl", neon.D2, a, b)
	return mask
}

func (m neonNumbers) squares(z, y neon.Vec, _ bool) (value, slope neon.Vec) {
	slope = m.sub(z, y)
	return m.mul(m.mul(slope, slope), m.number(0.5)), slope
}

// logistic is that of amd64.
func (m neonNumbers) logistic(z, y neon.Vec, slopes bool) (value, slope neon.Vec) {
	margin := m.mul(y, z)
	e := m.exp(m.Op("fneg", neon.D2, m.Op("fabs", neon.D2, margin)))
	zero := m.Zero()
	value = m.add(m.log1p(e), m.Op("fmax", neon.D2, m.sub(zero, margin), zero))
	if !slopes {
		return value, neon.Vec{}
	}
	one := m.number(1)
	share := m.div(one, m.add(e, one))
	slope = m.above(margin, zero, m.mul(e, share), share)
	return value, m.sub(zero, m.mul(slope, y))
}

// exp is that of amd64.
func (m neonNumbers) exp(x neon.Vec) neon.Vec {
	t := m.Op("fmax", neon.D2, x, m.number(-708)) // a NaN stays
	n := m.Op("frintn", neon.D2, m.mul(t, m.number(math.Log2E)))
	m.Into(t, "fmls", neon.D2, n, m.number(ln2High))
	m.Into(t, "fmls", neon.D2, n, m.number(ln2Low))
	p := m.number(1 / factorial(neonDegree))
	for k := neonDegree - 1; k >= 0; k-- {
		c := m.number(1 / factorial(k))
		m.Into(c, "fmla", neon.D2, p, t)
		p = c
	}
	power := m.Op("add", neon.D2, m.Op("fcvtzs", neon.D2, n), m.Bits(neon.D2, 1023))
	return m.mul(p, m.Shifted(neon.D2, power, 52))
}

// log1p is that of amd64.
func (m neonNumbers) log1p(e neon.Vec) neon.Vec {
	limit, half, one := m.number(math.Sqrt2-1), m.number(0.5), m.number(1)
	f := m.above(e, limit, m.mul(m.sub(e, one), half), e)
	high := m.above(e, limit, m.number(ln2High), m.Zero())
	low := m.above(e, limit, m.number(ln2Low), m.Zero())
	q := m.div(f, m.add(f, m.number(2)))
	square := m.mul(q, q)
	fourth := m.mul(square, square)
	c := func(k int) neon.Vec { return m.number(logarithm[k]) }
	odd := m.fma(m.fma(c(5), fourth, c(3)), fourth, c(1)) // of square², square⁴, square⁶
	even := m.fma(m.fma(m.fma(c(6), fourth, c(4)), fourth, c(2)), fourth, c(0))
	r := m.fma(even, square, m.mul(odd, fourth))
	hfsq := m.mul(m.mul(f, f), half)
	r = m.fma(m.add(r, hfsq), q, low) // q·(hfsq + R) + low
	return m.sub(high, m.sub(m.sub(hfsq, r), f))
}
