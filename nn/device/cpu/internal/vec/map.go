package vec

import "math"

// Functions has the kernels of expressions. Arithmetic is that of float32. Exp and the functions after it are computed
// in float64, by multiply-adds that round once, and rounded to float32: they are within 0.51 ulp. A truth value has all
// bits of an element set, or none.
type Functions struct {
	Neg, Sqrt, Exp, Log, Tanh, Erf, Sigmoid func(dst, x []float32)

	Sub, Mul, Div func(dst, a, b []float32)
	// Min and Max are NaN if an operand is; −0 is below 0.
	Min, Max func(dst, a, b []float32)
	// Less, LessEqual and Equal are truth values: a < b, a ≤ b and a = b.
	Less, LessEqual, Equal func(dst, a, b []float32)
	// If is a if the truth value c holds, otherwise b.
	If func(dst, c, a, b []float32)

	// Uniforms sets dst to the random numbers that package expr defines for a sample, from the given element on.
	Uniforms func(dst []float32, key uint64, step, sample uint32, element int)
}

var plainFunctions = Functions{
	Neg:  each(func(x float32) float32 { return -x }),
	Sqrt: each(func(x float32) float32 { return float32(math.Sqrt(float64(x))) }),
	Exp:  each(exp), Log: each(log), Tanh: each(tanh), Erf: each(erf), Sigmoid: each(sigmoid),
	Sub: both(func(a, b float32) float32 { return a - b }), Mul: both(func(a, b float32) float32 { return a * b }),
	Div: both(func(a, b float32) float32 { return a / b }),
	Min: both(minimum), Max: both(maximum),
	Less:      both(func(a, b float32) float32 { return truth(a < b) }),
	LessEqual: both(func(a, b float32) float32 { return truth(a <= b) }),
	Equal:     both(func(a, b float32) float32 { return truth(a == b) }),
	If:        choose,
	Uniforms:  uniforms,
}

func each(f func(x float32) float32) func(dst, x []float32) {
	return func(dst, x []float32) {
		x = x[:len(dst)]
		for i, v := range x {
			dst[i] = f(v)
		}
	}
}

func both(f func(a, b float32) float32) func(dst, a, b []float32) {
	return func(dst, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i, v := range a {
			dst[i] = f(v, b[i])
		}
	}
}

func truth(t bool) float32 {
	if t {
		return math.Float32frombits(1<<32 - 1)
	}
	return 0
}

