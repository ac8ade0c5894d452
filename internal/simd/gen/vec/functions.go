package main

// The places of numbers in package vec's mathTable and mathVectors, in its order.
const (
	mOne = iota
	mSign
	mMantissa
	mInf
	mMinusInf
	mNaN
	mExpMost
	mExpLeast
	mLog2E
	mRound
	mMinusLn2
	mBias
	mHalf
	mSqrt2
	mExponent
	mExponentOff
	mLn2
	mTanhSmall
	mMinusTwo
	mErfMost
	mEighth
	mMinusOne
	mExp
	mLog = mExp + expTerms
	mErf = mLog + logTerms

	expTerms, logTerms, erfTerms = 10, 8, 18
)

// maths is arithmetic on variables of float64. The result comes first: y = a + b.
type maths[V any] interface {
	vector() V      // a new variable
	zero() V        // a variable of zeros
	number(i int) V // a variable with a number of mathTable
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
	addInts(y, a, b V)
	shift(y, x V, n int) // by n bits, down for negative n

	negative(x V) V
	magnitude(x V) V
	signOf(x, y V) V // non-negative y with the sign of x

	where(r relation, x, b, a, y V) // sets y to a if x has that relation to b
}

type relation int

const (
	equal relation = iota
	less
	greater
	notLess // or NaN
)

// function is a kernel of a function that is computed in float64, as package vec does in Go.
type function[V any] struct {
	name string
	of   func(m maths[V], x V) V
}

func mathFunctions[V any]() []function[V] {
	return []function[V]{{"exp", exponential[V]}, {"sigmoid", sigmoid[V]}, {"tanh", tanh[V]}, {"erf", erf[V]},
		{"log", logarithm[V]}}
}

func polynomial[V any](m maths[V], x V, first, n int) V {
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

func exponential[V any](m maths[V], x V) V {
	v, t, r := m.vector(), m.vector(), m.vector()
	m.min(v, x, m.number(mExpMost))
	m.max(v, v, m.number(mExpLeast))
	m.move(t, v)
	m.fma(t, m.number(mLog2E), m.at(mRound))
	m.sub(r, t, m.at(mRound))
	m.fma(r, m.number(mMinusLn2), v)
	p := polynomial(m, r, mExp, expTerms)
	m.addInts(t, t, m.at(mBias))
	m.shift(t, t, 52)
	m.mul(p, p, t)
	return p
}

func sigmoid[V any](m maths[V], x V) V {
	t := exponential(m, m.negative(x))
	m.add(t, t, m.at(mOne))
	m.div(t, m.number(mOne), t)
	return t
}

func tanh[V any](m maths[V], x V) V {
	a, y := m.magnitude(x), m.vector()
	m.mul(y, a, m.at(mMinusTwo))
	t := exponential(m, y)
	one := m.number(mOne)
	m.add(y, t, one)
	m.sub(t, one, t)
	m.div(t, t, y)
	m.where(less, a, m.number(mTanhSmall), a, t)
	return m.signOf(x, t)
}

func erf[V any](m maths[V], x V) V {
	a, u := m.magnitude(x), m.vector()
	m.min(a, a, m.number(mErfMost))
	m.mul(u, a, a)
	m.fma(u, m.number(mEighth), m.at(mMinusOne))
	p := polynomial(m, u, mErf, erfTerms)
	m.mul(p, p, a)
	return m.signOf(x, p)
}

func logarithm[V any](m maths[V], x V) V {
	e, v, half, t := m.vector(), m.vector(), m.vector(), m.vector()
	m.shift(e, x, -52)
	m.or(e, m.number(mExponent), e)
	m.sub(e, e, m.at(mExponentOff))
	one := m.number(mOne)
	m.and(v, m.number(mMantissa), x)
	m.or(v, one, v)
	root := m.number(mSqrt2)
	m.mul(half, v, m.at(mHalf))
	m.add(t, e, one)
	m.where(greater, v, root, t, e)
	m.where(greater, v, root, half, v)

	q := m.vector()
	m.add(q, v, one)
	m.sub(v, v, one)
	m.div(v, v, q)
	m.mul(q, v, v)
	p := polynomial(m, q, mLog, logTerms)
	m.add(v, v, v)
	m.mul(v, v, p)
	m.fma(e, m.number(mLn2), v)

	zero := m.zero()
	m.where(equal, x, zero, m.number(mMinusInf), e)
	m.where(less, x, zero, m.number(mNaN), e)
	m.where(notLess, x, m.number(mInf), x, e)
	return e
}
