package op

import (
	"fmt"
	"math"

	"onlinerna/nn/op/expr"
)

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
