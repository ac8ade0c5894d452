package device

import "math"

// LARS is SGD with a rate for each tensor, by layer-wise adaptive rate scaling (You, Gitman and Ginsburg, 2017):
//
//	g ← scale·g
//	r = trust·‖w‖ / (‖g‖ + decay·‖w‖ + ε)     of the tensor, or 1 where ‖w‖ or ‖g‖ is 0
//	g ← r·(g + decay·w)
//	m ← momentum·m + g
//	w ← w − rate·m            or, Nesterov: w ← w − rate·(g + momentum·m)
//
// The rate stands outside of the momentum, as in PyTorch's SGD and timm's Lars, not inside as in the paper: the two differ
// while the rate changes. Tensors without decay have r = 1. That is timm.optim.Lars with always_adapt for the tensors that decay.
type LARS struct {
	Momentum float64
	Decay    float64 // weight decay
	Trust    float64 // trust coefficient
	Eps      float64
	Nesterov bool
}

var _ Adaptive = LARS{}

// Name implements Optimizer.
func (LARS) Name() string { return "lars" }

// State implements Optimizer.
func (LARS) State() []string { return momentumState }

// Passes implements Optimizer: once the ratios are known the step is SGD's.
func (o LARS) Passes() Passes {
	p := o.sgd().Passes()
	p.Measure = "lars"
	return p
}

func (o LARS) sgd() SGD { return SGD{Momentum: o.Momentum, Decay: o.Decay, Nesterov: o.Nesterov} }

// Hyper implements Optimizer.
func (o LARS) Hyper() Coefficients { return Coefficients{o.Momentum, o.Decay, o.Trust, o.Eps} }

// Coefficients implements Optimizer: scale and decay have the ratio as a factor.
func (o LARS) Coefficients(n Numbers, decays bool, ratio float64) Coefficients {
	n.Scale *= ratio
	s := o.sgd()
	s.Decay *= ratio
	return s.Coefficients(n, decays, 1)
}

// Ratio implements Adaptive, for the squares of weights and of gradients that are not scaled yet.
func (o LARS) Ratio(n Numbers, x, y float64) float64 {
	w, g := math.Sqrt(x), math.Abs(n.Scale)*math.Sqrt(y)
	if !(w > 0 && g > 0) {
		return 1
	}
	return o.Trust * w / (g + o.Decay*w + o.Eps)
}

// MaxNorm implements Adaptive.
func (LARS) MaxNorm() float64 { return 0 }

// Check implements Optimizer.
func (o LARS) Check() error {
	if err := o.sgd().Check(); err != nil {
		return err
	}
	if err := inRange("trust coefficient", o.Trust, math.SmallestNonzeroFloat64, math.MaxFloat64); err != nil {
		return err
	}
	return inRange("eps", o.Eps, 0, math.MaxFloat64)
}

func init() {
	define("lars", Kernels[float32]{Measure: larsNorms[float32]}, Kernels[float64]{Measure: larsNorms[float64]})
}

func larsNorms[T Float](p Piece[T], _ *[8]T, sums *[2][8]float64) {
	gs := p.G[:len(p.W)]
	for i, w := range p.W {
		addSquares(sums, i, w, gs[i])
	}
}

// addSquares adds the squares of what element i has.
func addSquares[T Float](sums *[2][8]float64, i int, x, y T) {
	sums[0][i%8] += float64(float64(x) * float64(x))
	sums[1][i%8] += float64(float64(y) * float64(y))
}
