// Package exprtest makes random expressions for tests.
package exprtest

import (
	"math"
	"math/rand/v2"

	"onlinerna/nn/op/expr"
)

// Tree is an expression with its meaning.
type Tree struct {
	Expr expr.Expr
	Go   func(in []float64) float64 // computes it without package expr, as it was written
}

// Random makes a random expression of so many levels at most, of n operands, with all kinds of functions. Its values stay moderate for
// moderate operands.
func Random(r *rand.Rand, depth, n int) Tree {
	if depth == 0 || r.IntN(8) == 0 {
		if r.IntN(3) == 0 {
			v := []float64{0, 1, -1, 2, .5, -3}[r.IntN(6)]
			return Tree{expr.Const(v), func([]float64) float64 { return v }}
		}
		i := r.IntN(n)
		return Tree{expr.Arg(i), func(in []float64) float64 { return in[i] }}
	}
	a, b := Random(r, depth-1, n), Random(r, depth-1, n)
	one := func(e expr.Expr, f func(float64) float64) Tree {
		return Tree{e, func(in []float64) float64 { return f(a.Go(in)) }}
	}
	two := func(e expr.Expr, f func(p, q float64) float64) Tree {
		return Tree{e, func(in []float64) float64 { return f(a.Go(in), b.Go(in)) }}
	}
	switch r.IntN(16) {
	case 0:
		return one(a.Expr.Neg(), func(p float64) float64 { return -p })
	case 1, 2:
		return two(a.Expr.Add(b.Expr), func(p, q float64) float64 { return p + q })
	case 3, 4:
		return two(a.Expr.Sub(b.Expr), func(p, q float64) float64 { return p - q })
	case 5, 6, 7:
		return two(a.Expr.Mul(b.Expr), func(p, q float64) float64 { return p * q })
	case 8:
		return two(a.Expr.Div(b.Expr.Square().Shift(1)), func(p, q float64) float64 { return p / (q*q + 1) })
	case 9:
		return two(a.Expr.Max(b.Expr), func(p, q float64) float64 { return max(p, q) })
	case 10:
		return two(a.Expr.Min(b.Expr), func(p, q float64) float64 { return min(p, q) })
	case 11:
		return one(a.Expr.Tanh().Exp(), func(p float64) float64 { return math.Exp(math.Tanh(p)) })
	case 12:
		return one(a.Expr.Square().Shift(2).Sqrt().Log(), func(p float64) float64 { return math.Log(math.Sqrt(p*p + 2)) })
	case 13:
		return one(a.Expr.Erf(), math.Erf)
	case 14:
		return one(a.Expr.Sigmoid(), func(p float64) float64 { return 1 / (1 + math.Exp(-p)) })
	}
	s := Random(r, depth-1, n)
	return Tree{expr.If(a.Expr.LessEqual(b.Expr), a.Expr, s.Expr), func(in []float64) float64 {
		if p := a.Go(in); p <= b.Go(in) {
			return p
		}
		return s.Go(in)
	}}
}
