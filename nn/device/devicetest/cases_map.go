package devicetest

import (
	"math"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/expr/exprtest"
)

// Operands of expressions.
var x0, x1, x2 = expr.Arg(0), expr.Arg(1), expr.Arg(2)

// Expressions of real nets.
var (
	hardswish = x0.Mul(x0.Shift(3).Clamp(0, 6)).Scale(1. / 6)
	silu      = x0.Mul(x0.Sigmoid())
	gelu      = x0.Scale(.5).Mul(x0.Scale(math.Sqrt2 / 2).Erf().Shift(1))
	geluTanh  = x0.Scale(.5).Mul(x0.Add(x0.Square().Mul(x0).Scale(.044715)).
			Scale(math.Sqrt2 / math.SqrtPi).Tanh().Shift(1))
	hardSigmoid = x0.Shift(3).Clamp(0, 6).Scale(1. / 6)
	excited     = x0.Mul(x1.Sigmoid()) // operand 1 is one number an image and channel, as a rule
)

// dropped is x0 with elements or samples, counted by operand 1, at 0.
func dropped(p float64, perSample bool) expr.Expr {
	u := expr.Random(0x0123456789abcdef, 1, perSample)
	return expr.If(expr.Chance(u, p), expr.Const(0), x0.Scale(1/(1-p)))
}

// counter counts random numbers. As an unsigned 32-bit number, the first sample's number has the sign bit set.
func counter() operand { return whole(op.Int32, listed(1234567, -2), 2) }

