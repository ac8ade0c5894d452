package optim

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// LAMB is Adam with a rate for each tensor (You et al., 2020), as timm.optim.Lamb and apex's FusedLAMB:
//
//	g ← scale·g / max(1, ‖scale·g‖/max norm)       with the norm of all parameters' gradient
//	m ← β₁·m + (1−β₁)·g
//	v ← β₂·v + (1−β₂)·g²
//	u = m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + decay·w   at step t = 1, 2, …
//	r = ‖w‖/‖u‖                                    of the tensor, or 1 where ‖w‖ or ‖u‖ is 0
//	w ← w − rate·r·u
//
// Tensors without decay have r = 1. That is timm's Lamb with always_adapt for the tensors that decay; the paper's
// function φ of ‖w‖ is the identity.
type LAMB struct {
	Beta1, Beta2 float64
	Eps          float64
	Decay        float64 // weight decay
	ClipNorm     float64 // the largest norm of the whole gradient; 0: any
}

var _ device.Limited = LAMB{}

func init() {
	register(Definition{Name: "lamb", Title: "LAMB", Takes: map[string]float64{Beta1: .9, Beta2: .999, Eps: 1e-6,
		MaxGradNorm: 1}, Rate: 1e-2, Decay: 1e-2,
		Make: func(h Hyper) device.Optimizer {
			return LAMB{Beta1: h.Of[Beta1], Beta2: h.Of[Beta2], Eps: h.Of[Eps], Decay: h.Decay,
				ClipNorm: h.Of[MaxGradNorm]}
		}})
}

// Name implements device.Optimizer.
func (LAMB) Name() string { return "lamb" }

// State implements device.Optimizer.
func (LAMB) State() []string { return momentState }

// Passes implements device.Optimizer: the first moves the averages and measures u, the second makes the step.
func (o LAMB) Passes() []update.Pass {
	c, step := adam(o.Beta1, o.Beta2, o.Eps)
	c[5], c[6], c[7] = step, expr.Const(o.Decay).Mul(update.Decays), update.Rate.Mul(update.Ratio)
	u := func(m, v expr.Expr) expr.Expr {
		return adamRatio(m, v).Add(update.Coefficient(6).Mul(update.W))
	}
	m, v := moments()
	betas := [2]float64{o.Beta1, o.Beta2}
	return []update.Pass{
		{Betas: betas, Coefficients: c, Body: update.Body{State: update.States{m, v},
			Squares: [2]expr.Expr{update.W, u(m, v)}},
			Ratio: update.Norms[0].Div(update.Norms[1])},
		{Betas: betas, Coefficients: c,
			Body: update.Body{W: update.W.Sub(update.Coefficient(7).Mul(u(update.State(0), update.State(1))))}},
	}
}

// MaxNorm implements device.Limited.
func (o LAMB) MaxNorm() float64 { return o.ClipNorm }

// Check implements device.Optimizer.
func (o LAMB) Check() error {
	if err := checkAdam(o.Beta1, o.Beta2, o.Eps, o.Decay); err != nil {
		return err
	}
	return inRange("largest norm of the gradient", o.ClipNorm, 0, math.MaxFloat64)
}
