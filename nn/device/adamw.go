package device

import "math"

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

var _ Optimizer = AdamW{}

var momentState = []string{"exp_avg", "exp_avg_sq"} // PyTorch's names

// Name implements Optimizer.
func (AdamW) Name() string { return "adamw" }

// State implements Optimizer.
func (AdamW) State() []string { return momentState }

// Passes implements Optimizer.
func (AdamW) Passes() Passes { return Passes{Apply: "adamw"} }

// Hyper implements Optimizer.
func (o AdamW) Hyper() Coefficients { return Coefficients{o.Beta1, o.Beta2, o.Eps, o.Decay} }

// Coefficients implements Optimizer.
func (o AdamW) Coefficients(n Numbers, decays bool, _ float64) Coefficients {
	c, step := adam(o.Beta1, o.Beta2, o.Eps, n)
	c[5], c[6] = n.Rate*step, 1
	if decays {
		c[6] -= n.Rate * o.Decay
	}
	return c
}

// adam has what moments take, and ε. Bias corrections are in ε and in step: with b = √(1−β₂ᵗ) an Adam step is
// rate·b/(1−β₁ᵗ) · m/(√v + ε·b).
func adam(beta1, beta2, eps float64, n Numbers) (c Coefficients, step float64) {
	b := math.Sqrt(biasCorrection(beta2, n.Step))
	return Coefficients{beta1, (1 - beta1) * n.Scale, beta2, math.Sqrt(1-beta2) * n.Scale, eps * b}, b / biasCorrection(beta1, n.Step)
}

// Check implements Optimizer.
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

func init() {
	define("adamw", Kernels[float32]{Apply: adamw[float32]}, Kernels[float64]{Apply: adamw[float64]})
}

func adamw[T Float](p Piece[T], c *[8]T) {
	eps, step, keep := c[4], c[5], c[6]
	gs, ms, vs := p.G[:len(p.W)], p.State[0][:len(p.W)], p.State[1][:len(p.W)]
	for i, w := range p.W {
		m, v := moments(gs[i], ms[i], vs[i], c)
		ms[i], vs[i] = m, v
		p.W[i] = T(keep*w) - T(step*m)/(sqrt(v)+eps)
	}
}

// moments are the next averages of the gradient and of its square.
func moments[T Float](g, m, v T, c *[8]T) (T, T) {
	d := T(c[3] * g)
	return T(c[0]*m) + T(c[1]*g), T(c[2]*v) + T(d*d)
}

func sqrt[T Float](x T) T { return T(math.Sqrt(float64(x))) }
