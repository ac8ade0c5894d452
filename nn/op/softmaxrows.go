package op

import (
	"math"

	"onlinerna/nn/op/expr"
)

// Softmax is exp(x)/Σ exp(x) along the last dimension of x, without overflow.
type Softmax struct{}

var _ Composite = Softmax{}

// Kind is "softmax".
func (Softmax) Kind() string { return "softmax" }

func (Softmax) String() string { return "softmax" }

// Infer gives the shape of x.
func (o Softmax) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	return lastNorm(o, in, dt, 0, err)
}

// Overwrites lists x.
func (Softmax) Overwrites(...Type) []int { return []int{0} }

// Decompose reduces rows and maps.
func (o Softmax) Decompose(in ...Type) *Term {
	s := in[0].Shape
	x := asRows(Leaf(0), s)
	powers := Apply(Map{expr.Arg(0).Sub(expr.Arg(1)).Exp()}, x, Apply(Reduce{Max, []int{1}}, x))
	y := Apply(Map{expr.Arg(0).Div(expr.Arg(1))}, powers, Apply(Reduce{Sum, []int{1}}, powers))
	n, width := rows(s)
	return shaped(y, Shape{n, width}, s)
}

// Gradients needs the result only.
func (o Softmax) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(SoftmaxGrad{}, Leaf(Result), Leaf(ResultGrad))}, nil
}

// Run sums in float64.
func (o Softmax) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, softmax[float32], softmax[float64])
}

func softmax[T element](_ Softmax, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	_, c := rows(out.Shape)
	p := make([]float64, c)
	for i := 0; i < len(x); i += c {
		top, sum := math.Inf(-1), 0.0
		for _, v := range x[i : i+c] {
			top = max(top, float64(v))
		}
		for j, v := range x[i : i+c] {
			p[j] = math.Exp(float64(v) - top)
			sum += p[j]
		}
		for j, v := range p {
			y[i+j] = T(v / sum)
		}
	}
}

// SoftmaxGrad is the gradient of Softmax for operands y and dy: y·(dy − Σ dy·y).
type SoftmaxGrad struct{}

var _ Composite = SoftmaxGrad{}

// Kind is "softmax_grad".
func (SoftmaxGrad) Kind() string { return "softmax_grad" }

func (SoftmaxGrad) String() string { return "softmax_grad" }

// Infer gives the shape of both operands.
func (o SoftmaxGrad) Infer(in ...Type) (Type, error) {
	t, err := pair(o, in, "result", "gradient")
	return lastNorm(o, in, t.DType, 0, err)
}

// Overwrites lists both operands.
func (SoftmaxGrad) Overwrites(...Type) []int { return []int{0, 1} }

// Decompose reduces rows and maps.
func (o SoftmaxGrad) Decompose(in ...Type) *Term {
	s := in[0].Shape
	a, b, c := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	y, dy := asRows(Leaf(0), s), asRows(Leaf(1), s)
	sum := Apply(Reduce{Sum, []int{1}}, Apply(Map{a.Mul(b)}, y, dy))
	n, width := rows(s)
	return shaped(Apply(Map{a.Mul(b.Sub(c))}, y, dy, sum), Shape{n, width}, s)
}

// Run sums in float64.
func (o SoftmaxGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, softmaxGrad[float32], softmaxGrad[float64])
}

func softmaxGrad[T element](_ SoftmaxGrad, out Tensor, in []Tensor) {
	y, dy, dx := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	_, c := rows(out.Shape)
	for i := 0; i < len(y); i += c {
		sum := 0.0
		for j, v := range y[i : i+c] {
			sum += float64(v) * float64(dy[i+j])
		}
		for j, v := range y[i : i+c] {
			dx[i+j] = T(float64(v) * (float64(dy[i+j]) - sum))
		}
	}
}
