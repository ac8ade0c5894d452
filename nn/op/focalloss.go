package op

import (
	"fmt"
	"math"

	"onlinerna/nn/op/expr"
)

// FocalLoss is cross-entropy in which a class that already has the probability p counts (1−p)^Gamma as much (Lin et al.
// 2017), for logits [N,K] and targets [N,K]:
//
//	1/N Σₙ Σₖ −t[n,k]·(1 − p[n,k])^Gamma·log p[n,k]    for p = softmax(logits)
//
// Gamma 0 is TargetLoss.
type FocalLoss struct {
	Gamma float64
}

var _ Composite = FocalLoss{}

// Kind is "focal_loss".
func (FocalLoss) Kind() string { return "focal_loss" }

func (o FocalLoss) String() string { return fmt.Sprintf("focal_loss{gamma %g}", o.Gamma) }

// Infer gives a scalar.
func (o FocalLoss) Infer(in ...Type) (Type, error) {
	dt, err := checkTargets(o, in)
	if err == nil && !(o.Gamma >= 0 && o.Gamma <= maxFocus) {
		err = wrong(o, in, "gamma must lie in [0, %d]", maxFocus)
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt), nil
}

// maxFocus bounds exponents of probabilities: beyond it nothing is left of most losses.
const maxFocus = 20

// Decompose computes log p by rows.
func (o FocalLoss) Decompose(in ...Type) *Term {
	a, b := expr.Arg(0), expr.Arg(1)
	x := Leaf(0)
	shifted := Apply(Map{a.Sub(b)}, x, Apply(Reduce{Max, []int{1}}, x))
	sum := Apply(Reduce{Sum, []int{1}}, Apply(Map{a.Exp()}, shifted))
	logs := Apply(Map{a.Sub(b.Log())}, shifted, sum)
	loss := power(expr.Const(1).Sub(a.Exp()), o.Gamma).Mul(a).Mul(b).Neg()
	each := Apply(Map{expr.If(b.Equal(expr.Const(0)), expr.Const(0), loss)}, logs, Leaf(1))
	return meanLoss(each, in[0].Shape[0])
}

// power is a^exponent for a of [0,1] and an exponent that is not negative, with a finite derivative.
func power(a expr.Expr, exponent float64) expr.Expr {
	switch exponent {
	case 0:
		return expr.Const(1)
	case 1:
		return a
	case 2:
		return a.Square()
	}
	const least = 1e-30 // a number of float32
	return a.Max(expr.Const(least)).Log().Scale(exponent).Exp()
}

// meanLoss is the sum of the matrix t by a number, as a scalar.
func meanLoss(t *Term, of int) *Term {
	sum := Apply(Reduce{Sum, []int{0, 1}}, t)
	return shaped(Apply(Map{expr.Arg(0).Scale(1 / float64(of))}, sum), Shape{1, 1}, Shape{})
}

// Gradients: for the logits only.
func (o FocalLoss) Gradients(in ...Type) ([]*Term, error) { return logitGradient(o, in) }

// logitGradient differentiates the formula of a loss of logits and targets by the logits.
func logitGradient(o Composite, in []Type) ([]*Term, error) {
	all, err := gradientsOf(o, in)
	if err != nil {
		return nil, err
	}
	return []*Term{all[0], nil}, nil
}

// Run computes the loss in float64.
func (o FocalLoss) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, focalLoss[float32], focalLoss[float64])
}

func focalLoss[T element](o FocalLoss, out Tensor, in []Tensor) {
	n, k := in[0].Shape[0], in[0].Shape[1]
	z, t := vec[T](in[0]), vec[T](in[1])
	sum := 0.0
	for i := range n {
		row := z[i*k:][:k]
		top, lse := logSumExp(row)
		for j, target := range t[i*k:][:k] {
			if target != 0 {
				log := float64(row[j]) - top - lse
				sum -= float64(target) * math.Pow(-math.Expm1(log), o.Gamma) * log
			}
		}
	}
	vec[T](out)[0] = T(sum / float64(n))
}
