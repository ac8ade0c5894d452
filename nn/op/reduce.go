package op

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/op/expr"
)

// Reduction is a function of many numbers.
type Reduction uint8

// The reductions. Max is NaN where an element is.
const (
	Sum Reduction = iota
	Mean
	Max
)

func (r Reduction) String() string {
	switch r {
	case Sum:
		return "sum"
	case Mean:
		return "mean"
	case Max:
		return "max"
	}
	return fmt.Sprintf("Reduction(%d)", uint8(r))
}

// Reduce is the sum, mean or maximum over some axes, in ascending order. The result has the operand's rank: its extent
// along these axes is 1.
type Reduce struct {
	By   Reduction
	Axes []int
}

// Kind is "reduce".
func (Reduce) Kind() string { return "reduce" }

func (o Reduce) String() string { return fmt.Sprintf("reduce{%v over %v}", o.By, o.Axes) }

// Infer gives the operand's shape with extents of 1.
func (o Reduce) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	if err == nil && o.By > Max {
		err = wrong(o, in, "there is no such reduction")
	}
	for i := 0; err == nil && i < len(o.Axes); i++ {
		switch a := o.Axes[i]; {
		case a < 0 || a >= len(in[0].Shape):
			err = wrong(o, in, "there is no axis %d", a)
		case i > 0 && a <= o.Axes[i-1]:
			err = wrong(o, in, "the axes must ascend")
		}
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, o.reduced(in[0].Shape)}, nil
}

func (o Reduce) reduced(x Shape) Shape {
	s := slices.Clone(x)
	for _, a := range o.Axes {
		s[a] = 1
	}
	return s
}

// Count is the number of elements of an operand of shape x that go into one of the result.
func (o Reduce) Count(x Shape) int {
	n := 1
	for _, a := range o.Axes {
		n *= x[a]
	}
	return n
}

// Gradients repeats the gradient of a sum. That of a maximum is shared by the elements that equal it.
func (o Reduce) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	x, dy := in[0].Shape, Leaf(ResultGrad)
	switch o.By {
	case Mean:
		dy = Apply(Map{expr.Arg(0).Scale(1 / float64(o.Count(x)))}, dy)
	case Max:
		one := Apply(Map{expr.If(expr.Arg(0).Equal(expr.Arg(1)), expr.Const(1), expr.Const(0))},
			Leaf(0), repeat(o.reduced(x), x, Leaf(Result)))
		share := Apply(Map{expr.Arg(0).Div(expr.Arg(1))}, dy, Apply(Reduce{Sum, o.Axes}, one))
		return []*Term{Apply(Map{expr.Arg(0).Mul(expr.Arg(1))}, one, repeat(o.reduced(x), x, share))}, nil
	}
	if o.Count(x) == 1 {
		return []*Term{dy}, nil
	}
	return []*Term{Apply(Expand{slices.Clone(x)}, dy)}, nil
}

// repeat is a term of shape from as an operand of a Map whose result has the shape to, of the same rank.
func repeat(from, to Shape, t *Term) *Term {
	if _, ok := Along(from, to); ok {
		return t
	}
	return Apply(Expand{slices.Clone(to)}, t)
}

// Run reduces in float64.
func (o Reduce) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, reduce[float32], reduce[float64])
}

func reduce[T element](o Reduce, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	all := make([]float64, len(y))
	if o.By == Max {
		for i := range all {
			all[i] = math.Inf(-1)
		}
	}
	stride := out.Shape.Strides()
	for _, a := range o.Axes {
		stride[a] = 0
	}
	i := 0
	walk(in[0].Shape, 0, stride, func(at int) {
		if v := float64(x[i]); o.By == Max {
			all[at] = max(all[at], v)
		} else {
			all[at] += v
		}
		i++
	})
	for i, v := range all {
		if o.By == Mean {
			v /= float64(o.Count(in[0].Shape))
		}
		y[i] = T(v)
	}
}
