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

// Random makes a random expression of at most the given depth, of n operands, with all kinds of functions. Its values
// stay moderate for moderate operands.
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
		return one(a.Expr.Square().Shift(2).Sqrt().Log(),
			func(p float64) float64 { return math.Log(math.Sqrt(p*p + 2)) })
	case 13:
		return one(a.Expr.Erf(), math.Erf)
	case 14:
		return one(a.Expr.Sigmoid(), func(p float64) float64 { return 1 / (1 + math.Exp(-p)) })
	}
	p, q := Random(r, 0, n), Random(r, 0, n) // compared operands are exact in every type
	return Tree{expr.If(p.Expr.LessEqual(q.Expr), a.Expr, b.Expr), func(in []float64) float64 {
		if p.Go(in) <= q.Go(in) {
			return a.Go(in)
		}
		return b.Go(in)
	}}
}

// Deviation is the error of float32 arithmetic against float64 for an expression of n operands, relative to the
// largest value over random operands of (−1, 1) that float32 has.
func Deviation(r *rand.Rand, e expr.Expr, n int) float64 {
	args, large, worst := make([]float64, n), 0., 0.
	for range 200 {
		for i := range args {
			args[i] = float64(float32(2*r.Float64() - 1))
		}
		exact, short := value(e, args, func(x float64) float64 { return x }),
			value(e, args, func(x float64) float64 { return float64(float32(x)) })
		large, worst = max(large, math.Abs(exact)), max(worst, math.Abs(exact-short))
	}
	return worst / large
}

// value computes e with every number rounded.
func value(e expr.Expr, args []float64, round func(float64) float64) float64 {
	nodes := e.Nodes()
	v, truth := make([]float64, len(nodes)), make([]bool, len(nodes))
	for i, n := range nodes {
		var in [3]float64
		for j, a := range n.In {
			in[j] = v[a]
		}
		switch {
		case n.Kind == expr.KindArg:
			v[i] = args[n.Index]
		case n.Kind == expr.KindConst:
			v[i] = round(n.Value)
		case n.Kind.Truth():
			truth[i] = n.Kind.Holds(in[0], in[1])
		case n.Kind == expr.KindIf:
			v[i] = in[2]
			if truth[n.In[0]] {
				v[i] = in[1]
			}
		default:
			v[i] = round(n.Kind.Compute(in[0], in[1]))
		}
	}
	return v[len(v)-1]
}
