package optim

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// scheduleFree is the common part of the schedule-free optimisers (Defazio et al., 2024, "The Road Less Scheduled").
// With a step u, the gradient of SGD or that of Adam, the iterate is the average x of points z, and gradients are
// taken at y between them:
//
//	z ← z − rate·u
//	x ← (1−c)·x + c·z        c = rate²/Σ rate² over the steps so far, with the largest rate up to each
//	y = (1−β)·z + β·x
//
// The parameters are y, and the state is z − y, which starts as 0. Then x = y + (1 − 1/β)·(z−y).
type scheduleFree struct{ beta float64 }

// offset returns the Offset of device.Averaging.
func (o scheduleFree) offset() float64 { return 1 - 1/o.beta }

// offsetState is the name of the vector z − y.
const offsetState = "z_minus_y"

// step is the new parameter and the new z − y for a step u by the first three coefficients, and these.
func (o scheduleFree) step(u expr.Expr) (w, state expr.Expr, c [3]expr.Expr) {
	share, forward, back := update.Coefficient(0), update.Coefficient(1), update.Coefficient(2)
	rest := expr.Const(1).Sub(update.Share)
	c = [3]expr.Expr{update.Share, update.Rate.Mul(expr.Const(1).Sub(expr.Const(o.beta).Mul(rest))),
		update.Rate.Mul(expr.Const(o.beta))}
	d := update.State(0)
	w = update.W.Add(share.Mul(d)).Sub(forward.Mul(u))
	kept := d.Sub(back.Mul(u))
	return w, kept.Sub(share.Mul(kept)), c
}

func (o scheduleFree) check(name string) error {
	if !(o.beta > 0 && o.beta < 1) {
		return fmt.Errorf("%s %g: want a number between 0 and 1, neither of them", name, o.beta)
	}
	return nil
}

// weight is a step's weight in the average, given the largest learning rate so far.
func weight(most float64) float64 { return most * most }

// ScheduleFreeSGD is SGD without a schedule, as schedulefree.SGDScheduleFree, by gradients with weight decay at y. The
// learning rate is constant after a warm-up.
type ScheduleFreeSGD struct {
	Momentum float64 // β
	Decay    float64 // weight decay
}

// ScheduleFreeAdamW is AdamW without a schedule, as schedulefree.AdamWScheduleFree. With the average v of squared
// gradients u = g/(√(v/(1−β₂ᵗ)) + ε) + decay·y. The learning rate is constant after a warm-up.
type ScheduleFreeAdamW struct {
	Beta1, Beta2 float64
	Eps          float64
	Decay        float64 // weight decay
}

var _, _ device.Averaging = ScheduleFreeSGD{}, ScheduleFreeAdamW{}

func init() {
	register(Definition{Name: "schedule-free-sgd", Title: "Schedule-Free SGD", Takes: map[string]float64{Momentum: .9},
		Rate: 1, Constant: true,
		Make: func(h Hyper) device.Optimizer { return ScheduleFreeSGD{Momentum: h.Of[Momentum], Decay: h.Decay} }})
	register(Definition{Name: "schedule-free-adamw", Title: "Schedule-Free AdamW",
		Takes: map[string]float64{Beta1: .9, Beta2: .999, Eps: 1e-8},
		Rate:  2.5e-3, Decay: 1e-2, Constant: true, Make: func(h Hyper) device.Optimizer {
			return ScheduleFreeAdamW{Beta1: h.Of[Beta1], Beta2: h.Of[Beta2], Eps: h.Of[Eps], Decay: h.Decay}
		}})
}

// Name implements device.Optimizer.
func (ScheduleFreeSGD) Name() string { return "schedule-free-sgd" }

// Name implements device.Optimizer.
func (ScheduleFreeAdamW) Name() string { return "schedule-free-adamw" }

// State implements device.Optimizer.
func (ScheduleFreeSGD) State() []string { return []string{offsetState} }

// State implements device.Optimizer.
func (ScheduleFreeAdamW) State() []string { return []string{offsetState, "exp_avg_sq"} }

// Offset implements device.Averaging.
func (o ScheduleFreeSGD) Offset() float64 { return scheduleFree{o.Momentum}.offset() }

// Offset implements device.Averaging.
func (o ScheduleFreeAdamW) Offset() float64 { return scheduleFree{o.Beta1}.offset() }

// Weight implements device.Averaging.
func (ScheduleFreeSGD) Weight(most float64) float64 { return weight(most) }

// Weight implements device.Averaging.
func (ScheduleFreeAdamW) Weight(most float64) float64 { return weight(most) }

// Passes implements device.Optimizer.
func (o ScheduleFreeSGD) Passes() []update.Pass {
	decay, scale := update.Coefficient(3), update.Coefficient(4)
	w, d, c := scheduleFree{o.Momentum}.step(scale.Mul(update.G).Add(decay.Mul(update.W)))
	return []update.Pass{{Coefficients: update.Coefficients{c[0], c[1], c[2],
		expr.Const(o.Decay).Mul(update.Decays), update.Scale},
		Body: update.Body{W: w, State: update.States{d}}}}
}

// Passes implements device.Optimizer.
func (o ScheduleFreeAdamW) Passes() []update.Pass {
	k := update.Coefficient
	decay, scale, beta, rest, eps := k(3), k(4), k(5), k(6), k(7)
	g := scale.Mul(update.G)
	v := beta.Mul(update.State(1)).Add(rest.Mul(g.Square()))
	// v is stored without its correction b² = 1−β₂ᵗ; g/(√v/b + ε) is b·g/(√v + ε·b), and 1/b goes to ε and to decay:
	// rates have b.
	b := update.Corrections[1].Sqrt()
	u := g.Div(v.Sqrt().Add(eps)).Add(decay.Mul(update.W))
	w, d, c := scheduleFree{o.Beta1}.step(u)
	return []update.Pass{{Betas: [2]float64{0, o.Beta2},
		Coefficients: update.Coefficients{c[0], c[1].Mul(b), c[2].Mul(b), expr.Const(o.Decay).Mul(update.Decays).Div(b),
			update.Scale,
			expr.Const(o.Beta2), expr.Const(1 - o.Beta2), expr.Const(o.Eps).Mul(b)},
		Body: update.Body{W: w, State: update.States{d, v}}}}
}

// Check implements device.Optimizer.
func (o ScheduleFreeSGD) Check() error {
	if err := (scheduleFree{o.Momentum}).check("momentum"); err != nil {
		return err
	}
	return SGD{Decay: o.Decay}.Check()
}

// Check implements device.Optimizer.
func (o ScheduleFreeAdamW) Check() error {
	if err := (scheduleFree{o.Beta1}).check("beta1"); err != nil {
		return err
	}
	return checkAdam(o.Beta1, o.Beta2, o.Eps, o.Decay)
}