// mapCases has each function alone over its range, expressions of nets with their gradients, every way to repeat
// operands, and random expressions.
func mapCases() []opCase {
	one, wide := uniform(-1, 1), uniform(-8, 8)
	var all []opCase
	alike := false // but for arithmetic
	add := func(e expr.Expr, in ...operand) { all = append(all, opCase{op: op.Map{Expr: e}, in: in, alike: alike}) }

	few := []op.Shape{{2, 19, 7, 3}, {33, 17}, {2, 5, 3}, {}}
	for _, s := range few {
		wide := wide
		if s.Size() == 1 {
			wide = one // where float32 cancels there would be no larger element to compare with
		}
		for i, e := range []expr.Expr{hardswish, silu, gelu, geluTanh, hardSigmoid, x0.Exp(), x0.Tanh(), x0.Erf(),
			x0.Sigmoid()} {
			alike = i%4 > 0
			add(e, data(wide, s...))
			add(e.Gradient(x1)[0], data(wide, s...), data(one, s...))
		}
		alike = false
		add(x0.Neg(), data(wide, s...))
		positive := uniform(1e-3, 10)
		for _, e := range []expr.Expr{x0.Log(), x0.Sqrt()} {
			add(e, data(positive, s...))
			add(e.Gradient(x1)[0], data(positive, s...), data(one, s...))
		}
		for i, e := range []expr.Expr{
			x0.Add(x1), x0.Sub(x1), x0.Mul(x1), x0.Min(x1), x0.Max(x1), x0.Div(x1.Square().Shift(1)),
			expr.If(x0.Less(x1), x0.Scale(2), x1), expr.If(x0.LessEqual(x1), x1, x0.Neg()),
			expr.If(x0.Equal(x1), expr.Const(7), x1),
		} {
			alike = i%6 > 0
			add(e, data(integers(-2, 2), s...), data(integers(-2, 2), s...))
			add(e, data(one, s...), data(one, s...))
		}
		alike = false
	}
	zero := math.Copysign(0, -1)
	relu := x0.Max(expr.Const(0))
	for _, s := range activations {
		if s.Size() > 100_000 {
			continue
		}
		add(relu, data(listed(3e38, -3e38, 0, zero, 1e-30), s...))
		add(relu.Gradient(x1)[0], data(listed(0, .5, zero, 2, -1), s...), data(one, s...))
	}

	for _, r := range []struct{ y, x op.Shape }{
		{op.Shape{2, 3, 7, 5}, op.Shape{2, 3, 1, 1}}, {op.Shape{2, 3, 7, 5}, op.Shape{2, 3}},
		{op.Shape{2, 3, 7, 5}, op.Shape{3}},
		{op.Shape{2, 3, 7, 5}, op.Shape{1, 3, 1, 1}}, {op.Shape{2, 3, 7, 5}, op.Shape{2, 1, 1, 1}},
		{op.Shape{2, 3, 7, 5}, op.Shape{2, 1, 7, 5}},
		{op.Shape{2, 3, 7, 5}, op.Shape{1, 3, 7, 5}}, {op.Shape{2, 3, 7, 5}, op.Shape{1, 1, 7, 5}},
		{op.Shape{2, 3, 7, 5}, op.Shape{}},
		{op.Shape{2, 3, 7, 5}, op.Shape{1}}, {op.Shape{2, 3, 7, 5}, op.Shape{1, 1, 1, 1}},
		{op.Shape{3, 64, 8, 8}, op.Shape{3, 64}}, {op.Shape{3, 64, 8, 8}, op.Shape{64}},
		{op.Shape{3, 64, 1, 1}, op.Shape{3, 64}},
		{op.Shape{2, 33, 5, 9}, op.Shape{2, 33}}, {op.Shape{1, 16, 14, 14}, op.Shape{16}},
		{op.Shape{1, 16, 14, 14}, op.Shape{1, 1, 14, 14}},
		{op.Shape{4, 32, 28, 28}, op.Shape{4, 32}},
		{op.Shape{33, 17}, op.Shape{17}}, {op.Shape{33, 17}, op.Shape{33, 1}}, {op.Shape{33, 17}, op.Shape{1, 17}},
		{op.Shape{33, 17}, op.Shape{}},
		{op.Shape{4, 5, 6}, op.Shape{5}}, {op.Shape{4, 5, 6}, op.Shape{4, 5}}, {op.Shape{4, 5, 6}, op.Shape{4, 1, 6}},
		{op.Shape{9}, op.Shape{1}},
	} {
		add(excited, data(one, r.y...), data(wide, r.x...))
		add(x1.Sub(x0), data(one, r.x...), data(one, r.y...))
		add(x0.Mul(x1).Add(x2), data(one, r.y...), data(one, r.x...), data(one, r.y...))
	}
	add(x0.Mul(x1).Add(x2), data(one, 2, 19, 5, 3), weight(one, 19), weight(one, 19))

	for i, s := range activations {
		add(dropped(.25, i%3 == 0), data(one, s...), counter())
	}
	add(expr.Random(1<<63+1, 1, false).Add(x0), data(constant(0), 3, 65, 5, 3), counter())
	add(expr.Random(77, 1, false).Sub(expr.Random(78, 1, true)).Add(x0), data(constant(0), 33, 18), counter())
	add(dropped(.5, false).Gradient(x2)[0].Substitute(func(i int) expr.Expr { return []expr.Expr{{}, x1, x0}[i] }),
		data(one, 4, 6, 5, 5), counter())

	r := newRand("expressions")
	shapes := []struct{ a, b, c op.Shape }{
		{op.Shape{2, 3, 5, 4}, op.Shape{2, 3}, op.Shape{3}},
		{op.Shape{3, 17, 4, 4}, op.Shape{3, 17, 4, 4}, op.Shape{17}},
		{op.Shape{5, 33}, op.Shape{33}, op.Shape{5, 1}}, {op.Shape{2, 16, 3, 3}, op.Shape{2, 1, 3, 3}, op.Shape{}},
	}
	for n := 1; n <= 60; {
		e := exprtest.Random(r, 2+r.IntN(3), 3).Expr
		if e.ReadsAll(3) && exprtest.Deviation(r, e, 3) < 1e-6 {
			s := shapes[n%len(shapes)]
			alike = n%15 > 0
			add(e, data(one, s.a...), data(one, s.b...), data(one, s.c...))
			n++
		}
	}
	return all
}

func sumCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for _, s := range activations {
		to := []op.Shape{{}, {1}, s}
		if len(s) > 1 {
			to = append(to, op.Shape{s[1]})
		}
		if len(s) > 2 {
			to = append(to, s[:2], op.Shape{s[0], s[1], 1, 1}, op.Shape{1, s[1], 1, 1}, op.Shape{s[0], 1, 1, 1},
				op.Shape{s[0], 1, s[2], s[3]},
				op.Shape{1, s[1], s[2], s[3]}, op.Shape{1, 1, s[2], s[3]})
		} else {
			to = append(to, op.Shape{s[0], 1}, op.Shape{1, s[1]})
		}
		for _, t := range to {
			all = append(all, opCase{op: op.SumTo{Shape: t}, in: []operand{data(one, s...)}})
		}
	}
	return append(all,
		opCase{op: op.SumTo{Shape: op.Shape{4, 5}}, in: []operand{data(one, 4, 5, 6)}},
		opCase{op: op.SumTo{Shape: op.Shape{1, 40, 60}}, in: []operand{data(one, 3, 40, 60)}},
		opCase{op: op.SumTo{Shape: op.Shape{1}}, in: []operand{data(one, 9)}})
}
