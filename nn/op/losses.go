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

// AsymmetricLoss is binary cross-entropy that counts easy classes less, those that an image does not show by another
// exponent than those that it does (Ridnik et al. 2021), for logits [N,K] and targets [N,K]. With p = sigmoid(logits)
// and m = max(p − Margin, 0) it is
//
//	1/(N·K) Σₙ Σₖ −t·(1−p)^Positive·log p − (1−t)·m^Negative·log(1−m)
//
// The zero value is TargetLoss with Binary.
type AsymmetricLoss struct {
	Positive, Negative float64 // exponents
	Margin             float64 // in [0,1)
}

var _ Composite = AsymmetricLoss{}

// Kind is "asymmetric_loss".
func (AsymmetricLoss) Kind() string { return "asymmetric_loss" }

func (o AsymmetricLoss) String() string {
	return fmt.Sprintf("asymmetric_loss{positive %g, negative %g, margin %g}", o.Positive, o.Negative, o.Margin)
}

// Infer gives a scalar.
func (o AsymmetricLoss) Infer(in ...Type) (Type, error) {
	dt, err := checkTargets(o, in)
	for _, x := range []float64{o.Positive, o.Negative} {
		if err == nil && !(x >= 0 && x <= maxFocus) {
			err = wrong(o, in, "exponents must lie in [0, %d]", maxFocus)
		}
	}
	if err == nil && !(o.Margin >= 0 && o.Margin < 1) {
		err = wrong(o, in, "the margin must lie in [0,1)")
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt), nil
}

// Decompose is a map and its sum.
func (o AsymmetricLoss) Decompose(in ...Type) *Term {
	z, t, one := expr.Arg(0), expr.Arg(1), expr.Const(1)
	// log(1 + exp(z)), without overflow
	softplus := func(z expr.Expr) expr.Expr {
		return z.Max(expr.Const(0)).Add(z.Max(z.Neg()).Neg().Exp().Shift(1).Log())
	}
	shown := power(z.Neg().Sigmoid(), o.Positive).Mul(softplus(z.Neg()))
	excess, log := z.Sigmoid(), softplus(z) // of the margin, and −log of the rest
	if o.Margin > 0 {
		excess = excess.Shift(-o.Margin).Max(expr.Const(0))
		log = z.Neg().Sigmoid().Shift(o.Margin).Min(one).Log().Neg()
	}
	loss := t.Mul(shown).Add(one.Sub(t).Mul(power(excess, o.Negative)).Mul(log))
	return meanLoss(Apply(Map{loss}, Leaf(0), Leaf(1)), in[0].Shape.Size())
}

// Gradients: for the logits only.
func (o AsymmetricLoss) Gradients(in ...Type) ([]*Term, error) { return logitGradient(o, in) }

// Run computes the loss in float64.
func (o AsymmetricLoss) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, asymmetricLoss[float32], asymmetricLoss[float64])
}

func asymmetricLoss[T element](o AsymmetricLoss, out Tensor, in []Tensor) {
	z, t := vec[T](in[0]), vec[T](in[1])
	sum := 0.0
	for i, v := range z {
		sum += o.Of(float64(v), float64(t[i]))
	}
	vec[T](out)[0] = T(sum / float64(len(z)))
}

// Of is the loss of one logit and its target.
func (o AsymmetricLoss) Of(z, t float64) float64 {
	p, rest := 1/(1+math.Exp(-z)), 1/(1+math.Exp(z))
	loss := t * math.Pow(rest, o.Positive) * BinaryLoss(z, 1)
	m, log := p, BinaryLoss(z, 0)
	if o.Margin > 0 {
		m, log = max(p-o.Margin, 0), -math.Log(min(rest+o.Margin, 1))
	}
	return loss + (1-t)*math.Pow(m, o.Negative)*log
}

// DistillLoss is the divergence of a net from its teacher (Hinton et al. 2015), for logits [N,K] and the teacher's
// logits [N,K]:
//
//	Temperature²/N Σₙ KL(softmax(teacher[n]/Temperature) ‖ softmax(logits[n]/Temperature))
//
// The square keeps the size of the gradient as the temperature changes.
type DistillLoss struct {
	Temperature float64
}

var _ Composite = DistillLoss{}

// Kind is "distill_loss".
func (DistillLoss) Kind() string { return "distill_loss" }

func (o DistillLoss) String() string {
	return fmt.Sprintf("distill_loss{temperature %g}", o.Temperature)
}

// Infer gives a scalar.
func (o DistillLoss) Infer(in ...Type) (Type, error) {
	dt, err := checkTargets(o, in)
	if err == nil && !(o.Temperature > 0 && o.Temperature <= MaxTemperature) {
		err = wrong(o, in, "the temperature must be above 0, at most %d", MaxTemperature)
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt), nil
}

// MaxTemperature bounds temperatures: far below it all classes are alike.
const MaxTemperature = 1000

// Decompose computes the logarithms of both probabilities by rows.
func (o DistillLoss) Decompose(in ...Type) *Term {
	a, b := expr.Arg(0), expr.Arg(1)
	logs := func(x *Term) *Term {
		x = Apply(Map{a.Scale(1 / o.Temperature)}, x)
		shifted := Apply(Map{a.Sub(b)}, x, Apply(Reduce{Max, []int{1}}, x))
		sum := Apply(Reduce{Sum, []int{1}}, Apply(Map{a.Exp()}, shifted))
		return Apply(Map{a.Sub(b.Log())}, shifted, sum)
	}
	each := Apply(Map{b.Exp().Mul(b.Sub(a)).Scale(o.Temperature * o.Temperature)}, logs(Leaf(0)), logs(Leaf(1)))
	return meanLoss(each, in[0].Shape[0])
}

// Gradients: for the net's logits only.
func (o DistillLoss) Gradients(in ...Type) ([]*Term, error) { return logitGradient(o, in) }

// Run computes the loss in float64.
func (o DistillLoss) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, distillLoss[float32], distillLoss[float64])
}

func distillLoss[T element](o DistillLoss, out Tensor, in []Tensor) {
	n, k := in[0].Shape[0], in[0].Shape[1]
	rows := [2][]float64{make([]float64, k), make([]float64, k)} // log of the net's and the teacher's probabilities
	sum := 0.0
	for i := range n {
		for s, x := range in {
			for j, v := range vec[T](x)[i*k:][:k] {
				rows[s][j] = float64(v) / o.Temperature
			}
			top, lse := logSumExp(rows[s])
			for j := range rows[s] {
				rows[s][j] -= top + lse
			}
		}
		for j, log := range rows[1] {
			sum += math.Exp(log) * (log - rows[0][j])
		}
	}
	vec[T](out)[0] = T(sum * o.Temperature * o.Temperature / float64(n))
}
