package main

import (
	"fmt"
	"math"
)

// maths is arithmetic on variables of type V, for either set of instructions. Numbers have names in memory.
type maths[V any] interface {
	number(name string, x float64) V // the last operand of one operation or more
	copy(x V) V                      // in a variable
	zero() V

	add(a, b V) V
	sub(a, b V) V
	mul(a, b V) V
	div(a, b V) V
	atLeast(x V, name string, least float64) V // NaN if x is
	minusAbs(x V) V
	negativePart(x V) (part, zero V) // max(−x, 0), NaN if x is, and 0
	above(x, y, a, b V) V            // a if x > y, otherwise b

	plus(y, x V)        // y = y + x
	minus(y, x V)       // y = y − x
	from(y, x V)        // y = x − y
	fma(y, a, b V)      // y = y·a + b
	addTimes(y, a, b V) // y = y + a·b
	subTimes(y, a, b V) // y = y − a·b
	round(y V)          // to an integer
	scaled(x, n V) V    // x·2ⁿ, in the register of either
}

// loss computes the loss of a prediction z for a target y, and its slope if requested.
type loss[V any] struct {
	name string
	of   func(m maths[V], z, y V, slopes bool) (value, slope V)
}

func losses[V any]() []loss[V] { return []loss[V]{{"squares", squares[V]}, {"logistic", logistic[V]}} }

func squares[V any](m maths[V], z, y V, _ bool) (value, slope V) {
	slope = m.sub(z, y)
	return m.mul(m.mul(slope, slope), m.number("half", 0.5)), slope
}

// logistic is log(1 + e) + max(−m, 0) of the margin m = yz, with e = exp(−|m|).
func logistic[V any](m maths[V], z, y V, slopes bool) (value, slope V) {
	margin := m.mul(y, z)
	e := exp(m, m.minusAbs(margin))
	above, zero := m.negativePart(margin)
	value = m.add(log1p(m, e), above)
	if !slopes {
		return value, slope
	}
	one := m.copy(m.number("one", 1))
	share := m.div(one, m.add(e, one))
	slope = m.above(margin, zero, m.mul(e, share), share)
	slope = m.mul(slope, y)
	m.from(slope, zero)
	return value, slope
}

// exp is e^x for x ≤ 0, by x = n ln 2 + r and a polynomial of r. It limits x to −708, so that e^x is a normal number.
func exp[V any](m maths[V], x V) V {
	t := m.atLeast(x, "least", -708)
	n := m.mul(t, m.number("log2e", math.Log2E))
	m.round(n)
	m.subTimes(t, n, m.number("ln2High", ln2High))
	m.subTimes(t, n, m.number("ln2Low", ln2Low))
	const degree = 13
	factorial := 1.0
	coefficients := make([]V, degree+1)
	for k := range coefficients {
		if k > 1 {
			factorial *= float64(k)
		}
		coefficients[k] = m.number(fmt.Sprintf("taylor%d", k), 1/factorial)
	}
	p := m.copy(coefficients[degree])
	for k := degree - 1; k >= 0; k-- {
		m.fma(p, t, coefficients[k])
	}
	return m.scaled(p, n)
}

// The parts of ln 2 and the coefficients of the logarithm are those of FreeBSD's e_log.c.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

var logarithm = []float64{
	6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
	1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
}

// log1p is log(1 + e) for e in [0, 1], by 1 + e = 2^k (1 + f) with 1 + f from √½ to √2, and s = f/(2 + f).
func log1p[V any](m maths[V], e V) V {
	limit := m.copy(m.number("limit", math.Sqrt2-1))
	half := m.number("half", 0.5)
	one := m.copy(m.number("one", 1))
	f := m.above(e, limit, m.mul(m.sub(e, one), half), e)
	high := m.above(e, limit, m.copy(m.number("ln2High", ln2High)), m.zero())
	low := m.above(e, limit, m.copy(m.number("ln2Low", ln2Low)), m.zero())
	q := m.div(f, m.add(f, m.copy(m.number("two", 2))))
	square := m.mul(q, q)
	fourth := m.mul(square, square)
	c := func(k int) V { return m.number(fmt.Sprintf("logarithm%d", k), logarithm[k]) }
	odd := m.copy(c(5)) // of square², square⁴, square⁶
	m.fma(odd, fourth, c(3))
	m.fma(odd, fourth, c(1))
	even := m.copy(c(6))
	m.fma(even, fourth, c(4))
	m.fma(even, fourth, c(2))
	m.fma(even, fourth, c(0))
	r := m.mul(odd, fourth)
	m.addTimes(r, square, even)
	hfsq := m.mul(m.mul(f, f), half)
	m.plus(r, hfsq)
	m.fma(r, q, low) // q·(hfsq + R) + low
	m.from(r, hfsq)
	m.minus(r, f)
	return m.sub(high, r)
}