func choose(dst, c, a, b []float32) {
	c, a, b = c[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i, t := range c {
		if math.Float32bits(t)>>31 != 0 {
			dst[i] = a[i]
		} else {
			dst[i] = b[i]
		}
	}
}

func minimum(a, b float32) float32 {
	switch {
	case a < b:
		return a
	case b < a:
		return b
	case a != b:
		return a + b // a NaN
	}
	return math.Float32frombits(math.Float32bits(a) | math.Float32bits(b))
}

func maximum(a, b float32) float32 {
	switch {
	case a > b:
		return a
	case b > a:
		return b
	case a != b:
		return a + b
	}
	return math.Float32frombits(math.Float32bits(a) & math.Float32bits(b))
}

// bit is a number with the given bits.
func bit(bits uint64) float64 { return math.Float64frombits(bits) }

// The places of numbers in mathTable, which package gen has too. The coefficients of polynomials follow, from the
// highest power down: of expTerms, logTerms and erfTerms powers.
const (
	mOne      = iota
	mSign     // the bit of the sign
	mMantissa // the bits of the fraction
	mInf
	mMinusInf
	mNaN
	mExpMost // above it exp is infinite in float32; below its negative exp is 0
	mExpLeast
	mLog2E
	mRound // adding and subtracting it rounds a number to an integer, held in the lowest bits in between
	mMinusLn2
	mBias // of exponents, as an integer
	mHalf
	mSqrt2
	mExponent // these bits with an integer below 2^52 as fraction are mExponentOff-1023 above it
	mExponentOff
	mLn2
	mTanhSmall // up to it tanh x is x
	mMinusTwo
	mErfMost // from it on erf is 1
	mEighth
	mMinusOne
	mExp
	mLog = mExp + expTerms
	mErf = mLog + logTerms

	expTerms, logTerms, erfTerms = 10, 8, 18
)

// mathTable has the constants of Functions. The series of eˣ on [−½ ln 2, ½ ln 2] and of artanh(s)/s in s², for s up to
// 0.172, end when terms fall below 2⁻³⁷; testdata/erf.py computes the polynomial of erf x/x in x²/8 − 1 on [−1, 1].
var mathTable = [...]float64{
	mOne: 1, mSign: math.Copysign(0, -1), mMantissa: bit(1<<52 - 1), mInf: math.Inf(1), mMinusInf: math.Inf(-1),
	mNaN:     math.NaN(),
	mExpMost: 104, mExpLeast: -104, mLog2E: math.Log2E, mRound: 3 << 51, mMinusLn2: -math.Ln2, mBias: bit(1023),
	mHalf: .5, mSqrt2: math.Sqrt2, mExponent: 1 << 52, mExponentOff: 1<<52 + 1023, mLn2: math.Ln2,
	mTanhSmall: 1. / (1 << 13), mMinusTwo: -2, mErfMost: 4, mEighth: 1. / 8, mMinusOne: -1,

	mExp: 1. / 362880, 1. / 40320, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1,
	mLog: 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1,
	mErf: -0.0002375303008633824, 0.0005955966060005109, -0.00036323960546510515, 0.0006199186266208,
	-0.0028438421375724847, 0.005571999462168701, -0.008445061534000995, 0.013912674213802432,
	-0.022530380754105718, 0.03321488463790601, -0.04575393377883074, 0.05985653048124558, -0.07472896226500954,
	0.09021197583802171, -0.1077104012536239, 0.13167500462304274, -0.17657623355634394, 0.35353099633699614,
}

// mathVectors is mathTable as the assembly reads it: each number as a vector.
var mathVectors = func() (v [len(mathTable)][8]float64) {
	for i, x := range mathTable {
		for j := range v[i] {
			v[i][j] = x
		}
	}
	return v
}()

// polynomial evaluates the polynomial with n coefficients of mathTable from first on at x, with n even: odd powers and
// even powers separately.
func polynomial(x float64, first, n int) float64 {
	z := float64(x * x)
	odd, even := mathTable[first], mathTable[first+1]
	for i := first + 2; i < first+n; i += 2 {
		odd, even = math.FMA(z, odd, mathTable[i]), math.FMA(z, even, mathTable[i+1])
	}
	return math.FMA(x, odd, even)
}

// exponential is eˣ, with x limited to 104.
func exponential(x float64) float64 {
	if x > mathTable[mExpMost] {
		x = mathTable[mExpMost]
	}
	if x < mathTable[mExpLeast] {
		x = mathTable[mExpLeast]
	}
	t := math.FMA(x, mathTable[mLog2E], mathTable[mRound])
	r := math.FMA(t-mathTable[mRound], mathTable[mMinusLn2], x)
	return polynomial(r, mExp, expTerms) * math.Float64frombits((math.Float64bits(t)+1023)<<52)
}

func exp(x float32) float32 { return float32(exponential(float64(x))) }

func sigmoid(x float32) float32 { return float32(1 / (1 + exponential(-float64(x)))) }

func tanh(x float32) float32 {
	a := math.Abs(float64(x))
	t := exponential(-2 * a)
	y := (1 - t) / (1 + t)
	if a < mathTable[mTanhSmall] {
		y = a
	}
	return float32(math.Copysign(y, float64(x)))
}

func erf(x float32) float32 {
	a := math.Abs(float64(x))
	if a > mathTable[mErfMost] {
		a = mathTable[mErfMost]
	}
	y := a * polynomial(math.FMA(float64(a*a), mathTable[mEighth], mathTable[mMinusOne]), mErf, erfTerms)
	return float32(math.Copysign(y, float64(x)))
}

// log is e ln 2 + ln m for x = 2ᵉ m with m between √½ and √2, and ln m = 2 artanh s with s = (m−1)/(m+1).
func log(x float32) float32 {
	v := float64(x)
	switch {
	case !(v < math.Inf(1)):
		return x
	case v == 0:
		return float32(math.Inf(-1))
	case v < 0:
		return float32(math.NaN())
	}
	b := math.Float64bits(v)
	e := math.Float64frombits(b>>52|math.Float64bits(mathTable[mExponent])) - mathTable[mExponentOff]
	m := math.Float64frombits(b&(1<<52-1) | math.Float64bits(1))
	if m > mathTable[mSqrt2] {
		m, e = m*.5, e+1
	}
	s := (m - 1) / (m + 1)
	w := (s + s) * polynomial(float64(s*s), mLog, logTerms)
	return float32(math.FMA(e, mathTable[mLn2], w))
}
