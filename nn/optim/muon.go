package optim

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// Muon makes the step of each matrix orthogonal (Jordan et al., 2024), as torch.optim.Muon with match_rms_adamw:
//
//	g ← scale·g
//	m ← momentum·m + (1−momentum)·g
//	u = NewtonSchulz((1−momentum)·g + momentum·m)
//	w ← (1 − rate·decay)·w
//	w ← w − rate·0.2·√max(rows, columns)·u
//
// A step then has the root mean square of AdamW's, which all other parameters use at the same rate: biases, norms,
// the first and the last layer. A convolution is the matrix of a row for each output. For matrices the state has m
// and u.
type Muon struct {
	Momentum     float64
	Beta1, Beta2 float64 // of AdamW, as Eps
	Eps          float64
	Decay        float64 // weight decay
}

var _ device.Optimizer = Muon{}

func init() {
	register(Definition{Name: "muon", Title: "Muon", Rate: 1e-3, Decay: .1,
		Takes: map[string]float64{Momentum: .95, Beta1: .9, Beta2: .999, Eps: 1e-8},
		Make: func(h Hyper) device.Optimizer {
			return Muon{Momentum: h.Of[Momentum], Beta1: h.Of[Beta1], Beta2: h.Of[Beta2], Eps: h.Of[Eps],
				Decay: h.Decay}
		}})
}

// newtonSchulz has Keller Jordan's coefficients, which make singular values about 1 in five steps.
var newtonSchulz = update.NewtonSchulz{Steps: 5, A: 3.4445, B: -4.7750, C: 2.0315, Eps: 1e-7}

// Name implements device.Optimizer.
func (Muon) Name() string { return "muon" }

// State implements device.Optimizer, by AdamW's names.
func (Muon) State() []string { return momentState }

// Passes implements device.Optimizer.
func (o Muon) Passes() []update.Pass {
	rest := o.adamW().Passes()[0]
	rest.On = update.Rest
	c := update.Coefficient
	mu, left, scale := c(0), c(1), c(2)
	g := scale.Mul(update.G)
	m := mu.Mul(update.State(0)).Add(left.Mul(g))
	direction := left.Mul(g).Add(mu.Mul(m))
	keep, step := c(0), c(1)
	return []update.Pass{
		rest,
		{On: update.Matrices,
			Coefficients: update.Coefficients{expr.Const(o.Momentum), expr.Const(1 - o.Momentum), update.Scale},
			Body:         update.Body{State: update.States{m, direction}}, Orthogonal: newtonSchulz},
		{On: update.Matrices, Coefficients: update.Coefficients{
			expr.Const(1).Sub(update.Rate.Mul(expr.Const(o.Decay).Mul(update.Decays))),
			update.Rate.Mul(update.Rows.Max(update.Columns).Sqrt().Scale(.2))},
			Body: update.Body{W: keep.Mul(update.W).Sub(step.Mul(update.State(1)))}},
	}
}

func (o Muon) adamW() AdamW {
	return AdamW{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, Decay: o.Decay}
}

// Check implements device.Optimizer.
func (o Muon) Check() error {
	if err := inRange("momentum", o.Momentum, 0, math.Nextafter(1, 0)); err != nil {
		return err
	}
	return o.adamW().Check()
}
