package expr

import "math"

// Gradient differentiates seed·e with respect to each operand: seed is the gradient with respect to e. The result for
// operand i is number i. It is not Valid if e does not depend on the operand smoothly.
//
// If the operands of Max are equal, or one is NaN, the derivative follows op.ReLU: max(x, c) with a constant c has
// the derivative 0 for x ≤ c, else 1, also for NaN, and min(x, c) has 0 for x ≥ c. If neither is constant, equal
// operands have ½ each. Comparisons have no derivative, and an operand that is not selected contributes 0 regardless
// of its value.
func (e Expr) Gradient(seed Expr) []Expr {
	order := sorted(e)
	adjoints := map[Expr]Expr{e: seed}
	add := func(x, d Expr) {
		if _, ok := x.constant(); ok {
			return
		}
		if a, ok := adjoints[x]; ok {
			d = a.Add(d)
		}
		adjoints[x] = d
	}
	grads := make([]Expr, e.Args())
	for i := len(order) - 1; i >= 0; i-- {
		x := order[i]
		d, ok := adjoints[x]
		if !ok {
			continue
		}
		n := x.node()
		a, b, c := n.args[0], n.args[1], n.args[2]
		switch n.kind {
		case KindArg:
			grads[n.index] = d
		case KindNeg:
			add(a, negative(d))
		case KindAdd:
			add(a, d)
			add(b, d)
		case KindSub:
			add(a, d)
			add(b, negative(d))
		case KindMul:
			add(a, times(d, b))
			add(b, times(d, a))
		case KindDiv:
			add(a, over(d, b))
			add(b, negative(over(times(d, x), b)))
		case KindMin:
			add(a, larger(d, b, a))
			add(b, larger(d, a, b))
		case KindMax:
			add(a, larger(d, a, b))
			add(b, larger(d, b, a))
		case KindExp:
			add(a, times(d, x))
		case KindLog:
			add(a, over(d, a))
		case KindSqrt:
			add(a, over(times(d, Const(.5)), x))
		case KindTanh:
			add(a, times(d, Const(1).Sub(x.Square())))
		case KindErf:
			add(a, times(d, a.Square().Neg().Exp().Scale(2/math.SqrtPi)))
		case KindSigmoid:
			add(a, times(d, x.Mul(Const(1).Sub(x))))
		case KindIf:
			add(b, If(Cond{a}, d, Const(0)))
			add(c, If(Cond{a}, Const(0), d))
		}
	}
	return grads
}

// larger is the part of d that belongs to the winner of a > b.
func larger(d, a, b Expr) Expr {
	zero := Const(0)
	_, fixedA := a.constant()
	_, fixedB := b.constant()
	if fixedA || fixedB {
		return If(a.LessEqual(b), zero, d)
	}
	return If(a.Less(b), zero, If(a.Equal(b), times(d, Const(.5)), d))
}

// times is d·f, but the 0 of an operand that is not selected stays 0 for any f.
func times(d, f Expr) Expr { return inside(d, func(d Expr) Expr { return d.Mul(f) }) }

// over is d/f, as times.
func over(d, f Expr) Expr { return inside(d, func(d Expr) Expr { return d.Div(f) }) }

// negative is −d, as times.
func negative(d Expr) Expr { return inside(d, Expr.Neg) }

// inside applies a linear function to the operands that selections take.
func inside(d Expr, f func(Expr) Expr) Expr {
	n := d.node()
	switch {
	case n.kind == KindAdd && n.args[0].selects() && n.args[1].selects():
		return inside(n.args[0], f).Add(inside(n.args[1], f))
	case n.kind == KindIf && n.args[1].is(0):
		return If(Cond{n.args[0]}, n.args[1], inside(n.args[2], f))
	case n.kind == KindIf && n.args[2].is(0):
		return If(Cond{n.args[0]}, inside(n.args[1], f), n.args[2])
	}
	return f(d)
}

// selects reports whether e may be the 0 of a selection, or a sum of such.
func (e Expr) selects() bool {
	n := e.node()
	return n.kind == KindIf && (n.args[1].is(0) || n.args[2].is(0)) || n.kind == KindAdd && n.args[0].selects() &&
		n.args[1].selects()
}
