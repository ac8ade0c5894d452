package op

import (
	"slices"

	"onlinerna/nn/op/expr"
)

// Elementwise is an op that equals an expression of its operands, so that devices may fuse it with others.
type Elementwise interface {
	Op
	// Expression returns the expression of an equal Map.
	Expression() expr.Expr
}

var _, _, _, _ Elementwise = ReLU{}, ReLUGrad{}, Add{}, Map{}

// Expression is max(x, 0).
func (ReLU) Expression() expr.Expr { return expr.Arg(0).Max(expr.Const(0)) }

// Expression is 0 where y ≤ 0, else dy.
func (ReLUGrad) Expression() expr.Expr {
	zero := expr.Const(0)
	return expr.If(expr.Arg(0).LessEqual(zero), zero, expr.Arg(1))
}

// Expression is a + b.
func (Add) Expression() expr.Expr { return expr.Arg(0).Add(expr.Arg(1)) }

// Expression is Expr.
func (o Map) Expression() expr.Expr { return o.Expr }

// Mapped is a Map of o that reads values, told apart by numbers, each once: o reads in.
func Mapped(o Elementwise, in []int) (m Map, values []int) {
	return Map{o.Expression().Substitute(collect(in, &values))}, values
}

// Compose fuses inner and outer into one Map: outer reads the values in, one of which, made, inner computes from the
// values of. The result reads the listed values, each once. It rounds once, the two ops twice.
//
// It is not ok if outer does not read made as numbers, or if an operand is lost in simplification. The caller ensures
// that made has the shape of outer's result, so that it is not repeated.
func Compose(outer Elementwise, in []int, inner Elementwise, of []int, made int) (m Map, values []int, ok bool) {
	e := outer.Expression()
	for i, v := range in {
		if v != made {
			continue
		}
		if _, counter := e.Reads(i); counter {
			return Map{}, nil, false
		}
		ok = true
	}
	if !ok {
		return Map{}, nil, false
	}
	part := inner.Expression().Substitute(collect(of, &values))
	at := collect(in, &values)
	m = Map{e.Substitute(func(i int) expr.Expr {
		if in[i] == made {
			return part
		}
		return at(i)
	})}
	return m, values, m.Expr.ReadsAll(len(values))
}

// collect numbers the values that operands are, and adds them to the list.
func collect(in []int, values *[]int) func(i int) expr.Expr {
	return func(i int) expr.Expr {
		k := slices.Index(*values, in[i])
		if k < 0 {
			k = len(*values)
			*values = append(*values, in[i])
		}
		return expr.Arg(k)
	}
}
