package op

import (
	"fmt"
	"math"

	"onlinerna/nn/op/expr"
)

// LayerNorm normalises x [...,C] along its last dimension (Ba, Kiros, Hinton 2016), for operands x, scale [C], bias
// [C]:
//
//	y = scale · (x − mean)/√(var + Eps) + bias
//
// with the mean and the biased variance of the C elements.
type LayerNorm struct {
	Eps float64
}

var _ Composite = LayerNorm{}

// Kind is "layer_norm".
func (LayerNorm) Kind() string { return "layer_norm" }

func (o LayerNorm) String() string { return fmt.Sprintf("layer_norm{eps %g}", o.Eps) }

// Infer gives the shape of x.
func (o LayerNorm) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float}, operand{"scale", 1, float}, operand{"bias", 1, float})
	return lastNorm(o, in, dt, o.Eps, err, 1, 2)
}

// lastNorm checks x [...,C] and the operands of the given numbers, which are vectors [C].
func lastNorm(o Op, in []Type, dt DType, eps float64, err error, vectors ...int) (Type, error) {
	if err == nil && len(in[0].Shape) < 2 {
		err = wrong(o, in, "the input must have 2 dimensions or more")
	}
	for _, i := range vectors {
		if err == nil && in[i].Shape[0] != in[0].Shape[len(in[0].Shape)-1] {
			err = wrong(o, in, "operand %d must have one element for each of the %d of a row", i,
				in[0].Shape[len(in[0].Shape)-1])
		}
	}
	if err == nil {
		err = checkEps(o, in, eps)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}

// Weights are the scale and the bias.
func (LayerNorm) Weights() []int { return []int{1, 2} }

// centred is x − mean and the variance, for rows x [R,C].
func centred(x *Term) (d, variance *Term) {
	mean := Apply(Reduce{Mean, []int{1}}, x)
	d = Apply(Map{expr.Arg(0).Sub(expr.Arg(1))}, x, mean)
	return d, Apply(Reduce{Mean, []int{1}}, Apply(Map{expr.Arg(0).Square()}, d))
}

// inverseRoot is 1/√(a + eps).
func inverseRoot(a expr.Expr, eps float64) expr.Expr { return expr.Const(1).Div(a.Shift(eps).Sqrt()) }

// Decompose reduces rows and maps.
func (o LayerNorm) Decompose(in ...Type) *Term {
	s := in[0].Shape
	d, variance := centred(asRows(Leaf(0), s))
	x, v, scale, bias := expr.Arg(0), expr.Arg(1), expr.Arg(2), expr.Arg(3)
	y := Apply(Map{x.Mul(inverseRoot(v, o.Eps)).Mul(scale).Add(bias)}, d, variance, Leaf(1), Leaf(2))
	n, width := rows(s)
	return shaped(y, Shape{n, width}, s)
}

// Gradients share nothing: each computes the statistics of its rows again.
func (o LayerNorm) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	x, scale, dy := Leaf(0), Leaf(1), Leaf(ResultGrad)
	return []*Term{
		Apply(LayerNormGradInput{o.Eps}, x, scale, dy),
		Apply(LayerNormGradScale{o.Eps}, x, dy),
		Apply(ChannelSum{}, asRows(dy, in[0].Shape)),
	}, nil
}

// Run normalises in float64.
func (o LayerNorm) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, layerNorm[float32], layerNorm[float64])
}

// moments are the mean of x and 1/√(var + eps).
func moments[T element](x []T, eps float64) (mean, inverse float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	squares := 0.0
	for _, v := range x {
		d := float64(v) - mean
		squares += d * d
	}
	return mean, 1 / math.Sqrt(squares/float64(len(x))+eps)
}

func layerNorm[T element](o LayerNorm, out Tensor, in []Tensor) {
	x, scale, bias, y := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](out)
	c := len(scale)
	for i := 0; i < len(x); i += c {
		mean, inverse := moments(x[i:i+c], o.Eps)
		for j, v := range x[i : i+c] {
			y[i+j] = T((float64(v)-mean)*inverse*float64(scale[j]) + float64(bias[j]))
		}
	}
}

// LayerNormGradInput is the gradient of LayerNorm with respect to x, for operands x, scale and dy. With
// x̂ = (x−mean)/√(var+Eps) and g = scale·dy it is
//
//	dx = (g − mean(g) − x̂ · mean(g·x̂))/√(var+Eps)
type LayerNormGradInput struct {
	Eps float64
}

var _ Composite = LayerNormGradInput{}

// Kind is "layer_norm_grad_input".
func (LayerNormGradInput) Kind() string { return "layer_norm_grad_input" }

