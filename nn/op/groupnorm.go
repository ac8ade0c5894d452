package op

import (
	"fmt"

	"onlinerna/nn/op/expr"
)

// GroupNorm normalises the channels of x [N,C,…] by groups of C/Groups (Wu, He 2018), for operands x, scale [C], bias
// [C]:
//
//	y = scale · (x − mean)/√(var + Eps) + bias
//
// with the mean and the biased variance of the elements of a group of an image.
type GroupNorm struct {
	Groups int
	Eps    float64
}

var _ Composite = GroupNorm{}

// Kind is "group_norm".
func (GroupNorm) Kind() string { return "group_norm" }

func (o GroupNorm) String() string {
	return fmt.Sprintf("group_norm{groups %d, eps %g}", o.Groups, o.Eps)
}

// Infer gives the shape of x.
func (o GroupNorm) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float}, operand{"scale", 1, float}, operand{"bias", 1, float})
	switch {
	case err != nil:
	case len(in[0].Shape) < 2:
		err = wrong(o, in, "the input must have 2 dimensions or more")
	case o.Groups < 1 || in[0].Shape[1]%o.Groups != 0:
		err = wrong(o, in, "the groups do not divide %d channels", in[0].Shape[1])
	case in[1].Shape[0] != in[0].Shape[1] || in[2].Shape[0] != in[0].Shape[1]:
		err = wrong(o, in, "scale and bias must have %d elements, one a channel", in[0].Shape[1])
	default:
		err = checkEps(o, in, o.Eps)
	}
	return typed(dt, first(in), err)
}

// first is the shape of the first operand, if there is one.
func first(in []Type) Shape {
	if len(in) == 0 {
		return nil
	}
	return in[0].Shape
}

// Weights are the scale and the bias.
func (GroupNorm) Weights() []int { return []int{1, 2} }

// Decompose normalises rows of a group's elements, then scales channels.
func (o GroupNorm) Decompose(in ...Type) *Term {
	s := in[0].Shape
	n, channels, rest := planes(s)
	matrix, cube := Shape{n * o.Groups, channels / o.Groups * rest}, Shape{n, channels, rest}
	d, variance := centred(shaped(Leaf(0), s, matrix))
	a, b, c := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	y := shaped(Apply(Map{a.Mul(inverseRoot(b, o.Eps))}, d, variance), matrix, cube)
	return shaped(Apply(Map{a.Mul(b).Add(c)}, y, Leaf(1), Leaf(2)), cube, s)
}

// Gradients differentiates the formula.
func (o GroupNorm) Gradients(in ...Type) ([]*Term, error) { return gradientsOf(o, in) }

// Run normalises in float64.
func (o GroupNorm) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, groupNorm[float32], groupNorm[float64])
}

func groupNorm[T element](o GroupNorm, out Tensor, in []Tensor) {
	x, scale, bias, y := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](out)
	_, channels, rest := planes(in[0].Shape)
	size := channels / o.Groups * rest
	for i := 0; i < len(x); i += size {
		mean, inverse := moments(x[i:i+size], o.Eps)
		for j, v := range x[i : i+size] {
			c := (i + j) / rest % channels
			y[i+j] = T((float64(v)-mean)*inverse*float64(scale[c]) + float64(bias[c]))
		}
	}
}
