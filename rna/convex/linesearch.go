package convex

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// A lineSearch finds a step that meets the strong Wolfe conditions, as M. Schmidt's minFunc does: it brackets one by
// cubic extrapolation, to ten times the step before at most, then narrows the bracket by cubic interpolation.
type lineSearch struct {
	f    Func
	best *probe // the result of along

	probes [3]*probe // the ends of a bracket, and one to try
}

const (
	decrease  = 1e-4 // c₁
	curvature = 0.9  // c₂
	maxTrials = 25
)

// A probe is f and its slope at a step.
type probe struct {
	step, f, slope float64
	w, grad        []float64
}

func (p *probe) finite() bool { return isFinite(p.f) && isFinite(p.slope) }

func newLineSearch(f Func, n int) *lineSearch {
	l := &lineSearch{f: f}
	for k := range l.probes {
		l.probes[k] = &probe{w: make([]float64, n), grad: make([]float64, n)}
	}
	return l
}

// spare returns a probe other than the two given.
func (l *lineSearch) spare(a, b *probe) *probe {
	for _, p := range l.probes {
		if p != a && p != b {
			return p
		}
	}
	return nil
}

// along searches w + a·dir for a step a, from the value and the slope at w, trying first. It leaves the point in best,
// and reports whether it is below f.
func (l *lineSearch) along(w, dir []float64, f, slope, first float64) bool {
	if !(slope < 0) {
		return false
	}
	try := func(step float64, a, b *probe) *probe {
		p := l.spare(a, b)
		floats.AddScaledTo(p.w, w, step, dir)
		p.step, p.f = step, l.f(p.w, p.grad)
		p.slope = floats.Dot(p.grad, dir)
		return p
	}
	lower := func(p *probe) bool { return p.f <= f+decrease*p.step*slope }
	flat := func(p *probe) bool { return math.Abs(p.slope) <= -curvature*slope }
	// If f is flat up to rounding, slopes decide (Hager and Zhang's approximate conditions).
	approximate := func(p *probe) bool {
		return math.Abs(p.f-f) <= 1e-15*math.Abs(f) && p.slope >= curvature*slope && p.slope <= (2*decrease-1)*slope
	}
	found := func(p *probe) bool {
		l.best = p
		return true
	}
	trials := 0
	low := &probe{f: f, slope: slope}
	high := try(first, nil, nil)
	for ; high.finite() && trials < maxTrials; trials++ {
		if approximate(high) {
			return found(high)
		}
		if !lower(high) || trials > 1 && high.f >= low.f {
			break
		}
		if flat(high) {
			return found(high)
		}
		if high.slope >= 0 {
			break
		}
		step := cubic(low, high, high.step+0.01*(high.step-low.step), 10*high.step)
		low, high = high, try(step, low, high)
	}
	stalled := false
	for ; trials < maxTrials; trials++ {
		if high.f < low.f {
			low, high = high, low
		}
		from, to := min(low.step, high.step), max(low.step, high.step)
		step := (from + to) / 2
		if low.finite() && high.finite() {
			step = cubic(low, high, from, to)
		}
		if min(to-step, step-from) < 0.1*(to-from) { // too near an end, twice in a row
			if stalled || step >= to || step <= from {
				if to-step < step-from {
					step = to - 0.1*(to-from)
				} else {
					step = from + 0.1*(to-from)
				}
				stalled = false
			} else {
				stalled = true
			}
		} else {
			stalled = false
		}
		p := try(step, low, high)
		if approximate(p) {
			return found(p)
		}
		if !(p.f < f+decrease*step*slope) || p.f >= low.f {
			high = p
			continue
		}
		if flat(p) {
			return found(p)
		}
		if p.slope*(high.step-low.step) >= 0 {
			high = low
		}
		low = p
	}
	if high.f < low.f {
		low = high
	}
	return low.f < f && found(low)
}

// cubic returns the minimiser, between two bounds, of the cubic through two probes.
func cubic(p, q *probe, from, to float64) float64 {
	if p.step > q.step {
		p, q = q, p
	}
	d1 := p.slope + q.slope - 3*(p.f-q.f)/(p.step-q.step)
	square := d1*d1 - p.slope*q.slope
	if !(square >= 0) {
		return (from + to) / 2
	}
	d2 := math.Sqrt(square)
	step := q.step - (q.step-p.step)*((q.slope+d2-d1)/(q.slope-p.slope+2*d2))
	if math.IsNaN(step) {
		return (from + to) / 2
	}
	return min(max(step, from), to)
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
