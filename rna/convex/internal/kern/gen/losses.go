package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// losses makes the kernels of losses at the predictions a·z + b·old: their sum and, of some, their slopes.
func (s isa) losses() {
	for _, slopes := range []bool{false, true} {
		s.loss("squares", slopes, s.squares)
		s.loss("logistic", slopes, s.logistic)
	}
}

func (s isa) loss(name string, slopes bool, body func(z, y reg.VecVirtual, slopes bool) (value, slope reg.VecVirtual)) {
	out := ""
	if slopes {
		name, out = name+"Slopes", "slopes, "
	}
	TEXT(name+s.Suffix, NOSPLIT, fmt.Sprintf("func(%sz, old, y *float64, a, b float64, rows int) float64", out))
	Pragma("noescape")
	z, old, y := Load(Param("z"), GP64()), Load(Param("old"), GP64()), Load(Param("y"), GP64())
	var to reg.Register
	if slopes {
		to = Load(Param("slopes"), GP64())
	}
	left := Load(Param("rows"), GP64()).(reg.GPVirtual)
	a, b := s.Scalar("a"), s.Scalar("b")
	total, at := s.Zero(), GP64()
	XORQ(at, at)
	step := func(m *mask) {
		mem := func(base reg.Register) Mem { return Mem{Base: base, Index: at, Scale: 1} }
		p := s.Mul(s.Load(mem(z), m), a)
		VFMADD231PD(s.Load(mem(old), m), b, p)
		value, slope := body(p, s.Load(mem(y), m), slopes)
		switch {
		case m == nil:
			VADDPD(value, total, total)
		case s.Masks:
			VADDPD(value, total, m.Opmask(), total)
		default:
			VADDPD(s.and(value, m.Vector()), total, total)
		}
		if slopes {
			s.Store(slope, mem(to), m)
		}
	}
	Label("loop")
	SUBQ(Imm(uint64(s.Lanes)), left)
	JL(LabelRef("rest"))
	step(nil)
	ADDQ(Imm(uint64(s.Bytes())), at)
	JMP(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(s.Lanes)), left)
	JZ(LabelRef("done"))
	step(s.First(left))
	Label("done")
	Store(s.sum(total).AsX(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func (s isa) squares(z, y reg.VecVirtual, _ bool) (value, slope reg.VecVirtual) {
	slope = s.Sub(z, y)
	return s.Mul(s.Mul(slope, slope), s.Number("half", 0.5)), slope
}

// logistic is log(1 + e) + max(−m, 0) of the margin m = yz, with e = exp(−|m|).
func (s isa) logistic(z, y reg.VecVirtual, slopes bool) (value, slope reg.VecVirtual) {
	margin := s.Mul(y, z)
	e := s.exp(s.minusAbs(margin))
	minus, zero, above := s.Vector(), s.Zero(), s.Vector()
	VSUBPD(margin, zero, minus)
	VMAXPD(minus, zero, above) // NaN where the margin is
	value = s.Add(s.log1p(e), above)
	if !slopes {
		return value, nil
	}
	one := s.copy(s.Number("one", 1))
	share := s.Div(one, s.Add(e, one))
	slope = s.choose(greaterThan, margin, zero, s.Mul(e, share), share)
	slope = s.Mul(slope, y)
	VSUBPD(slope, zero, slope)
	return value, slope
}

func (s isa) minusAbs(x reg.VecVirtual) reg.VecVirtual {
	out := s.Vector()
	sign := s.Constant("sign", func(int) uint64 { return 1 << 63 })
	if s.Masks {
		VPORQ(sign, x, out)
	} else {
		VORPD(sign, x, out)
	}
	return out
}

// exp is e^x for x ≤ 0, of at least the smallest normal number, by x = n ln 2 + r and a polynomial of r.
func (s isa) exp(x reg.VecVirtual) reg.VecVirtual {
	t := s.Vector()
	VMAXPD(x, s.copy(s.Number("least", -708)), t) // NaN where x is
	n := s.Mul(t, s.Number("log2e", math.Log2E))
	const nearest = 8
	if s.Masks {
		VRNDSCALEPD(Imm(nearest), n, n)
	} else {
		VROUNDPD(Imm(nearest), n, n)
	}
	VFNMADD231PD(s.Number("ln2High", ln2High), n, t)
	VFNMADD231PD(s.Number("ln2Low", ln2Low), n, t)
	const degree = 13
	factorial := 1.0
	coefficients := make([]Mem, degree+1)
	for k := range coefficients {
		if k > 1 {
			factorial *= float64(k)
		}
		coefficients[k] = s.Number(fmt.Sprintf("taylor%d", k), 1/factorial)
	}
	p := s.copy(coefficients[degree])
	for k := degree - 1; k >= 0; k-- {
		VFMADD213PD(coefficients[k], t, p)
	}
	if s.Masks {
		VSCALEFPD(n, p, p)
		return p
	}
	power := YMM()
	VCVTPD2DQY(n, n.AsX())
	VPMOVSXDQ(n.AsX(), power)
	VPADDQ(s.Constant("bias", func(int) uint64 { return 1023 }), power, power)
	VPSLLQ(Imm(52), power, power)
	VMULPD(power, p, p)
	return p
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
func (s isa) log1p(e reg.VecVirtual) reg.VecVirtual {
	limit := s.copy(s.Number("limit", math.Sqrt2-1))
	half := s.Number("half", 0.5)
	one := s.copy(s.Number("one", 1))
	f := s.choose(greaterThan, e, limit, s.Mul(s.Sub(e, one), half), e)
	high := s.choose(greaterThan, e, limit, s.copy(s.Number("ln2High", ln2High)), s.Zero())
	low := s.choose(greaterThan, e, limit, s.copy(s.Number("ln2Low", ln2Low)), s.Zero())
	q := s.Div(f, s.Add(f, s.copy(s.Number("two", 2))))
	square := s.Mul(q, q)
	fourth := s.Mul(square, square)
	c := func(k int) Mem { return s.Number(fmt.Sprintf("logarithm%d", k), logarithm[k]) }
	odd := s.copy(c(5)) // of square², square⁴, square⁶
	VFMADD213PD(c(3), fourth, odd)
	VFMADD213PD(c(1), fourth, odd)
	even := s.copy(c(6))
	VFMADD213PD(c(4), fourth, even)
	VFMADD213PD(c(2), fourth, even)
	VFMADD213PD(c(0), fourth, even)
	r := s.Mul(odd, fourth)
	VFMADD231PD(even, square, r)
	hfsq := s.Mul(s.Mul(f, f), half)
	VADDPD(hfsq, r, r)
	VFMADD213PD(low, q, r) // q·(hfsq + R) + low
	VSUBPD(r, hfsq, r)
	VSUBPD(f, r, r)
	return s.Sub(high, r)
}
