package optim

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// LARS is SGD with a rate for each tensor, by layer-wise adaptive rate scaling (You, Gitman and Ginsburg, 2017):
//
//	g ← scale·g
//	r = trust·‖w‖ / (‖g‖ + decay·‖w‖ + ε)     of the tensor, or 1 where ‖w‖ or ‖g‖ is 0
//	g ← r·(g + decay·w)
//	m ← momentum·m + g
//	w ← w − rate·m            or, Nesterov: w ← w − rate·(g + momentum·m)
//
// The rate stands outside of the momentum, as in PyTorch's SGD and timm's Lars, not inside as in the paper: the two
// differ while the rate changes. Tensors without decay have r = 1. That is timm.optim.Lars with always_adapt for the
// tensors that decay.
type LARS struct {
	Momentum float64
	Decay    float64 // weight decay
	Trust    float64 // trust coefficient
	Eps      float64
	Nesterov bool
}

var _ device.Optimizer = LARS{}

func init() {
	register(Definition{Name: "lars", Title: "LARS", Takes: map[string]float64{Momentum: .9, TrustCoefficient: 1e-3,
		Eps: 1e-8}, Rate: 1, Decay: 5e-5,
		Nesterov: true, Make: func(h Hyper) device.Optimizer {
			return LARS{Momentum: h.Of[Momentum], Decay: h.Decay, Trust: h.Of[TrustCoefficient], Eps: h.Of[Eps],
				Nesterov: h.Nesterov}
		}})
}

// Name implements device.Optimizer.
func (LARS) Name() string { return "lars" }

// State implements device.Optimizer.
func (LARS) State() []string { return momentumState }

// Passes implements device.Optimizer: once the ratios are known the step is SGD's. Gradients are measured before they
// are scaled.
func (o LARS) Passes() []update.Pass {
	w, g := update.Norms[0], update.Scale.Abs().Mul(update.Norms[1])
	ratio := expr.Const(o.Trust).Mul(w).Div(g.Add(expr.Const(o.Decay).Mul(w)).Shift(o.Eps))
	decay := expr.Const(o.Decay).Mul(update.Ratio).Mul(update.Decays)
	return []update.Pass{
		{Body: update.Body{Squares: [2]expr.Expr{update.W, update.G}}, Ratio: ratio},
		momentum(o.Momentum, decay, update.Scale.Mul(update.Ratio), o.Nesterov),
	}
}

// Check implements device.Optimizer.
func (o LARS) Check() error {
	if err := (SGD{Momentum: o.Momentum, Decay: o.Decay}).Check(); err != nil {
		return err
	}
	if err := inRange("trust coefficient", o.Trust, math.SmallestNonzeroFloat64, math.MaxFloat64); err != nil {
		return err
	}
	return inRange("eps", o.Eps, 0, math.MaxFloat64)
}
