package vec

import "math"

// Functions has the kernels of expressions. Arithmetic is that of float32. Exp, Tanh, Erf and Sigmoid are computed in
// float32 by multiply-adds that round once, and err by up to 1, 1.6, 5.3 and 2.5 units of the last place; Log is
// computed in float64. A truth value has all bits of an element set, or none.
type Functions struct {
	Neg, Sqrt, Exp, Log, Tanh, Erf, Sigmoid func(dst, x []float32)

	Sub, Mul, Div func(dst, a, b []float32)
	// Min and Max are NaN if an operand is; −0 is below 0.
	Min, Max func(dst, a, b []float32)
	// Less, LessEqual and Equal are truth values: a < b, a ≤ b and a = b.
	Less, LessEqual, Equal func(dst, a, b []float32)
	// If is a if the truth value c holds, otherwise b.
	If func(dst, c, a, b []float32)

	// The functions of activations and their gradients. Hardswish and ReLU6 have the bits of the same operations one
	// after the other. SiLU has its value at −88, about −5e-37, below it, also at −∞. GELU errs by up to 2.1e-7 of |x|,
	// its gradient by up to 2.4e-7 of |dy|.
	SiLU, Hardswish, ReLU6, GELU                 func(dst, x []float32)
	SiLUGrad, HardswishGrad, ReLU6Grad, GELUGrad func(dst, x, dy []float32)

	// Uniforms sets dst to the random numbers that package expr defines for a sample, from the given element on.
	Uniforms func(dst []float32, key uint64, step, sample uint32, element int)
}

