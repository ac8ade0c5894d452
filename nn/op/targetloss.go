package op

import (
	"fmt"
	"math"

	"onlinerna/nn/op/expr"
)

// TargetLoss is the loss of logits [N,K] by targets [N,K], a number for each image and class, as mixed and weighted
// labels have them:
//
//	softmax: 1/N Σₙ Σₖ −t[n,k]·log softmax(logits[n])[k]
//	binary:  1/(N·K) Σₙ Σₖ log(1 + exp(z[n,k])) − t[n,k]·z[n,k]    for logits z
//
// PyTorch's cross_entropy with probabilities, and binary_cross_entropy_with_logits.
type TargetLoss struct {
	Binary bool
}

// Kind is "target_loss".
func (TargetLoss) Kind() string { return "target_loss" }

func (o TargetLoss) String() string { return fmt.Sprintf("target_loss{binary %v}", o.Binary) }

// Infer gives a scalar.
func (o TargetLoss) Infer(in ...Type) (Type, error) {
	dt, err := checkTargets(o, in)
	if err != nil {
		return Type{}, err
	}
	return T(dt), nil
}

func checkTargets(o Op, in []Type, rest ...operand) (DType, error) {
	dt, err := check(o, in, append([]operand{{"logits", 2, float}, {"targets", 2, float}}, rest...)...)
	if err == nil && !in[0].Shape.Equal(in[1].Shape) {
		err = wrong(o, in, "logits and targets must have the same shape")
	}
	return dt, err
}

// Gradients: for the logits only.
func (o TargetLoss) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(TargetLossGrad(o), Leaf(0), Leaf(1), Leaf(ResultGrad)), nil}, nil
}

// Run computes the loss in float64.
func (o TargetLoss) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, targetLoss[float32], targetLoss[float64])
}

func targetLoss[T element](o TargetLoss, out Tensor, in []Tensor) {
	n, k := in[0].Shape[0], in[0].Shape[1]
	z, t := vec[T](in[0]), vec[T](in[1])
	sum := 0.0
	for i := range n {
		row, target := z[i*k:][:k], t[i*k:][:k]
		top, lse := logSumExp(row)
		for j, v := range row {
			switch {
			case o.Binary:
				sum += BinaryLoss(float64(v), float64(target[j]))
			case target[j] != 0:
				sum += float64(target[j]) * (lse - (float64(v) - top))
			}
		}
	}
	vec[T](out)[0] = T(sum / o.count(n, k))
}

// BinaryLoss is log(1 + exp(z)) − t·z.
func BinaryLoss(z, t float64) float64 {
	return math.Max(z, 0) - t*z + math.Log1p(math.Exp(-math.Abs(z)))
}

// count is the divisor of the sum.
func (o TargetLoss) count(n, k int) float64 {
	if o.Binary {
		return float64(n) * float64(k)
	}
	return float64(n)
}

// TargetLossGrad is the gradient of TargetLoss with respect to the logits, for operands logits, targets and the
// gradient of the loss, a scalar.
type TargetLossGrad struct {
	Binary bool
}

// Kind is "target_loss_grad".
func (TargetLossGrad) Kind() string { return "target_loss_grad" }

func (o TargetLossGrad) String() string { return fmt.Sprintf("target_loss_grad{binary %v}", o.Binary) }

// Infer gives the shape of the logits.
func (o TargetLossGrad) Infer(in ...Type) (Type, error) {
	dt, err := checkTargets(o, in, operand{"gradient", 0, float})
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}

// Run computes the gradient in float64.
func (o TargetLossGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, targetLossGrad[float32], targetLossGrad[float64])
}

func targetLossGrad[T element](o TargetLossGrad, out Tensor, in []Tensor) {
	n, k := in[0].Shape[0], in[0].Shape[1]
	z, t, dx := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	g := float64(vec[T](in[2])[0]) / TargetLoss(o).count(n, k)
	for i := range n {
		row, target, to := z[i*k:][:k], t[i*k:][:k], dx[i*k:][:k]
		top, lse := logSumExp(row)
		sum := 0.0
		for _, v := range target {
			sum += float64(v)
		}
		for j, v := range row {
			p := sum * math.Exp(float64(v)-top-lse)
			if o.Binary {
				p = 1 / (1 + math.Exp(-float64(v)))
			}
			to[j] = T(g * (p - float64(target[j])))
		}
	}
}

// RegressionLoss is the loss of outputs [N,K] by numbers [N,K], for errors e = output − number:
//
//	1/(N·K) Σₙ Σₖ e²                                    if Delta is 0
//	1/(N·K) Σₙ Σₖ e²/2 if |e| < Delta, else Delta·(|e| − Delta/2)
//
// PyTorch's mse_loss and huber_loss.
type RegressionLoss struct {
	Delta float64
}

var _ Composite = RegressionLoss{}

// Kind is "regression_loss".
func (RegressionLoss) Kind() string { return "regression_loss" }

func (o RegressionLoss) String() string { return fmt.Sprintf("regression_loss{delta %g}", o.Delta) }

// Infer gives a scalar.
func (o RegressionLoss) Infer(in ...Type) (Type, error) {
	dt, err := checkTargets(o, in)
	if err == nil && !(o.Delta >= 0 && o.Delta < math.MaxFloat32) {
		err = wrong(o, in, "delta must be finite and not negative")
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt), nil
}

// Decompose is a map and its sum.
func (o RegressionLoss) Decompose(in ...Type) *Term {
	e := expr.Arg(0).Sub(expr.Arg(1))
	loss := e.Square()
	if o.Delta > 0 {
		size := e.Max(e.Neg())
		within := size.Min(expr.Const(o.Delta))
		loss = within.Mul(size.Sub(within.Scale(.5)))
	}
	return meanLoss(Apply(Map{loss}, Leaf(0), Leaf(1)), in[0].Shape.Size())
}

// Gradients: for the outputs only.
func (o RegressionLoss) Gradients(in ...Type) ([]*Term, error) { return logitGradient(o, in) }

// Run computes the loss in float64.
func (o RegressionLoss) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, regressionLoss[float32], regressionLoss[float64])
}

func regressionLoss[T element](o RegressionLoss, out Tensor, in []Tensor) {
	z, t := vec[T](in[0]), vec[T](in[1])
	sum := 0.0
	for i, v := range z {
		e := math.Abs(float64(v) - float64(t[i]))
		switch {
		case o.Delta == 0:
			sum += e * e
		case e < o.Delta:
			sum += e * e / 2
		default:
			sum += o.Delta * (e - o.Delta/2)
		}
	}
	vec[T](out)[0] = T(sum / float64(len(z)))
}
