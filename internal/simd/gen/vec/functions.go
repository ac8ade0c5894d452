package main

// The places of numbers in package vec's single and double tables, in their order.
const (
	sOne = iota
	sSign
	sMagnitude
	sMost
	sLeast
	sLog2E
	sRound
	sLn2High
	sLn2Low
	sHalf
	sTanhSmall
	sMinusTwo
	sErfMost
	sErfLeast
	sMinusOne
	sThree
	sSix
	sSixth
	sMinusHalf
	sSiLUMost
	sSiLULeast
	sNormalMost
	sNormalLeast
	sSlopeMost
	sSlopeLeast
	sExp
	sTanh      = sExp + expTerms
	sErf       = sTanh + tanhTerms
	sErfDiv    = sErf + erfTerms
	sNormal    = sErfDiv + erfTerms
	sNormalDiv = sNormal + normalTerms
	sSlope     = sNormalDiv + normalTerms
	sSlopeDiv  = sSlope + slopeTerms

	expTerms, tanhTerms, erfTerms, normalTerms, slopeTerms, slopeDivTerms = 5, 5, 6, 6, 7, 8
)

const (
	dOne = iota
	dMantissa
	dInf
	dMinusInf
	dNaN
	dHalf
	dSqrt2
	dExponent
	dExponentOff
	dLn2
	dLog

	logTerms = 8
)

// maths is arithmetic on variables of float32 or of float64. The result comes first: y = a + b.
type maths[V any] interface {
	vector() V      // a new variable
	zero() V        // a variable of zeros
	number(i int) V // a variable with a number of the table
	at(i int) V     // that number, as the last operand

	add(y, a, b V)
	sub(y, a, b V)
	mul(y, a, b V)
	div(y, a, b V)
	min(y, a, b V) // a if that is NaN
	max(y, a, b V)
	fma(y, a, b V) // y = y·a + b
	move(y, x V)

	and(y, a, b V) // of bits
	or(y, a, b V)
	subInts(y, a, b V)
	shift(y, x V, n int) // by n bits, down for negative n
	power(y, n, t V)     // y = (y + 1)·2ⁿ for an integer n of exponential, with t = n + the number sRound

	where(r relation, x, b, a, y V) // sets y to a if x has that relation to b
}

type relation int

const (
	equal relation = iota
	less
	greater
	lessEqual
	greaterEqual
	notLess // or NaN
)

// function is a kernel of a function of one number, computed as package vec does in Go.
type function[V any] struct {
	name string
	of   func(m maths[V], x V) V
}

// singles are the functions that are computed in float32, doubles those in float64.
func singles[V any]() []function[V] {
	return []function[V]{{"exp", exponential[V]}, {"sigmoid", sigmoid[V]}, {"tanh", tanh[V]}, {"erf", erf[V]}}
}

func doubles[V any]() []function[V] { return []function[V]{{"log", logarithm[V]}} }

// fusion is an expression of one pass.
type fusion[V any] struct {
	name, operands string
	normalized     string // the kernel that applies it to a normalised x, if any
	of             func(m maths[V], in []V) V
}