func (o LayerNormGradInput) String() string {
	return fmt.Sprintf("layer_norm_grad_input{eps %g}", o.Eps)
}

// Infer gives the shape of x.
func (o LayerNormGradInput) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float}, operand{"scale", 1, float}, operand{"gradient", -1, float})
	if err == nil && !in[2].Shape.Equal(in[0].Shape) {
		err = wrong(o, in, "the gradient must have the input's shape")
	}
	return lastNorm(o, in, dt, o.Eps, err, 1)
}

// Weights are the scale.
func (LayerNormGradInput) Weights() []int { return []int{1} }

// Overwrites lists x and dy.
func (LayerNormGradInput) Overwrites(...Type) []int { return []int{0, 2} }

// Decompose reduces rows and maps.
func (o LayerNormGradInput) Decompose(in ...Type) *Term {
	s := in[0].Shape
	d, variance := centred(asRows(Leaf(0), s))
	a, b, c, e := expr.Arg(0), expr.Arg(1), expr.Arg(2), expr.Arg(3)
	g := Apply(Map{a.Mul(b)}, asRows(Leaf(2), s), Leaf(1))
	mean := Apply(Reduce{Mean, []int{1}}, g)
	mixed := Apply(Reduce{Mean, []int{1}}, Apply(Map{a.Mul(b)}, g, d))
	inverse := Apply(Map{inverseRoot(a, o.Eps)}, variance)
	factor := Apply(Map{a.Mul(b.Square())}, mixed, inverse)
	dx := Apply(Map{a.Sub(b).Sub(c.Mul(e)).Mul(expr.Arg(4))}, g, mean, d, factor, inverse)
	n, width := rows(s)
	return shaped(dx, Shape{n, width}, s)
}

// Run computes the gradient in float64.
func (o LayerNormGradInput) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, layerNormGradInput[float32], layerNormGradInput[float64])
}

func layerNormGradInput[T element](o LayerNormGradInput, out Tensor, in []Tensor) {
	x, scale, dy, dx := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](out)
	c := len(scale)
	for i := 0; i < len(x); i += c {
		mean, inverse := moments(x[i:i+c], o.Eps)
		sum, mixed := 0.0, 0.0
		for j, v := range x[i : i+c] {
			g := float64(scale[j]) * float64(dy[i+j])
			sum += g
			mixed += g * (float64(v) - mean) * inverse
		}
		sum, mixed = sum/float64(c), mixed/float64(c)
		for j, v := range x[i : i+c] {
			dx[i+j] = T((float64(scale[j])*float64(dy[i+j]) - sum - (float64(v)-mean)*inverse*mixed) * inverse)
		}
	}
}

// LayerNormGradScale is the gradient of LayerNorm with respect to the scale [C], for operands x and dy: the sum over
// rows of dy·(x−mean)/√(var+Eps).
type LayerNormGradScale struct {
	Eps float64
}

var _ Composite = LayerNormGradScale{}

// Kind is "layer_norm_grad_scale".
func (LayerNormGradScale) Kind() string { return "layer_norm_grad_scale" }

func (o LayerNormGradScale) String() string {
	return fmt.Sprintf("layer_norm_grad_scale{eps %g}", o.Eps)
}

// Infer gives [C].
func (o LayerNormGradScale) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float}, operand{"gradient", -1, float})
	if err == nil && !in[1].Shape.Equal(in[0].Shape) {
		err = wrong(o, in, "the gradient must have the input's shape")
	}
	t, err := lastNorm(o, in, dt, o.Eps, err)
	if err != nil {
		return Type{}, err
	}
	return T(dt, t.Shape[len(t.Shape)-1]), nil
}

// Decompose reduces rows, maps and sums.
func (o LayerNormGradScale) Decompose(in ...Type) *Term {
	s := in[0].Shape
	d, variance := centred(asRows(Leaf(0), s))
	a, v, dy := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	return Apply(ChannelSum{}, Apply(Map{a.Mul(inverseRoot(v, o.Eps)).Mul(dy)}, d, variance, asRows(Leaf(1), s)))
}

// Run sums in float64.
func (o LayerNormGradScale) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, layerNormGradScale[float32], layerNormGradScale[float64])
}

func layerNormGradScale[T element](o LayerNormGradScale, out Tensor, in []Tensor) {
	x, dy, y := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	c := len(y)
	sums := make([]float64, c)
	for i := 0; i < len(x); i += c {
		mean, inverse := moments(x[i:i+c], o.Eps)
		for j, v := range x[i : i+c] {
			sums[j] += float64(dy[i+j]) * (float64(v) - mean) * inverse
		}
	}
	for j, s := range sums {
		y[j] = T(s)
	}
}
