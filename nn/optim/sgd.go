package optim

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// SGD is stochastic gradient descent with momentum, as torch.optim.SGD:
//
//	g ← scale·g + decay·w
//	m ← momentum·m + g
//	w ← w − rate·m            or, Nesterov: w ← w − rate·(g + momentum·m)
//
// Starting from m = 0 the first step has m = g.
type SGD struct {
	Momentum float64
	Decay    float64 // weight decay
	Nesterov bool
}

var _ device.Optimizer = SGD{}

func init() {
	register(Definition{Name: "sgd", Title: "SGD", Takes: map[string]float64{Momentum: .9}, Nesterov: true,
		Make: func(h Hyper) device.Optimizer {
			return SGD{Momentum: h.Of[Momentum], Decay: h.Decay, Nesterov: h.Nesterov}
		}})
}

var momentumState = []string{"momentum"}

// Name implements device.Optimizer.
func (SGD) Name() string { return "sgd" }

// State implements device.Optimizer.
func (SGD) State() []string { return momentumState }

// Passes implements device.Optimizer.
func (o SGD) Passes() []update.Pass {
	decay := expr.Const(o.Decay).Mul(update.Decays)
	return []update.Pass{momentum(o.Momentum, decay, update.Scale, o.Nesterov)}
}

// momentum is a step by momentum, with expressions of scalars for weight decay and for the gradient's factor.
func momentum(momentum float64, decay, scale expr.Expr, nesterov bool) update.Pass {
	rate, mu := update.Coefficient(0), update.Coefficient(1)
	g := update.Coefficient(3).Mul(update.G).Add(update.Coefficient(2).Mul(update.W))
	m := mu.Mul(update.State(0)).Add(g)
	step := m
	if nesterov {
		step = g.Add(mu.Mul(m))
	}
	return update.Pass{Coefficients: update.Coefficients{update.Rate, expr.Const(momentum), decay, scale},
		Body: update.Body{W: update.W.Sub(rate.Mul(step)), State: update.States{m}}}
}

// Check implements device.Optimizer.
func (o SGD) Check() error {
	if err := inRange("momentum", o.Momentum, 0, math.MaxFloat64); err != nil {
		return err
	}
	return inRange("weight decay", o.Decay, 0, math.MaxFloat64)
}
