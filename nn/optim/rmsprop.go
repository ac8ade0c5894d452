package optim

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// RMSprop divides the gradient by the root of an average of its squares (Hinton, 2012), as torch.optim.RMSprop with α =
// β₂:
//
//	g ← scale·g + decay·w
//	v ← β₂·v + (1−β₂)·g²
//	m ← momentum·m + g / (√v + ε)
//	w ← w − rate·m
type RMSprop struct {
	Momentum float64
	Beta2    float64
	Eps      float64
	Decay    float64 // weight decay
}

var _ device.Optimizer = RMSprop{}

func init() {
	register(Definition{Name: "rmsprop", Title: "RMSprop",
		Takes: map[string]float64{Momentum: 0, Beta2: .99, Eps: 1e-8}, Rate: 1e-2,
		Make: func(h Hyper) device.Optimizer {
			return RMSprop{Momentum: h.Of[Momentum], Beta2: h.Of[Beta2], Eps: h.Of[Eps], Decay: h.Decay}
		}})
}

// Name implements device.Optimizer.
func (RMSprop) Name() string { return "rmsprop" }

// State implements device.Optimizer, by PyTorch's names.
func (RMSprop) State() []string { return []string{"momentum_buffer", "square_avg"} }

// Passes implements device.Optimizer.
func (o RMSprop) Passes() []update.Pass {
	c := update.Coefficient
	rate, mu, decay, scale, beta, rest, eps := c(0), c(1), c(2), c(3), c(4), c(5), c(6)
	g := scale.Mul(update.G).Add(decay.Mul(update.W))
	v := beta.Mul(update.State(1)).Add(rest.Mul(g.Square()))
	m := mu.Mul(update.State(0)).Add(g.Div(v.Sqrt().Add(eps)))
	return []update.Pass{{
		Coefficients: update.Coefficients{update.Rate, expr.Const(o.Momentum), expr.Const(o.Decay).Mul(update.Decays),
			update.Scale,
			expr.Const(o.Beta2), expr.Const(1 - o.Beta2), expr.Const(o.Eps)},
		Body: update.Body{W: update.W.Sub(rate.Mul(m)), State: update.States{m, v}},
	}}
}

// Check implements device.Optimizer.
func (o RMSprop) Check() error {
	if err := inRange("momentum", o.Momentum, 0, math.MaxFloat64); err != nil {
		return err
	}
	return checkAdam(0, o.Beta2, o.Eps, o.Decay)
}
