package optim

import (
	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// Lion steps by the sign of a mixture of the gradient and its average, with decoupled weight decay (Chen et al., 2023),
// as timm.optim.Lion:
//
//	g ← scale·g
//	w ← (1 − rate·decay)·w − rate·sign(β₁·m + (1−β₁)·g)
//	m ← β₂·m + (1−β₂)·g
//
// The sign of 0 is 0.
type Lion struct {
	Beta1, Beta2 float64
	Decay        float64 // weight decay
}

var _ device.Optimizer = Lion{}

func init() {
	register(Definition{Name: "lion", Title: "Lion", Takes: map[string]float64{Beta1: .9, Beta2: .99}, Rate: 1e-4,
		Decay: 1e-1, Make: func(h Hyper) device.Optimizer {
			return Lion{Beta1: h.Of[Beta1], Beta2: h.Of[Beta2], Decay: h.Decay}
		}})
}

// Name implements device.Optimizer.
func (Lion) Name() string { return "lion" }

// State implements device.Optimizer, by timm's name.
func (Lion) State() []string { return []string{"exp_avg"} }

// Passes implements device.Optimizer.
func (o Lion) Passes() []update.Pass {
	c, m := update.Coefficient, update.State(0)
	u := c(0).Mul(m).Add(c(1).Mul(update.G))
	zero := expr.Const(0)
	sign := expr.If(zero.Less(u), c(4), expr.If(u.Less(zero), c(4).Neg(), zero)) // times the rate
	return []update.Pass{{
		Coefficients: update.Coefficients{expr.Const(o.Beta1), expr.Const(1 - o.Beta1).Mul(update.Scale),
			expr.Const(o.Beta2), expr.Const(1 - o.Beta2).Mul(update.Scale), update.Rate,
			expr.Const(1).Sub(update.Rate.Mul(expr.Const(o.Decay).Mul(update.Decays)))},
		Body: update.Body{W: c(5).Mul(update.W).Sub(sign), State: update.States{c(2).Mul(m).Add(c(3).Mul(update.G))}},
	}}
}

// Check implements device.Optimizer.
func (o Lion) Check() error { return checkAdam(o.Beta1, o.Beta2, 0, o.Decay) }
