package op

import (
	"slices"

	"onlinerna/nn/op/expr"
)

// Composite is an op that equals a formula of other ops, which a device runs if it has no kernel for the whole.
type Composite interface {
	Op
	// Decompose gives the formula, for operands of types that fit. Its leaves are operands.
	Decompose(in ...Type) *Term
}

// Type infers the type of t, whose leaves are operands of the given types. It panics where an op does not take its
// operands: the formula is wrong then.
func (t *Term) Type(in ...Type) Type { return t.types(in, map[*Term]Type{}) }

func (t *Term) types(in []Type, done map[*Term]Type) Type {
	if t.Op == nil {
		return in[t.Leaf]
	}
	y, ok := done[t]
	if !ok {
		args := make([]Type, len(t.Args))
		for i, a := range t.Args {
			args[i] = a.types(in, done)
		}
		var err error
		if y, err = t.Op.Infer(args...); err != nil {
			panic(err)
		}
		done[t] = y
	}
	return y
}

// gradientsOf differentiates the formula of o. The gradients recompute the formula's values that they need, so that
// only the result is kept.
func gradientsOf(o Composite, in []Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	root := o.Decompose(in...)
	order := ordered(root, nil)
	types := map[*Term]Type{}
	root.types(in, types)
	grads := map[*Term]*Term{root: Leaf(ResultGrad)}
	leaves := make([]*Term, len(in))
	add := func(sum, g *Term) *Term {
		if sum == nil {
			return g
		}
		return Apply(Add{}, sum, g)
	}
	for _, t := range slices.Backward(order) {
		dy := grads[t]
		d, ok := t.Op.(Differentiable)
		if dy == nil || !ok {
			continue
		}
		args := make([]Type, len(t.Args))
		for i, a := range t.Args {
			args[i] = a.types(in, types)
		}
		terms, err := d.Gradients(args...)
		if err != nil {
			return nil, err
		}
		y := t
		if t == root {
			y = Leaf(Result)
		}
		inside := replacer{args: t.Args, result: y, grad: dy, done: map[*Term]*Term{}}
		for i, g := range terms {
			if g == nil {
				continue
			}
			g = inside.replace(g)
			if a := t.Args[i]; a.Op == nil {
				leaves[a.Leaf] = add(leaves[a.Leaf], g)
			} else {
				grads[a] = add(grads[a], g)
			}
		}
	}
	return leaves, nil
}

// gradientOf is the gradient of the formula of o with respect to an operand. Its operands, of the given types, are those
// of o, then the gradient with respect to the result.
func gradientOf(o Composite, operand int, in []Type) *Term {
	last := len(in) - 1
	all, err := gradientsOf(o, in[:last])
	if err != nil {
		panic(err) // Infer has passed
	}
	args := make([]*Term, last)
	for i := range args {
		args[i] = Leaf(Operand(i))
	}
	r := replacer{args: args, grad: Leaf(Operand(last)), done: map[*Term]*Term{}}
	return r.replace(all[operand])
}

// ordered lists the terms with ops that t consists of, each once and after those that it reads.
func ordered(t *Term, list []*Term) []*Term {
	if t.Op == nil || slices.Contains(list, t) {
		return list
	}
	for _, a := range t.Args {
		list = ordered(a, list)
	}
	return append(list, t)
}

// replacer puts terms in the place of leaves, shared terms once.
type replacer struct {
	args         []*Term
	result, grad *Term
	done         map[*Term]*Term
}

func (r *replacer) replace(t *Term) *Term {
	if t.Op == nil {
		switch t.Leaf {
		case Result:
			return r.result
		case ResultGrad:
			return r.grad
		}
		return r.args[t.Leaf]
	}
	if n := r.done[t]; n != nil {
		return n
	}
	args := make([]*Term, len(t.Args))
	for i, a := range t.Args {
		args[i] = r.replace(a)
	}
	n := Apply(t.Op, args...)
	r.done[t] = n
	return n
}

// rows returns the number of rows of a tensor of shape s, along its last dimension, and their width.
func rows(s Shape) (n, width int) {
	width = s[len(s)-1]
	return s.Size() / width, width
}

// asRows is t, of shape s, as a matrix of rows along its last dimension.
func asRows(t *Term, s Shape) *Term {
	n, width := rows(s)
	return shaped(t, s, Shape{n, width})
}

// shaped is t, of shape from, in the shape to.
func shaped(t *Term, from, to Shape) *Term {
	if from.Equal(to) {
		return t
	}
	return Apply(Reshape{slices.Clone(to)}, t)
}

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
