package device

import "math"

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

var _ Adaptive = LAMB{}

// Name implements Optimizer.
func (LAMB) Name() string { return "lamb" }

// State implements Optimizer.
func (LAMB) State() []string { return momentState }

// Passes implements Optimizer.
func (LAMB) Passes() Passes { return Passes{Measure: "lamb", Apply: "lamb"} }

// Hyper implements Optimizer.
func (o LAMB) Hyper() Coefficients {
	return Coefficients{o.Beta1, o.Beta2, o.Eps, o.Decay, o.ClipNorm}
}

// Coefficients implements Optimizer.
func (o LAMB) Coefficients(n Numbers, decays bool, ratio float64) Coefficients {
	c, step := adam(o.Beta1, o.Beta2, o.Eps, n)
	c[5], c[6], c[7] = step, o.Decay, n.Rate*ratio
	if !decays {
		c[6] = 0
	}
	return c
}

// Ratio implements Adaptive, for the squares of weights and of u.
func (LAMB) Ratio(_ Numbers, x, y float64) float64 {
	w, u := math.Sqrt(x), math.Sqrt(y)
	if !(w > 0 && u > 0) {
		return 1
	}
	return w / u
}

// MaxNorm implements Adaptive.
func (o LAMB) MaxNorm() float64 { return o.ClipNorm }

// Check implements Optimizer.
func (o LAMB) Check() error {
	if err := checkAdam(o.Beta1, o.Beta2, o.Eps, o.Decay); err != nil {
		return err
	}
	return inRange("largest norm of the gradient", o.ClipNorm, 0, math.MaxFloat64)
}

func init() {
	define("lamb", Kernels[float32]{lamb[float32], lambNorms[float32]}, Kernels[float64]{lamb[float64], lambNorms[float64]})
}

// lambNorms moves the averages.
func lambNorms[T Float](p Piece[T], c *[8]T, sums *[2][8]float64) {
	gs, ms, vs := p.G[:len(p.W)], p.State[0][:len(p.W)], p.State[1][:len(p.W)]
	for i, w := range p.W {
		m, v := moments(gs[i], ms[i], vs[i], c)
		ms[i], vs[i] = m, v
		addSquares(sums, i, w, lambStep(w, m, v, c))
	}
}

func lamb[T Float](p Piece[T], c *[8]T) {
	ms, vs := p.State[0][:len(p.W)], p.State[1][:len(p.W)]
	for i, w := range p.W {
		p.W[i] = w - T(c[7]*lambStep(w, ms[i], vs[i], c))
	}
}

// lambStep is u.
func lambStep[T Float](w, m, v T, c *[8]T) T {
	return T(c[5]*m)/(sqrt(v)+c[4]) + T(c[6]*w)
}