var plainFunctions = Functions{
	Neg:  each(func(x float32) float32 { return -x }),
	Sqrt: each(func(x float32) float32 { return float32(math.Sqrt(float64(x))) }),
	SiLU: each(silu), Hardswish: each(hardswish), ReLU6: each(relu6), GELU: each(gelu),
	SiLUGrad: both(siluGrad), HardswishGrad: both(hardswishGrad), ReLU6Grad: both(relu6Grad), GELUGrad: both(geluGrad),
	Exp: each(exp), Log: each(log), Tanh: each(tanh), Erf: each(erf), Sigmoid: each(sigmoid),
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

func single(bits uint32) float32 { return math.Float32frombits(bits) }

// The places of numbers in singles and doubles, which package gen has too. The coefficients of polynomials follow, from
// the highest power down.
const (
	sOne       = iota
	sSign      // the bit of the sign
	sMagnitude // the other bits
	sMost      // above it exp is infinite in float32; below its negative exp is 0
	sLeast
	sLog2E
	sRound   // adding and subtracting it rounds a number n to an integer; in between the lowest bits are n + 254
	sLn2High // −ln 2 in two parts, of which the first has 9 bits
	sLn2Low
	sHalf
	sTanhSmall // below it tanh is a polynomial
	sMinusTwo
	sErfMost // from it on erf is 1
	sErfLeast
	sMinusOne
	sThree
	sSix
	sSixth
	sMinusHalf
	sSiLUMost // SiLU takes e⁻ˣ at this x for larger x, and is taken to be constant, about −5e-37, below its negative
	sSiLULeast
	sNormalMost // from it on the normal distribution is 1, and below its negative 0
	sNormalLeast
	sSlopeMost // from it on GELU's slope is 1, and below its negative 0
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
	dOne      = iota
	dMantissa // the bits of the fraction
	dInf
	dMinusInf
	dNaN
	dHalf
	dSqrt2
	dExponent // these bits with an integer below 2^52 as fraction are dExponentOff-1023 above it
	dExponentOff
	dLn2
	dLog

	logTerms = 8
)

// singles has the constants of functions in float32. testdata/functions.py computes the polynomials: of (eˣ−1−x)/x² on
// [−½ ln 2, ½ ln 2], of (tanh x/x−1)/x² in x² on [0, 0.625], and the numerator and denominator in x² of erf x/x,
// of the normal distribution less ½, by x, and of GELU's slope less ½, by x, each with the least largest error.
var singles = [...]float32{
	sOne: 1, sSign: single(1 << 31), sMagnitude: single(1<<31 - 1), sMost: 104, sLeast: -104, sLog2E: math.Log2E,
	sRound: 3<<22 + 254, sLn2High: -0.693359375, sLn2Low: 0.693359375 - math.Ln2, sHalf: .5,
	sTanhSmall: .625, sMinusTwo: -2, sErfMost: 4, sErfLeast: -4, sMinusOne: -1,
	sThree: 3, sSix: 6, sSixth: 1. / 6, sMinusHalf: -.5,
	sSiLUMost: 88, sSiLULeast: -88,
	sNormalMost: 5.449998, sNormalLeast: -5.449998, sSlopeMost: 6.1999984, sSlopeLeast: -6.1999984,

	sExp: 0.001381459639100453, 0.008368717091208067, 0.04166838809254965, 0.16666520629435505, 0.4999999344756069,
	sTanh: -0.005704990413394721, 0.020639090660939812, -0.05373971628073008, 0.13331442215054992,
	-0.3333328194278478,
	sErf: 1.9867859464284265e-06, 0.0002845662529580295, 0.0038833480793982744, 0.05310175195336342,
	0.1935451626777649, 1.1283791065216064,
	sErfDiv: 3.74202209059149e-05, 0.0011855727061629295, 0.015207258053123951, 0.11535002291202545,
	0.5048574805259705, 1,
	sNormal: 2.3064327336896895e-08, 6.354601282509975e-06, 0.00016650919860694557, 0.004663611762225628,
	0.03360703960061073, 0.398942232131958,
	sNormalDiv: 1.2068411479049246e-06, 7.29985476937145e-05, 0.0018713324097916484, 0.028508905321359634,
	0.2509063482284546, 1,
	sSlope: 1.8735109463818844e-08, 1.1254001037741546e-06, 3.416198160266504e-05, 0.0002776018809527159,
	0.01369882095605135, -0.018236471340060234, 0.7978845238685608,
	sSlopeDiv: 1.3763786776976872e-09, 3.964308632475877e-07, 1.1299543984932825e-05, 0.0002643426414579153,
	0.004185693804174662, 0.045662835240364075, 0.31047672033309937, 1,
}

// doubles has the constants of functions in float64. The series of artanh(s)/s in s², for s up to 0.172, ends when
// terms fall below 2⁻³⁷.
var doubles = [...]float64{
	dOne: 1, dMantissa: bit(1<<52 - 1), dInf: math.Inf(1), dMinusInf: math.Inf(-1), dNaN: math.NaN(), dHalf: .5,
	dSqrt2: math.Sqrt2, dExponent: 1 << 52, dExponentOff: 1<<52 + 1023, dLn2: math.Ln2,

	dLog: 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1,
}

// singleVectors and doubleVectors are the tables as the assembly reads them: each number as a vector.
var (
	singleVectors [len(singles)][16]float32
	doubleVectors [len(doubles)][8]float64
)

func init() {
	for i, x := range singles {
		for j := range singleVectors[i] {
			singleVectors[i][j] = x
		}
	}
	for i, x := range doubles {
		for j := range doubleVectors[i] {
			doubleVectors[i][j] = x
		}
	}
}

// fma is x·y + z, rounded once. The sum in float64 takes the odd one of its two neighbours if it is not exact, so that
// rounding it again does no harm.
func fma(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	b := s - p
	if e := (p - (s - b)) + (c - b); (e > 0 || e < 0) && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// polynomial evaluates the polynomial with n coefficients of singles from first on at x.
func polynomial(x float32, first, n int) float32 {
	p := singles[first]
	for _, c := range singles[first+1 : first+n] {
		p = fma(p, x, c)
	}
	return p
}

// byPairs is polynomial in x with its terms in pairs, for z = x².
func byPairs(x, z float32, first, n int) float32 {
	p, i := singles[first], first+1
	if n%2 == 0 {
		p = fma(p, x, singles[i])
		i++
	}
	for ; i < first+n; i += 2 {
		p = fma(p, z, fma(singles[i], x, singles[i+1]))
	}
	return p
}

// exp is 2ⁿeʳ for x = n ln 2 + r, with x limited to 104. The power of 2 is two factors, since it can be below the least
// normal number.
func exp(x float32) float32 {
	if x > singles[sMost] {
		x = singles[sMost]
	}
	if x < singles[sLeast] {
		x = singles[sLeast]
	}
	y, sum := fraction(x) // sum is that of the two factors' exponents
	return (y + 1) * single(sum>>1<<23) * single((sum-sum>>1)<<23)
}

// fraction is y for eˣ = (y + 1)·2ⁿ, and a number whose lowest bits are n + 254.
func fraction(x float32) (y float32, bits uint32) {
	t := fma(x, singles[sLog2E], singles[sRound])
	n := t - singles[sRound]
	r := fma(n, singles[sLn2Low], fma(n, singles[sLn2High], x))
	z := r * r
	p := fma(byPairs(r, z, sExp, expTerms-1), r, singles[sExp+expTerms-1])
	return fma(p, z, r), math.Float32bits(t)
}

// sigmoidDivisor is 1 + e⁻ˣ for x from −88 to 88. One factor 2ⁿ is enough: the least one, for n = −127, is 0, which
// does not change the sum.
func sigmoidDivisor(x float32) float32 {
	y, bits := fraction(0 - x)
	power := single(bits<<23 - math.Float32bits(1))
	return fma(y, power, power) + 1
}

func sigmoid(x float32) float32 {
	t := exp(-abs(x))
	if x < 0 {
		return t / (t + 1)
	}
	return 1 / (t + 1)
}

func tanh(x float32) float32 {
	a := abs(x)
	t := exp(-2 * a)
	y := (1 - t) / (t + 1)
	if a < singles[sTanhSmall] {
		y = fma(polynomial(a*a, sTanh, tanhTerms)*(a*a), a, a)
	}
	return sign(y, x)
}

func erf(x float32) float32 {
	return maximum(minimum(quotient(x, sErfMost, sErfLeast, sErf, erfTerms, erfTerms), 1), -1)
}

func silu(x float32) float32 {
	v := maximum(x, singles[sSiLULeast])
	return v / sigmoidDivisor(minimum(v, singles[sSiLUMost]))
}

func siluGrad(x, dy float32) float32 {
	x = minimum(maximum(x, singles[sSiLULeast]), singles[sSiLUMost])
	t := 1 / sigmoidDivisor(x)
	return float32(dy*t) + float32(float32(x*dy)*float32((1-t)*t))
}

func hardswish(x float32) float32 {
	return minimum(maximum(x+singles[sThree], 0), singles[sSix]) * x * singles[sSixth]
}

func hardswishGrad(x, dy float32) float32 {
	t := x + singles[sThree]
	top := maximum(t, 0)
	y, d := minimum(top, singles[sSix])*dy*singles[sSixth], x*dy*singles[sSixth]
	if t <= 0 || top >= singles[sSix] {
		d = 0
	}
	return float32(y) + float32(d)
}

func relu6(x float32) float32 { return minimum(maximum(x, 0), singles[sSix]) }

func relu6Grad(x, dy float32) float32 {
	if x <= 0 || x >= singles[sSix] {
		return 0
	}
	return dy
}

// gelu is x times the normal distribution.
func gelu(x float32) float32 {
	t := quotient(x, sNormalMost, sNormalLeast, sNormal, normalTerms, normalTerms)
	return (maximum(minimum(t, .5), -.5) + .5) * x
}

func geluGrad(x, dy float32) float32 {
	return (quotient(x, sSlopeMost, sSlopeLeast, sSlope, slopeTerms, slopeDivTerms) + .5) * dy
}

// quotient is c·P(c²)/Q(c²) for x limited to c. The coefficients of P begin at first; those of Q follow.
func quotient(x float32, most, least, first, over, under int) float32 {
	c := minimum(maximum(x, singles[least]), singles[most])
	z := c * c
	w := z * z
	return byPairs(z, w, first, over) * c / byPairs(z, w, first+over, under)
}

func abs(x float32) float32     { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
func sign(y, x float32) float32 { return single(math.Float32bits(y) | math.Float32bits(x)&(1<<31)) }

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
	e := math.Float64frombits(b>>52|math.Float64bits(doubles[dExponent])) - doubles[dExponentOff]
	m := math.Float64frombits(b&(1<<52-1) | math.Float64bits(1))
	if m > doubles[dSqrt2] {
		m, e = m*.5, e+1
	}
	s := (m - 1) / (m + 1)
	w := (s + s) * series(float64(s*s))
	return float32(math.FMA(e, doubles[dLn2], w))
}

// series is the series of artanh(s)/s for z = s²: odd and even powers separately.
func series(z float64) float64 {
	w := float64(z * z)
	odd, even := doubles[dLog], doubles[dLog+1]
	for i := dLog + 2; i < dLog+logTerms; i += 2 {
		odd, even = math.FMA(w, odd, doubles[i]), math.FMA(w, even, doubles[i+1])
	}
	return math.FMA(z, odd, even)
}
