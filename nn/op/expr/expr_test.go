package expr_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/expr/exprtest"
)

var (
	x, y = expr.Arg(0), expr.Arg(1)
	nan  = math.NaN()
	inf  = math.Inf(1)
)

func c(v float64) expr.Expr { return expr.Const(v) }

// eval computes e for one element.
func eval(e expr.Expr, args ...float64) float64 {
	in := make([][]float64, len(args))
	for i, a := range args {
		in[i] = []float64{a}
	}
	return e.Evaluator().Run(1, in, func(expr.Node, []float64) { panic("no random numbers") })[0]
}

func TestSimplification(t *testing.T) {
	less := x.Less(y)
	for _, k := range []struct {
		name string
		got  expr.Expr
		want string
	}{
		{"times 1", x.Scale(1), "x0"},
		{"times -1", x.Scale(-1), "-x0"},
		{"plus 0", x.Shift(0), "x0"},
		{"0 plus", c(0).Add(x), "x0"},
		{"minus 0", x.Sub(c(0)), "x0"},
		{"0 minus", c(0).Sub(x), "-x0"},
		{"over 1", x.Div(c(1)), "x0"},
		{"over a power of 2", x.Div(c(8)), "(x0 * 0.125)"},
		{"over what has no exact inverse", x.Div(c(3)), "(x0 / 3)"},
		{"over 0", x.Div(c(0)), "(x0 / 0)"},
		{"twice negative", x.Neg().Neg(), "x0"},
		{"negative difference", x.Sub(y).Neg(), "(x1 - x0)"},
		{"minus a negative", x.Sub(y.Neg()), "(x0 + x1)"},
		{"plus a negative", x.Neg().Add(y), "(x1 - x0)"},
		{"product of negatives", x.Neg().Mul(y.Neg()), "(x0 * x1)"},
		{"minus a constant", x.Sub(c(3)), "(x0 + -3)"},
		{"constants meet", x.Scale(2).Mul(y.Scale(3)).Neg(), "((x0 * x1) * -6)"},
		{"constants fold", c(2).Add(c(3)).Mul(c(4)).Sqrt().Exp().Log().Mul(x), "(x0 * " +
			c(math.Log(math.Exp(math.Sqrt(20)))).String() + ")"},
		{"places", y.Mul(x).Add(y.Max(x)), "((x0 * x1) + max(x0, x1))"},
		{"places do matter", y.Sub(x).Div(x), "((x1 - x0) / x0)"},
		{"maximum of equals", x.Max(x), "x0"},
		{"limits meet", c(2).Max(x.Max(c(1))).Min(c(7)), "min(max(x0, 2), 7)"},
		{"the same either way", expr.If(less, x, x), "x0"},
		{"the same question again", expr.If(less, expr.If(less, x, y), expr.If(less, x, c(2))), "if((x0 < x1), x0, 2)"},
		{"a known outcome", expr.If(c(1).Less(c(2)), x, y), "x0"},
		{"another", expr.If(c(nan).Equal(c(nan)), x, y), "x1"},
		{"NaN times 0 stays", x.Scale(0), "(x0 * 0)"},
		{"infinite products are not made ahead", x.Scale(1e200).Scale(1e200), "((x0 * 1e+200) * 1e+200)"},
		{"shared", x.Exp().Add(x.Exp().Square()), "t0 = exp(x0); ((t0 * t0) + t0)"},
		{"none", expr.Expr{}, "none"},
	} {
		if got := k.got.String(); got != k.want {
			t.Errorf("%s: %s, want %s", k.name, got, k.want)
		}
	}
	if x.Add(y).Exp() != y.Add(x).Exp() {
		t.Error("equal expressions differ")
	}
	if c(nan) != c(-nan) || c(0) == c(math.Copysign(0, -1)) {
		t.Error("constants are told apart by their value, with one NaN and two zeros")
	}
}

