package op

import (
	"fmt"
	"math"

	"onlinerna/nn/op/expr"
)

// RMSNorm divides x [...,C] by its root mean square along the last dimension (Zhang, Sennrich 2019), for operands x,
// scale [C]:
//
//	y = scale · x/√(mean(x²) + Eps)
type RMSNorm struct {
	Eps float64
}

var _ Composite = RMSNorm{}

// Kind is "rms_norm".
func (RMSNorm) Kind() string { return "rms_norm" }

func (o RMSNorm) String() string { return fmt.Sprintf("rms_norm{eps %g}", o.Eps) }

// Infer gives the shape of x.
func (o RMSNorm) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float}, operand{"scale", 1, float})
	return lastNorm(o, in, dt, o.Eps, err, 1)
}

// Weights are the scale.
func (RMSNorm) Weights() []int { return []int{1} }

// Decompose reduces rows and maps.
func (o RMSNorm) Decompose(in ...Type) *Term {
	s := in[0].Shape
	x := asRows(Leaf(0), s)
	squares := Apply(Reduce{Mean, []int{1}}, Apply(Map{expr.Arg(0).Square()}, x))
	y := Apply(Map{expr.Arg(0).Mul(inverseRoot(expr.Arg(1), o.Eps)).Mul(expr.Arg(2))}, x, squares, Leaf(1))
	n, width := rows(s)
	return shaped(y, Shape{n, width}, s)
}

// Gradients differentiates the formula.
func (o RMSNorm) Gradients(in ...Type) ([]*Term, error) { return gradientsOf(o, in) }

// Run divides in float64.
func (o RMSNorm) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, rmsNorm[float32], rmsNorm[float64])
}

func rmsNorm[T element](o RMSNorm, out Tensor, in []Tensor) {
	x, scale, y := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	c := len(scale)
	for i := 0; i < len(x); i += c {
		squares := 0.0
		for _, v := range x[i : i+c] {
			squares += float64(v) * float64(v)
		}
		inverse := 1 / math.Sqrt(squares/float64(c)+o.Eps)
		for j, v := range x[i : i+c] {
			y[i+j] = T(float64(v) * inverse * float64(scale[j]))
		}
	}
}
