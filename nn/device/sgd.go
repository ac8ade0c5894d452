package device

import "math"

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

var _ Optimizer = SGD{}

var momentumState = []string{"momentum"}

// Name implements Optimizer.
func (SGD) Name() string { return "sgd" }

// State implements Optimizer.
func (SGD) State() []string { return momentumState }

// Passes implements Optimizer.
func (o SGD) Passes() Passes {
	if o.Nesterov {
		return Passes{Apply: "nesterov"}
	}
	return Passes{Apply: "momentum"}
}

// Hyper implements Optimizer.
func (o SGD) Hyper() Coefficients { return Coefficients{o.Momentum, o.Decay} }

// Coefficients implements Optimizer.
func (o SGD) Coefficients(n Numbers, decays bool, _ float64) Coefficients {
	decay := o.Decay
	if !decays {
		decay = 0
	}
	return Coefficients{n.Rate, o.Momentum, decay, n.Scale}
}

// Check implements Optimizer.
func (o SGD) Check() error {
	if err := inRange("momentum", o.Momentum, 0, math.MaxFloat64); err != nil {
		return err
	}
	return inRange("weight decay", o.Decay, 0, math.MaxFloat64)
}

func init() {
	define("momentum", Kernels[float32]{Apply: momentum[float32]}, Kernels[float64]{Apply: momentum[float64]})
	define("nesterov", Kernels[float32]{Apply: nesterov[float32]}, Kernels[float64]{Apply: nesterov[float64]})
}

// Products are converted before they are added, here and in the other kernels: that keeps compilers from fusing the two, which rounds
// differently.
func momentum[T Float](p Piece[T], c *[8]T) {
	rate, mu, decay, scale := c[0], c[1], c[2], c[3]
	gs, ms := p.G[:len(p.W)], p.State[0][:len(p.W)]
	for i, w := range p.W {
		g := T(scale*gs[i]) + T(decay*w)
		m := T(mu*ms[i]) + g
		ms[i] = m
		p.W[i] = w - T(rate*m)
	}
}

func nesterov[T Float](p Piece[T], c *[8]T) {
	rate, mu, decay, scale := c[0], c[1], c[2], c[3]
	gs, ms := p.G[:len(p.W)], p.State[0][:len(p.W)]
	for i, w := range p.W {
		g := T(scale*gs[i]) + T(decay*w)
		m := T(mu*ms[i]) + g
		ms[i] = m
		p.W[i] = w - T(rate*(g+T(mu*m)))
	}
}
