package expr

import "math"

// fold computes a function of constants. ok is false if one is none.
func fold(k Kind, args ...Expr) (e Expr, ok bool) {
	var v [3]float64
	for i, a := range args {
		if v[i], ok = a.constant(); !ok {
			return e, false
		}
	}
	return Const(k.Compute(v[0], v[1])), true
}

// Compute is the meaning of the functions of one number, a, and of two that give a number.
func (k Kind) Compute(a, b float64) float64 {
	switch k {
	case KindNeg:
		return -a
	case KindAdd:
		return a + b
	case KindSub:
		return a - b
	case KindMul:
		return a * b
	case KindDiv:
		return a / b
	case KindMin:
		return min(a, b)
	case KindMax:
		return max(a, b)
	case KindExp:
		return math.Exp(a)
	case KindLog:
		return math.Log(a)
	case KindSqrt:
		return math.Sqrt(a)
	case KindTanh:
		return math.Tanh(a)
	case KindErf:
		return math.Erf(a)
	case KindSigmoid:
		return 1 / (1 + math.Exp(-a))
	}
	panic("expr: " + k.String() + " gives no number")
}

// Holds is the meaning of the comparisons.
func (k Kind) Holds(a, b float64) bool {
	switch k {
	case KindLess:
		return a < b
	case KindLessEqual:
		return a <= b
	}
	return a == b
}

// Neg is −a.
func (a Expr) Neg() Expr {
	switch n := a.node(); n.kind {
	case KindNeg:
		return n.args[0]
	case KindSub:
		return n.args[1].Sub(n.args[0])
	case KindMul:
		if c, ok := n.args[1].constant(); ok {
			return n.args[0].Scale(-c)
		}
	}
	if e, ok := fold(KindNeg, a); ok {
		return e
	}
	return apply(KindNeg, a)
}

// Add is a + b.
func (a Expr) Add(b Expr) Expr {
	if e, ok := fold(KindAdd, a, b); ok {
		return e
	}
	switch {
	case a.is(0):
		return b
	case b.is(0):
		return a
	case b.kind() == KindNeg:
		return a.Sub(b.node().args[0])
	case a.kind() == KindNeg:
		return b.Sub(a.node().args[0])
	}
	return commute(KindAdd, a, b)
}

// Sub is a − b.
func (a Expr) Sub(b Expr) Expr {
	if e, ok := fold(KindSub, a, b); ok {
		return e
	}
	c, ok := b.constant()
	switch {
	case ok:
		return a.Shift(-c)
	case a.is(0):
		return b.Neg()
	case b.kind() == KindNeg:
		return a.Add(b.node().args[0])
	}
	return apply(KindSub, a, b)
}

// Mul is a · b.
func (a Expr) Mul(b Expr) Expr {
	if e, ok := fold(KindMul, a, b); ok {
		return e
	}
	if _, ok := a.constant(); ok {
		a, b = b, a
	}
	x, y := a.node(), b.node()
	if c, ok := b.constant(); ok {
		switch {
		case c == 1:
			return a
		case c == -1:
			return a.Neg()
		case x.kind == KindNeg:
			return x.args[0].Scale(-c)
		case x.kind == KindMul:
			d, ok := x.args[1].constant()
			if cd := math.Abs(c * d); ok && cd >= 0x1p-1000 && cd <= 0x1p1000 {
				return x.args[0].Scale(c * d)
			}
		}
		return commute(KindMul, a, b)
	}
	switch {
	case x.kind == KindNeg:
		return x.args[0].Mul(b).Neg()
	case y.kind == KindNeg:
		return a.Mul(y.args[0]).Neg()
	}
	if x.kind == KindMul { // constants to the outside
		if c, ok := x.args[1].constant(); ok {
			return x.args[0].Mul(b).Scale(c)
		}
	}
	if y.kind == KindMul {
		if c, ok := y.args[1].constant(); ok {
			return a.Mul(y.args[0]).Scale(c)
		}
	}
	return commute(KindMul, a, b)
}