// fused are hardswish, ReLU6 and their gradients with the bits of package mapping's patterns, and SiLU, GELU and their
// gradients by formulas of their own.
func fused[V any]() []fusion[V] {
	return []fusion[V]{
		{"silu", "x", "normalizeSiLU", func(m maths[V], in []V) V {
			v, y := m.vector(), m.vector()
			m.max(v, in[0], m.number(sSiLULeast))
			m.min(y, v, m.number(sSiLUMost))
			d := sigmoidDivisor(m, y)
			m.div(y, v, d)
			return y
		}},
		{"siluGrad", "x dy", "normalizeSiLUGrad", func(m maths[V], in []V) V {
			x, dy, y, d, t := m.vector(), in[1], m.vector(), m.vector(), m.vector()
			m.max(x, in[0], m.number(sSiLULeast))
			m.min(x, x, m.number(sSiLUMost))
			m.div(t, m.number(sOne), sigmoidDivisor(m, x))
			m.mul(y, dy, t)
			m.sub(d, m.number(sOne), t)
			m.mul(d, d, t)
			m.mul(t, x, dy)
			m.mul(t, t, d)
			m.add(y, y, t)
			return y
		}},
		{"hardswish", "x", "normalizeHardswish", func(m maths[V], in []V) V {
			y := m.vector()
			m.add(y, in[0], m.at(sThree))
			m.max(y, y, m.zero())
			m.min(y, y, m.number(sSix))
			m.mul(y, y, in[0])
			m.mul(y, y, m.at(sSixth))
			return y
		}},
		{"hardswishGrad", "x dy", "normalizeHardswishGrad", func(m maths[V], in []V) V {
			x, dy, t, top, y, d, zero := in[0], in[1], m.vector(), m.vector(), m.vector(), m.vector(), m.zero()
			m.add(t, x, m.at(sThree))
			m.max(top, t, zero)
			m.min(y, top, m.number(sSix))
			m.mul(y, y, dy)
			m.mul(y, y, m.at(sSixth))
			m.mul(d, x, dy)
			m.mul(d, d, m.at(sSixth))
			m.where(greaterEqual, top, m.number(sSix), zero, d)
			m.where(lessEqual, t, zero, zero, d)
			m.add(y, y, d)
			return y
		}},
		{"gelu", "x", "", func(m maths[V], in []V) V {
			y := quotient(m, in[0], sNormalMost, sNormalLeast, sNormal, normalTerms, normalTerms)
			m.min(y, y, m.number(sHalf))
			m.max(y, y, m.number(sMinusHalf))
			m.add(y, y, m.at(sHalf))
			m.mul(y, y, in[0])
			return y
		}},
		{"geluGrad", "x dy", "", func(m maths[V], in []V) V {
			y := quotient(m, in[0], sSlopeMost, sSlopeLeast, sSlope, slopeTerms, slopeDivTerms)
			m.add(y, y, m.at(sHalf))
			m.mul(y, y, in[1])
			return y
		}},
		{"relu6", "x", "normalizeReLU6", func(m maths[V], in []V) V {
			y, zero := m.vector(), m.zero()
			m.max(y, in[0], zero)
			m.min(y, y, m.number(sSix))
			m.add(y, y, zero) // −0 becomes 0
			return y
		}},
		{"relu6Grad", "x dy", "normalizeReLU6Grad", func(m maths[V], in []V) V {
			y, zero := in[1], m.zero()
			m.where(greaterEqual, in[0], m.number(sSix), zero, y)
			m.where(lessEqual, in[0], zero, zero, y)
			return y
		}},
	}
}

// waysOf are the ways of a fusion's kernel of a normalised x. Gradients overwrite an operand, so they never store past
// the caches.
func (f fusion[V]) waysOf(ways []string) []string {
	if f.normalized == "" {
		return nil
	}
	if f.operands != "x" {
		return ways[:1]
	}
	return ways
}

// polynomial evaluates the polynomial with n coefficients from first on at x.
func polynomial[V any](m maths[V], x V, first, n int) V {
	p := m.number(first)
	for i := first + 1; i < first+n; i++ {
		m.fma(p, x, m.at(i))
	}
	return p
}

// byPairs is polynomial in x with its terms in pairs, for z = x²: a chain of multiply-adds would be longer than the
// processor's window hides.
func byPairs[V any](m maths[V], x, z V, first, n int) V {
	p, i := m.number(first), first+1
	if n%2 == 0 {
		m.fma(p, x, m.at(i))
		i++
	}
	for ; i < first+n; i += 2 {
		q := m.number(i)
		m.fma(q, x, m.at(i+1))
		m.fma(p, z, q)
	}
	return p
}

// byHalves is polynomial with odd and even powers separately, for even n.
func byHalves[V any](m maths[V], x V, first, n int) V {
	z := m.vector()
	m.mul(z, x, x)
	odd, even := m.number(first), m.number(first+1)
	for i := first + 2; i < first+n; i += 2 {
		m.fma(odd, z, m.at(i))
		m.fma(even, z, m.at(i+1))
	}
	m.fma(odd, x, even)
	return odd
}

func magnitude[V any](m maths[V], x V) V {
	a := m.vector()
	m.and(a, m.number(sMagnitude), x)
	return a
}

// signed is y, which has no sign, with the sign of x.
func signed[V any](m maths[V], x, y V) V {
	sign := m.vector()
	m.and(sign, m.number(sSign), x)
	m.or(y, sign, y)
	return y
}

func exponential[V any](m maths[V], x V) V {
	v := m.vector()
	m.min(v, x, m.number(sMost))
	return expUpTo104(m, v)
}

// expUpTo104 is exponential for x up to 104.
func expUpTo104[V any](m maths[V], x V) V {
	v := m.vector()
	m.max(v, x, m.number(sLeast))
	p, n, t := fraction(m, v)
	m.power(p, n, t)
	return p
}