// Results for NaN, infinities and zeros.
func TestSpecialValues(t *testing.T) {
	relu := x.Max(c(0))
	for _, k := range []struct {
		Expr expr.Expr
		in   []float64
		want float64
	}{
		{relu, []float64{nan}, nan},
		{relu, []float64{math.Copysign(0, -1)}, 0},
		{x.Min(y), []float64{1, nan}, nan},
		{expr.If(x.LessEqual(y), x, y), []float64{nan, 2}, 2},
		{expr.If(x.Equal(x), c(1), c(0)), []float64{nan}, 0},
		{expr.If(x.Less(c(0)), x.Sqrt(), x), []float64{4}, 4},
		{x.Sigmoid(), []float64{-inf}, 0},
		{x.Sigmoid(), []float64{1e4}, 1},
		{x.Tanh(), []float64{-inf}, -1},
		{x.Erf(), []float64{inf}, 1},
		{x.Log(), []float64{0}, -inf},
		{x.Log(), []float64{-1}, nan},
		{x.Abs(), []float64{-3}, 3},
		{x.Div(y), []float64{-1, 0}, -inf},
		// ReLU's gradient: 0 at 0 for any incoming gradient, all of it at NaN.
		{relu.Gradient(y)[0], []float64{0, inf}, 0},
		{relu.Gradient(y)[0], []float64{nan, 5}, 5},
		{relu.Gradient(y)[0], []float64{1e-30, 5}, 5},
		{x.Min(c(6)).Gradient(y)[0], []float64{6, 5}, 0},
		{x.Max(y).Gradient(expr.Arg(2))[1], []float64{3, 3, 5}, 2.5},
		{x.Min(y).Gradient(expr.Arg(2))[0], []float64{3, 4, 5}, 5},
		{x.Min(y).Gradient(expr.Arg(2))[1], []float64{3, 4, 5}, 0},
		{x.Abs().Gradient(y)[0], []float64{0, 5}, 0},
		{x.Abs().Gradient(y)[0], []float64{-2, 5}, -5},
		// The derivative of an operand that is not selected does not matter.
		{expr.If(c(0).Less(x), x.Log(), c(0)).Gradient(y)[0], []float64{0, 5}, 0},
		{expr.If(c(0).Less(x), x.Sqrt(), x).Gradient(y)[0], []float64{0, 5}, 5},
		{expr.If(c(0).Less(x), x.Sqrt().Neg(), x).Gradient(y)[0], []float64{0, 5}, 5},
		{expr.If(c(0).Less(x), x.Sqrt(), x).Add(expr.If(c(1).Less(x), x.Sqrt(), c(0))).Gradient(y)[0],
			[]float64{0, 5}, 5},
	} {
		if got := eval(k.Expr, k.in...); got != k.want && !(got != got && k.want != k.want) {
			t.Errorf("%v of %v is %v, want %v", k.Expr, k.in, got, k.want)
		}
	}
}

// Simplified expressions and their derivatives equal the originals.
func TestRandomExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 4))
	const operands = 3
	derivatives, texts := 0, map[string]expr.Expr{}
	for range 1000 {
		k := exprtest.Random(r, 1+r.IntN(5), operands)
		if e, ok := texts[k.Expr.String()]; ok && e != k.Expr {
			t.Fatalf("two expressions are written %v", e)
		}
		texts[k.Expr.String()] = k.Expr
		in := make([]float64, operands)
		for i := range in {
			in[i] = 4*r.Float64() - 2
		}
		want := k.Go(in)
		if got := eval(k.Expr, in...); !(math.Abs(got-want) <= 1e-10*max(1, math.Abs(want))) {
			t.Fatalf("%v of %v is %v, want %v", k.Expr, in, got, want)
		}
		for i, g := range k.Expr.Gradient(expr.Arg(operands)) {
			if !g.Valid() {
				g = expr.Const(0)
			}
			analytic := eval(g, append(in, 1)...)
			slope := func(h float64) float64 {
				at := append([]float64{}, in...)
				at[i] = in[i] + h
				up := k.Go(at)
				at[i] = in[i] - h
				return (up - k.Go(at)) / (2 * h)
			}
			// Near a kink, or where the function is steep, two differences disagree.
			n, m := slope(1e-5), slope(1e-4)
			if scale := max(1, math.Abs(n)); math.Abs(n-m) > 1e-6*scale {
				continue
			} else if !(math.Abs(analytic-n) <= 1e-5*scale) {
				t.Fatalf("%v at %v: the derivative by operand %d is %v, differences give %v", k.Expr, in, i,
					analytic, n)
			}
			derivatives++
		}
	}
	if derivatives < 1300 {
		t.Errorf("only %d derivatives were smooth enough to be compared", derivatives)
	}
}

func TestSubstitute(t *testing.T) {
	e := x.Mul(y).Add(expr.Random(7, 2, true))
	got := e.Substitute(func(i int) expr.Expr { return []expr.Expr{x.Exp(), c(2), expr.Arg(5)}[i] })
	if want := "(random(0x7, x5, sample) + (exp(x0) * 2))"; got.String() != want {
		t.Errorf("%v, want %s", got, want)
	}
	if got := x.Exp().Mul(y).Replace(x.Exp(), y); got != y.Square() {
		t.Errorf("%v, want a square", got)
	}
	if numbers, counter := e.Reads(2); numbers || !counter || e.Args() != 3 {
		t.Errorf("operand 2 of %d is read as a number: %t, as a counter: %t", e.Args(), numbers, counter)
	}
}

func TestGradientOfConstants(t *testing.T) {
	g := expr.If(x.Less(y), c(1), c(2)).Gradient(expr.Arg(2))
	if len(g) != 2 || g[0].Valid() || g[1].Valid() {
		t.Errorf("a step has the derivatives %v", g)
	}
}
