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

// Decompose normalises images [N,C,H,W] by means of their channels, since devices store pixels in orders of their own,
// and other operands as rows of a group's elements.
func (o GroupNorm) Decompose(in ...Type) *Term {
	s := in[0].Shape
	a, b, c := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	if len(s) == 4 {
		mean, inverse := o.moments(s)
		return Apply(Map{a.Sub(b).Mul(c).Mul(expr.Arg(3)).Add(expr.Arg(4))}, Leaf(0), mean, inverse, Leaf(1), Leaf(2))
	}
	n, channels, rest := planes(s)
	matrix, cube := Shape{n * o.Groups, channels / o.Groups * rest}, Shape{n, channels, rest}
	d, variance := centred(shaped(Leaf(0), s, matrix))
	y := shaped(Apply(Map{a.Mul(inverseRoot(b, o.Eps))}, d, variance), matrix, cube)
	return shaped(Apply(Map{a.Mul(b).Add(c)}, y, Leaf(1), Leaf(2)), cube, s)
}

// moments are the mean and 1/√(var + Eps) of the group of each channel of images of shape s, [N,C].
func (o GroupNorm) moments(s Shape) (mean, inverse *Term) {
	a, b := expr.Arg(0), expr.Arg(1)
	mean = o.ofGroups(s, Apply(GlobalAvgPool{}, Leaf(0)))
	squares := Apply(GlobalAvgPool{}, Apply(Map{a.Sub(b).Square()}, Leaf(0), mean))
	return mean, Apply(Map{inverseRoot(a, o.Eps)}, o.ofGroups(s, squares))
}

// ofGroups replaces the numbers of channels, [N,C] for images of shape s, by the means of their groups.
func (o GroupNorm) ofGroups(s Shape, t *Term) *Term {
	all, groups := Shape{s[0], s[1]}, Shape{s[0] * o.Groups, s[1] / o.Groups}
	if groups[1] == 1 {
		return t
	}
	return shaped(Apply(Expand{groups}, Apply(Reduce{Mean, []int{1}}, shaped(t, all, groups))), groups, all)
}

// Gradients are, for images, with x̂ = (x−mean)/√(var+Eps), g = scale·dy and means over groups,
//
//	dx = (g − mean(g) − x̂ · mean(g·x̂))/√(var+Eps)
//
// and sums of dy·x̂ and of dy; for other operands those of the formula.
func (o GroupNorm) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	s := in[0].Shape
	if len(s) != 4 {
		return gradientsOf(o, in)
	}
	x, scale, dy := Leaf(0), Leaf(1), Leaf(ResultGrad)
	a, b, c, d := expr.Arg(0), expr.Arg(1), expr.Arg(2), expr.Arg(3)
	mean, inverse := o.moments(s)
	sloped := Apply(GlobalAvgPool{}, Apply(Map{a.Sub(b).Mul(c).Mul(d)}, x, mean, inverse, dy))
	scaled := func(t *Term) *Term { return o.ofGroups(s, Apply(Map{a.Mul(b)}, t, scale)) }
	inner := expr.Arg(4).Mul(d).Sub(expr.Arg(5)).Sub(a.Sub(b).Mul(c).Mul(expr.Arg(6)))
	return []*Term{
		Apply(Map{c.Mul(inner)}, x, mean, inverse, dy, scale, scaled(Apply(GlobalAvgPool{}, dy)), scaled(sloped)),
		Apply(Map{a.Scale(float64(s[2] * s[3]))}, Apply(ChannelSum{}, sloped)),
		Apply(ChannelSum{}, dy),
	}, nil
}

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
