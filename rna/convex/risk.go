package convex

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/internal/simd"
	"onlinerna/rna/convex/internal/kern"
)

// A Loss is ℓ(z, y), of a prediction z = xᵀw and a target y.
type Loss int

const (
	// Logistic is log(1 + exp(−y z)), for targets of ±1.
	Logistic Loss = iota
	// Squares is (z − y)²/2.
	Squares
)

func (l Loss) String() string {
	switch l {
	case Logistic:
		return "logistic"
	case Squares:
		return "squares"
	}
	return fmt.Sprintf("Loss(%d)", int(l))
}

// curvature bounds ∂²ℓ/∂z².
func (l Loss) curvature() float64 {
	if l == Logistic {
		return 0.25
	}
	return 1
}

// value returns ℓ without overflow for any z.
func (l Loss) value(z, y float64) float64 {
	if l == Squares {
		return (z - y) * (z - y) / 2
	}
	m := y * z
	return math.Log1p(math.Exp(-math.Abs(m))) + math.Max(-m, 0)
}

// both returns ℓ and ∂ℓ/∂z.
func (l Loss) both(z, y float64) (value, slope float64) {
	if l == Squares {
		return (z - y) * (z - y) / 2, z - y
	}
	m := y * z
	e := math.Exp(-math.Abs(m))
	if m >= 0 {
		return math.Log1p(e), -y * e / (1 + e)
	}
	return math.Log1p(e) - m, -y / (1 + e)
}

// slope returns ∂ℓ/∂z.
func (l Loss) slope(z, y float64) float64 {
	if l == Squares {
		return z - y
	}
	return -y / (1 + math.Exp(y*z))
}

// bend returns ∂²ℓ/∂z².
func (l Loss) bend(z float64) float64 {
	if l == Squares {
		return 1
	}
	e := math.Exp(-math.Abs(z))
	return e / ((1 + e) * (1 + e))
}

// A Risk is the ℓ2-regularised empirical risk
//
//	f(w) = (1/n) Σ ℓ(xᵢᵀw, yᵢ) + (Reg/2) ‖w‖².
type Risk struct {
	X    *Matrix
	Y    []float64
	Loss Loss
	Reg  float64
}

// NewRisk returns the risk of a loss on data, with Reg 0.
func NewRisk(d *Data, loss Loss) (*Risk, error) {
	r := &Risk{X: d.X, Y: d.Y, Loss: loss}
	return r, r.check()
}

func (r *Risk) check() error {
	switch {
	case r.X == nil || len(r.Y) != r.X.n:
		return fmt.Errorf("convex: a risk of %d targets without as many rows", len(r.Y))
	case r.Loss != Logistic && r.Loss != Squares:
		return fmt.Errorf("convex: unknown loss %v", r.Loss)
	case !(r.Reg >= 0) || math.IsInf(r.Reg, 0):
		return fmt.Errorf("convex: regularisation of %v: it must be 0 or more", r.Reg)
	}
	for i, y := range r.Y {
		if r.Loss == Logistic && y != 1 && y != -1 || math.IsNaN(y) || math.IsInf(y, 0) {
			return fmt.Errorf("convex: target %d is %v: the %v loss takes %s", i, y, r.Loss,
				map[Loss]string{Logistic: "1 and -1", Squares: "finite ones"}[r.Loss])
		}
	}
	return nil
}

// Smoothness returns L_data, the Lipschitz constant of the gradient of the data term: ‖XXᵀ‖₂/(4n) for
// the logistic loss, ‖XXᵀ‖₂/n for squares. That of f is L_data + Reg.
func (r *Risk) Smoothness() float64 {
	return r.Loss.curvature() * r.X.Norm2() / float64(r.X.n)
}

// Problem returns f for [Minimize], with L = L_data + Reg and μ = Reg. Each problem has memory of its
// own; one is for one goroutine at a time.
func (r *Risk) Problem() (Problem, error) {
	if err := r.check(); err != nil {
		return Problem{}, err
	}
	if err := simd.Err(); err != nil {
		return Problem{}, fmt.Errorf("convex: %w", err)
	}
	smooth := r.Smoothness()
	if math.IsNaN(smooth) || math.IsInf(smooth, 0) {
		return Problem{}, errors.New("convex: features so large that their squares overflow: scale them")
	}
	l := newLinear(r)
	e := newWhole(l)
	return Problem{F: e.eval, Values: e.values, Dim: r.X.d, L: smooth + r.Reg, Mu: r.Reg, linear: l}, nil
}

// A whole evaluates a risk at any points.
type whole struct {
	*linear
	z []float64 // predictions
}

func newWhole(l *linear) *whole { return &whole{linear: l, z: make([]float64, l.X.n)} }

// eval is f(w), with ∇f(w) unless grad is nil.
func (e *whole) eval(w, grad []float64) float64 {
	p := pass{points: [][]float64{w}, out: e.z, losses: []lossAt{{e.z, e.z, 1, 0}}}
	if grad != nil {
		p.gradients = 1
	}
	var sum [1]float64
	e.run(&p, sum[:])
	if grad != nil {
		e.gradient(grad, w, 0, 1)
	}
	return e.value(sum[0], w)
}

// values sets dst[k] to f(points[k]).
func (e *whole) values(dst []float64, points [][]float64) {
	n := e.X.n
	for len(points) > 0 {
		some := points[:min(kern.Most, len(points))]
		e.z = grown(e.z, len(some)*n)
		p := pass{points: some, out: e.z}
		for k := range some {
			z := e.z[k*n : (k+1)*n]
			p.losses = append(p.losses, lossAt{z, z, 1, 0})
		}
		e.run(&p, dst[:len(some)])
		for k, w := range some {
			dst[k] = e.value(dst[k], w)
		}
		dst, points = dst[len(some):], points[len(some):]
	}
}
