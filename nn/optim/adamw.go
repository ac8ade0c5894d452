package optim

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// AdamW is Adam with decoupled weight decay, as torch.optim.AdamW (Loshchilov and Hutter, 2019):
//
//	g ← scale·g
//	m ← β₁·m + (1−β₁)·g
//	v ← β₂·v + (1−β₂)·g²
//	w ← (1 − rate·decay)·w
//	w ← w − rate·m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)     at step t = 1, 2, …
type AdamW struct {
	Beta1, Beta2 float64
	Eps          float64
	Decay        float64 // weight decay
}

var _ device.Optimizer = AdamW{}

func init() {
	register(Definition{Name: "adamw", Title: "AdamW", Takes: map[string]float64{Beta1: .9, Beta2: .999, Eps: 1e-8},
		Rate: 1e-3, Decay: 1e-2,
		Make: func(h Hyper) device.Optimizer {
			return AdamW{Beta1: h.Of[Beta1], Beta2: h.Of[Beta2], Eps: h.Of[Eps], Decay: h.Decay}
		}})
}

var momentState = []string{"exp_avg", "exp_avg_sq"} // PyTorch's names

// Name implements device.Optimizer.
func (AdamW) Name() string { return "adamw" }

// State implements device.Optimizer.
func (AdamW) State() []string { return momentState }

// Passes implements device.Optimizer.
func (o AdamW) Passes() []update.Pass {
	c, step := adam(o.Beta1, o.Beta2, o.Eps)
	c[5] = update.Rate.Mul(step)
	c[6] = expr.Const(1).Sub(update.Rate.Mul(expr.Const(o.Decay).Mul(update.Decays)))
	m, v := moments()
	return []update.Pass{{Betas: [2]float64{o.Beta1, o.Beta2}, Coefficients: c,
		Body: update.Body{W: update.Coefficient(6).Mul(update.W).Sub(adamRatio(m, v)), State: update.States{m, v}}}}
}

// adam has the coefficients of moments and of adamRatio but for number 5, a multiple of step, for a pass with both
// betas. Bias corrections are in ε and in step: with b = √(1−β₂ᵗ) an Adam step is rate·b/(1−β₁ᵗ) · m/(√v + ε·b).
func adam(beta1, beta2, eps float64) (c update.Coefficients, step expr.Expr) {
	b := update.Corrections[1].Sqrt()
	return update.Coefficients{expr.Const(beta1), expr.Const(1 - beta1).Mul(update.Scale), expr.Const(beta2),
		expr.Const(math.Sqrt(1 - beta2)).Mul(update.Scale), expr.Const(eps).Mul(b)}, b.Div(update.Corrections[0])
}

// moments are the next averages of the gradient and of its square.
func moments() (m, v expr.Expr) {
	c := update.Coefficient
	d := c(3).Mul(update.G)
	return c(0).Mul(update.State(0)).Add(c(1).Mul(update.G)), c(2).Mul(update.State(1)).Add(d.Square())
}

// adamRatio is Adam's step.
func adamRatio(m, v expr.Expr) expr.Expr {
	return update.Coefficient(5).Mul(m).Div(v.Sqrt().Add(update.Coefficient(4)))
}

// Check implements device.Optimizer.
func (o AdamW) Check() error { return checkAdam(o.Beta1, o.Beta2, o.Eps, o.Decay) }

func checkAdam(beta1, beta2, eps, decay float64) error {
	for _, x := range []struct {
		name          string
		is, low, high float64
	}{
		{"beta1", beta1, 0, math.Nextafter(1, 0)}, {"beta2", beta2, 0, math.Nextafter(1, 0)},
		{"eps", eps, 0, math.MaxFloat64}, {"weight decay", decay, 0, math.MaxFloat64},
	} {
		if err := inRange(x.name, x.is, x.low, x.high); err != nil {
			return err
		}
	}
	return nil
}
