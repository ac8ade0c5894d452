package convex

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// An inverse estimates the inverse of the Hessian from steps s and changes q of the gradient.
type inverse interface {
	apply(dst, grad []float64)
	update(s, q []float64)
}

// quasiNewton runs BFGS, or L-BFGS with as many vectors as RNA's window has. When its line
// search finds nothing lower in the digits of f the curve stays where it is.
func quasiNewton(p Problem, m Method, opt Options, rec *recorder) error {
	n := p.Dim
	var h inverse = &limited{store: opt.Window}
	if m == BFGS {
		h = &full{}
	}
	w := append([]float64(nil), opt.Start...)
	grad, step, s, q := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	line := &search{f: p.F, trial: make([]float64, n), grad: make([]float64, n)}
	f := p.F(w, grad)
	stuck := false
	for k := 1; k <= opt.Iterations; k++ {
		if !stuck {
			h.apply(step, grad)
			floats.Scale(-1, step)
			first := 1.0
			if k == 1 {
				first = 1 / math.Max(floats.Norm(grad, 1), math.SmallestNonzeroFloat64)
			}
			if fnew, ok := line.along(w, step, f, floats.Dot(grad, step), first); ok {
				floats.SubTo(s, line.trial, w)
				floats.SubTo(q, line.grad, grad)
				copy(w, line.trial)
				copy(grad, line.grad)
				f = fnew
				h.update(s, q)
			} else {
				stuck = true
			}
		}
		if err := rec.add(k, w, f); err != nil {
			return err
		}
	}
	return nil
}

// limited is L-BFGS: two loops over the last pairs, with the scale of the newest.
type limited struct {
	store int
	s, q  [][]float64
	rho   []float64
	alpha []float64
}

func (l *limited) apply(dst, grad []float64) {
	copy(dst, grad)
	k := len(l.s)
	if k == 0 {
		return
	}
	for i := k - 1; i >= 0; i-- {
		l.alpha[i] = l.rho[i] * floats.Dot(l.s[i], dst)
		floats.AddScaled(dst, -l.alpha[i], l.q[i])
	}
	floats.Scale(1/(l.rho[k-1]*floats.Dot(l.q[k-1], l.q[k-1])), dst)
	for i := range k {
		floats.AddScaled(dst, l.alpha[i]-l.rho[i]*floats.Dot(l.q[i], dst), l.s[i])
	}
}

func (l *limited) update(s, q []float64) {
	sq := floats.Dot(s, q)
	if !(sq > 0) {
		return
	}
	if len(l.s) == l.store {
		s0, q0 := l.s[0], l.q[0]
		l.s, l.q, l.rho = append(l.s[:0], l.s[1:]...), append(l.q[:0], l.q[1:]...), append(l.rho[:0], l.rho[1:]...)
		copy(s0, s)
		copy(q0, q)
		l.s, l.q = append(l.s, s0), append(l.q, q0)
	} else {
		l.s, l.q = append(l.s, append([]float64(nil), s...)), append(l.q, append([]float64(nil), q...))
		l.alpha = append(l.alpha, 0)
	}
	l.rho = append(l.rho, 1/sq)
}

// full is BFGS with the d×d matrix itself.
type full struct {
	h  *mat.SymDense
	hq *mat.VecDense
}

func (b *full) apply(dst, grad []float64) {
	if b.h == nil {
		copy(dst, grad)
		return
	}
	mat.NewVecDense(len(dst), dst).MulVec(b.h, mat.NewVecDense(len(grad), grad))
}

func (b *full) update(s, q []float64) {
	sq := floats.Dot(s, q)
	if !(sq > 0) {
		return
	}
	n := len(s)
	if b.h == nil {
		b.h, b.hq = mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
		for j := range n {
			b.h.SetSym(j, j, sq/floats.Dot(q, q))
		}
	}
	sv, qv := mat.NewVecDense(n, s), mat.NewVecDense(n, q)
	b.hq.MulVec(b.h, qv)
	b.h.RankTwo(b.h, -1/sq, b.hq, sv)
	b.h.SymRankOne(b.h, (1+mat.Dot(qv, b.hq)/sq)/sq, sv)
}

// search is a line search for the strong Wolfe conditions by bracketing and cubic interpolation (Nocedal and
// Wright, algorithms 3.5 and 3.6).
type search struct {
	f           Func
	trial, grad []float64
}

const (
	decrease  = 1e-4
	curvature = 0.9
	maxTrials = 40
)

// A probe is f and its slope at a step.
type probe struct{ step, f, slope float64 }

// along searches w + a·dir. When it finds a step it leaves the point and the gradient in trial and grad.
func (l *search) along(w, dir []float64, f, slope, first float64) (float64, bool) {
	if !(slope < 0) {
		return f, false
	}
	origin := probe{0, f, slope}
	at := func(a float64) probe {
		floats.AddScaledTo(l.trial, w, a, dir)
		v := l.f(l.trial, l.grad)
		return probe{a, v, floats.Dot(l.grad, dir)}
	}
	noise := 1e-15 * math.Abs(f)
	good := func(p probe) bool {
		if p.f <= f+decrease*p.step*slope && math.Abs(p.slope) <= -curvature*slope {
			return true
		}
		// Where f is flat to its digits, slopes decide (Hager and Zhang's approximate conditions).
		return math.Abs(p.f-f) <= noise && p.slope >= curvature*slope && p.slope <= (2*decrease-1)*slope
	}
	low, high := origin, probe{step: math.Inf(1)}
	a := first
	for range maxTrials {
		p := at(a)
		if good(p) {
			return p.f, true
		}
		switch {
		case !(p.f <= f+decrease*a*slope+noise) || p.f > low.f+noise:
			high = p
		case p.slope >= 0:
			high = p
			if p.f <= low.f {
				low, high = p, low
			}
		default:
			if (p.slope)*(high.step-low.step) > 0 && !math.IsInf(high.step, 0) {
				high = low
			}
			low = p
		}
		if math.IsInf(high.step, 0) {
			a = 2 * low.step
			if low.step == 0 {
				a = 2 * first
			}
			continue
		}
		a = cubic(low, high)
	}
	return f, false
}

// cubic returns the minimiser of the cubic through two probes, kept away from both.
func cubic(p, q probe) float64 {
	d1 := p.slope + q.slope - 3*(p.f-q.f)/(p.step-q.step)
	d2 := math.Copysign(math.Sqrt(d1*d1-p.slope*q.slope), q.step-p.step)
	a := q.step - (q.step-p.step)*(q.slope+d2-d1)/(q.slope-p.slope+2*d2)
	lo, hi := math.Min(p.step, q.step), math.Max(p.step, q.step)
	if margin := 0.1 * (hi - lo); !(a >= lo+margin && a <= hi-margin) {
		return (lo + hi) / 2
	}
	return a
}
