package optim

import (
	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// Adam divides an average of the gradient by the root of one of its squares (Kingma and Ba, 2015), as torch.optim.Adam:
//
//	g ← scale·g + decay·w
//	m ← β₁·m + (1−β₁)·g
//	v ← β₂·v + (1−β₂)·g²
//	w ← w − rate·m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)     at step t = 1, 2, …
//
// AdamW has another weight decay.
type Adam struct {
	Beta1, Beta2 float64
	Eps          float64
	Decay        float64 // weight decay
}

var _ device.Optimizer = Adam{}

func init() {
	register(Definition{Name: "adam", Title: "Adam", Takes: map[string]float64{Beta1: .9, Beta2: .999,
		Eps: 1e-8}, Rate: 1e-3,
		Make: func(h Hyper) device.Optimizer {
			return Adam{Beta1: h.Of[Beta1], Beta2: h.Of[Beta2], Eps: h.Of[Eps], Decay: h.Decay}
		}})
}

// Name implements device.Optimizer.
func (Adam) Name() string { return "adam" }

// State implements device.Optimizer.
func (Adam) State() []string { return momentState }

// Passes implements device.Optimizer. The averages are of g, which is scaled before: factors 1−β are not the scale's.
func (o Adam) Passes() []update.Pass {
	c, step := adam(o.Beta1, o.Beta2, o.Eps)
	c[1], c[3] = expr.Const(1-o.Beta1), expr.Const(1-o.Beta2)
	c[5], c[6], c[7] = update.Rate.Mul(step), expr.Const(o.Decay).Mul(update.Decays), update.Scale
	k := update.Coefficient
	g := k(7).Mul(update.G).Add(k(6).Mul(update.W))
	m := k(0).Mul(update.State(0)).Add(k(1).Mul(g))
	v := k(2).Mul(update.State(1)).Add(k(3).Mul(g.Square()))
	return []update.Pass{{Betas: [2]float64{o.Beta1, o.Beta2}, Coefficients: c,
		Body: update.Body{W: update.W.Sub(adamRatio(m, v)), State: update.States{m, v}}}}
}

// Check implements device.Optimizer.
func (o Adam) Check() error { return checkAdam(o.Beta1, o.Beta2, o.Eps, o.Decay) }