// sigmoidDivisor is 1 + e⁻ˣ for x from −88 to 88. One factor 2ⁿ is enough: the least one, for n = −127, is 0, which
// does not change the sum.
func sigmoidDivisor[V any](m maths[V], x V) V {
	v, k, one := m.vector(), m.vector(), m.number(sOne)
	m.sub(v, m.zero(), x)
	p, _, t := fraction(m, v)
	m.shift(k, t, 23)
	m.subInts(k, k, one)
	m.fma(p, k, k)
	m.add(p, p, one)
	return p
}

// fraction returns p, n and t, which is n + the number sRound, with eᵛ = (p + 1)·2ⁿ. It overwrites v.
func fraction[V any](m maths[V], v V) (p, n, t V) {
	r, z := m.vector(), m.vector()
	n, t = m.vector(), m.vector()
	m.move(t, v)
	m.fma(t, m.number(sLog2E), m.at(sRound))
	m.sub(n, t, m.at(sRound))
	m.move(r, n)
	m.fma(r, m.number(sLn2High), v)
	m.move(v, n)
	m.fma(v, m.number(sLn2Low), r)
	m.mul(z, v, v)
	p = byPairs(m, v, z, sExp, expTerms-1)
	m.fma(p, v, m.at(sExp+expTerms-1))
	m.fma(p, z, v)
	return p, n, t
}

// byPowers computes (y + 1)·2ⁿ with two factors, since 2ⁿ can be below the least normal number. The first is a normal
// number and leaves the sum's rounding as it is. The lowest bits of t, which is n + the number sRound, hold n + 254:
// the sum of both factors' exponents.
func byPowers[V any](m maths[V], y, t V) {
	h, k := m.vector(), m.vector()
	m.shift(h, t, -1)
	m.subInts(k, t, h)
	m.shift(h, h, 23)
	m.shift(k, k, 23)
	m.fma(y, h, h)
	m.mul(y, y, k)
}

func sigmoid[V any](m maths[V], x V) V {
	a, y := m.vector(), m.vector()
	m.or(a, m.number(sSign), x)
	t := expUpTo104(m, a)
	one := m.number(sOne)
	m.add(a, t, one)
	m.move(y, one)
	m.where(less, x, m.zero(), t, y)
	m.div(y, y, a)
	return y
}

func tanh[V any](m maths[V], x V) V {
	a, y := magnitude(m, x), m.vector()
	m.mul(y, a, m.at(sMinusTwo))
	t := expUpTo104(m, y)
	one := m.number(sOne)
	m.add(y, t, one)
	m.sub(t, one, t)
	m.div(t, t, y)
	m.mul(y, a, a)
	p := polynomial(m, y, sTanh, tanhTerms)
	m.mul(p, p, y)
	m.fma(p, a, a)
	m.where(less, a, m.number(sTanhSmall), p, t)
	return signed(m, x, t)
}

func erf[V any](m maths[V], x V) V {
	y := quotient(m, x, sErfMost, sErfLeast, sErf, erfTerms, erfTerms)
	m.min(y, y, m.number(sOne))
	m.max(y, y, m.number(sMinusOne))
	return y
}

// quotient is c·P(c²)/Q(c²) for x limited to c. The coefficients of P begin at first; those of Q follow.
func quotient[V any](m maths[V], x V, most, least, first, over, under int) V {
	c, z, w := m.vector(), m.vector(), m.vector()
	m.max(c, x, m.number(least))
	m.min(c, c, m.number(most))
	m.mul(z, c, c)
	m.mul(w, z, z)
	p := byPairs(m, z, w, first, over)
	q := byPairs(m, z, w, first+over, under)
	m.mul(p, p, c)
	m.div(p, p, q)
	return p
}

func logarithm[V any](m maths[V], x V) V {
	e, v, half, t := m.vector(), m.vector(), m.vector(), m.vector()
	m.shift(e, x, -52)
	m.or(e, m.number(dExponent), e)
	m.sub(e, e, m.at(dExponentOff))
	one := m.number(dOne)
	m.and(v, m.number(dMantissa), x)
	m.or(v, one, v)
	root := m.number(dSqrt2)
	m.mul(half, v, m.at(dHalf))
	m.add(t, e, one)
	m.where(greater, v, root, t, e)
	m.where(greater, v, root, half, v)

	q := m.vector()
	m.add(q, v, one)
	m.sub(v, v, one)
	m.div(v, v, q)
	m.mul(q, v, v)
	p := byHalves(m, q, dLog, logTerms)
	m.add(v, v, v)
	m.mul(v, v, p)
	m.fma(e, m.number(dLn2), v)

	zero := m.zero()
	m.where(equal, x, zero, m.number(dMinusInf), e)
	m.where(less, x, zero, m.number(dNaN), e)
	m.where(notLess, x, m.number(dInf), x, e)
	return e
}