// Div is a / b. Division by a constant whose inverse is exact is a multiplication.
func (a Expr) Div(b Expr) Expr {
	if e, ok := fold(KindDiv, a, b); ok {
		return e
	}
	if c, ok := b.constant(); ok {
		if f, _ := math.Frexp(c); math.Abs(f) == .5 && !math.IsInf(1/c, 0) {
			return a.Scale(1 / c)
		}
	}
	switch x, y := a.node(), b.node(); {
	case x.kind == KindNeg:
		return x.args[0].Div(b).Neg()
	case y.kind == KindNeg:
		return a.Div(y.args[0]).Neg()
	}
	return apply(KindDiv, a, b)
}

// Shift is a + c.
func (a Expr) Shift(c float64) Expr { return a.Add(Const(c)) }

// Scale is c·a.
func (a Expr) Scale(c float64) Expr { return a.Mul(Const(c)) }

// Square is a².
func (a Expr) Square() Expr { return a.Mul(a) }

// Min is the smaller of a and b, NaN if one is NaN. See Gradient for its derivative.
func (a Expr) Min(b Expr) Expr { return a.extreme(KindMin, b) }

// Max is the larger of a and b, NaN if one is NaN. See Gradient for its derivative.
func (a Expr) Max(b Expr) Expr { return a.extreme(KindMax, b) }

func (a Expr) extreme(k Kind, b Expr) Expr {
	if e, ok := fold(k, a, b); ok {
		return e
	}
	if a == b {
		return a
	}
	if _, ok := a.constant(); ok {
		a, b = b, a
	}
	if n := a.node(); n.kind == k { // constants meet
		if c, ok := fold(k, n.args[1], b); ok {
			return n.args[0].extreme(k, c)
		}
	}
	return commute(k, a, b)
}

// Clamp is min(max(a, lo), hi).
func (a Expr) Clamp(lo, hi float64) Expr { return a.Max(Const(lo)).Min(Const(hi)) }

// Abs is max(a, −a). Its derivative at 0 is 0.
func (a Expr) Abs() Expr { return a.Max(a.Neg()) }

// Exp is eᵃ.
func (a Expr) Exp() Expr { return a.function(KindExp) }

// Log is the natural logarithm of a, NaN below 0.
func (a Expr) Log() Expr { return a.function(KindLog) }

// Sqrt is √a, NaN below 0.
func (a Expr) Sqrt() Expr { return a.function(KindSqrt) }

// Tanh is the hyperbolic tangent of a.
func (a Expr) Tanh() Expr { return a.function(KindTanh) }

// Erf is the error function of a.
func (a Expr) Erf() Expr { return a.function(KindErf) }

// Sigmoid is 1/(1 + e⁻ᵃ).
func (a Expr) Sigmoid() Expr { return a.function(KindSigmoid) }

func (a Expr) function(k Kind) Expr {
	if e, ok := fold(k, a); ok {
		return e
	}
	return apply(k, a)
}

// Less is a < b, false if one is NaN.
func (a Expr) Less(b Expr) Cond { return a.compare(KindLess, b) }

// LessEqual is a ≤ b, false if one is NaN.
func (a Expr) LessEqual(b Expr) Cond { return a.compare(KindLessEqual, b) }

// Equal is a = b, false if one is NaN.
func (a Expr) Equal(b Expr) Cond { return a.compare(KindEqual, b) }

func (a Expr) compare(k Kind, b Expr) Cond {
	if x, ok := a.constant(); ok {
		if y, ok := b.constant(); ok {
			known := 0.
			if k.Holds(x, y) {
				known = 1
			}
			return Cond{Const(known)}
		}
	}
	if k == KindEqual {
		return Cond{commute(k, a, b)}
	}
	return Cond{apply(k, a, b)}
}

// If is a where c holds, else b. The operand that is not selected does not matter, even if it is NaN.
func If(c Cond, a, b Expr) Expr {
	if known, ok := c.e.constant(); ok {
		if known == 0 {
			return b
		}
		return a
	}
	if n := a.node(); n.kind == KindIf && n.args[0] == c.e {
		a = n.args[1]
	}
	if n := b.node(); n.kind == KindIf && n.args[0] == c.e {
		b = n.args[2]
	}
	if a == b {
		return a
	}
	return apply(KindIf, c.e, a, b)
}
