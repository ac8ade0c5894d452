package convex

import (
	"onlinerna/rna/convex/internal/kern"
)

// A trial is the points that an iteration of a descent chooses from.
type trial struct {
	beta   float64 // of the momentum
	online bool

	step         []float64 // y − ∇f(y)/L_k
	extrapolated []float64 // may be nil
	searched     []float64 // (extrapolated + β·old)/(1 + β), or nil if it is the same or not needed

	// shares of the way from y to step, for the larger L_k that are likely.
	shares []float64

	// f at the points.
	fstep, fextrapolated, fsearched float64
}

// ahead is the number of shares of a trial.
const ahead = 2

// A choice is the point z of a trial from which a descent continues: step, a share of it, or another.
type choice int

const (
	tookStep         choice = 0
	tookShare        choice = 1 // the first of them
	tookOther        choice = tookShare + ahead
	tookExtrapolated choice = tookOther + 1 // z is searched, if there is one
)

// An evaluator gives a descent f and its gradient at the points of the iterations.
type evaluator interface {
	// start is f(y), with the gradient in g, at the first y. The z before is y, too.
	start(y, g []float64) float64
	// try evaluates the points of t.
	try(t *trial)
	// retry is f(step), where step is the share of the way from y to that of the trial. c is a share, or other.
	retry(c choice, step []float64, share float64) float64
	// next is f(y), with the gradient in g, at the next y = (1 + β)z − βold.
	next(c choice, y, g []float64) float64
}

// separate evaluates any problem.
type separate struct {
	p      Problem
	points [][]float64
	values []float64
	to     []*float64
}

func (e *separate) start(y, g []float64) float64                      { return e.p.F(y, g) }
func (e *separate) retry(_ choice, step []float64, _ float64) float64 { return e.p.F(step, nil) }
func (e *separate) next(_ choice, y, g []float64) float64             { return e.p.F(y, g) }

func (e *separate) try(t *trial) {
	e.points, e.to = e.points[:0], e.to[:0]
	for _, c := range []struct {
		point []float64
		to    *float64
	}{{t.step, &t.fstep}, {t.extrapolated, &t.fextrapolated}, {t.searched, &t.fsearched}} {
		if c.point != nil {
			e.points, e.to = append(e.points, c.point), append(e.to, c.to)
		}
	}
	e.values = grown(e.values, len(e.points))
	e.p.Values(e.values[:len(e.points)], e.points)
	for k, to := range e.to {
		*to = e.values[k]
	}
}

// together evaluates a linear model. It multiplies the data by step and extrapolated: predictions at all other points
// are combinations. The same pass over the data makes the gradients at all points that may be the next y.
type together struct {
	*linear
	t *trial

	atY, atOld []float64 // predictions
	shares     [ahead][]float64
	other      []float64
	out        []float64 // at step, then at extrapolated
	sums       [maxSums]float64
	gradients  int                       // of the last trial
	place      [tookExtrapolated + 1]int // of gradients in it
	p          pass
}

func newTogether(l *linear) *together {
	e := &together{linear: l, out: make([]float64, 2*l.X.n)}
	for _, v := range []*[]float64{&e.atY, &e.atOld, &e.shares[0], &e.shares[1], &e.other} {
		*v = make([]float64, l.X.n)
	}
	return e
}

func (e *together) start(y, g []float64) float64 {
	e.run(&pass{points: [][]float64{y}, out: e.atY, losses: []lossAt{{e.atY, e.atY, 1, 0}}, gradients: 1}, e.sums[:1])
	copy(e.atOld, e.atY)
	e.gradient(g, y, 0, 1)
	return e.value(e.sums[0], y)
}

func (e *together) atStep() []float64         { return e.out[:e.X.n] }
func (e *together) atExtrapolated() []float64 { return e.out[e.X.n:] }

func (e *together) try(t *trial) {
	e.t = t
	step, extrapolated := e.atStep(), e.atExtrapolated()
	p := &e.p
	p.points, p.out = append(p.points[:0], t.step), e.out
	if t.extrapolated != nil {
		p.points = append(p.points, t.extrapolated)
	}
	p.mixed, p.mixes = e.shares[:len(t.shares)], p.mixes[:0]
	for _, share := range t.shares {
		p.mixes = append(p.mixes, lossAt{step, e.atY, share, 1 - share})
	}
	p.losses = p.losses[:0]
	add := func(z, old []float64, a, b float64) int {
		p.losses = append(p.losses, lossAt{z, old, a, b})
		return len(p.losses) - 1
	}
	for c := range e.place {
		e.place[c] = -1
	}
	// First the points that may be the next y.
	if e.several() {
		e.place[tookStep] = add(step, e.atOld, 1+t.beta, -t.beta)
		for k := range t.shares {
			e.place[int(tookShare)+k] = add(e.shares[k], e.atOld, 1+t.beta, -t.beta)
		}
		if t.extrapolated != nil && t.online {
			e.place[tookExtrapolated] = add(extrapolated, extrapolated, 1, 0)
		}
	}
	e.gradients = len(p.losses)
	p.gradients = e.gradients
	// Then the points themselves, if they differ.
	fstep, fextrapolated, fsearched := e.place[tookStep], e.place[tookExtrapolated], 0
	if fstep < 0 || t.beta != 0 {
		fstep = add(step, step, 1, 0)
	}
	if t.extrapolated != nil && fextrapolated < 0 {
		fextrapolated = add(extrapolated, extrapolated, 1, 0)
	}
	if t.searched != nil {
		fsearched = add(extrapolated, e.atOld, 1/(1+t.beta), t.beta/(1+t.beta))
	}
	e.run(p, e.sums[:len(p.losses)])
	t.fstep = e.value(e.sums[fstep], t.step)
	if t.extrapolated != nil {
		t.fextrapolated = e.value(e.sums[fextrapolated], t.extrapolated)
	}
	if t.searched != nil {
		t.fsearched = e.value(e.sums[fsearched], t.searched)
	}
}

func (e *together) retry(c choice, step []float64, share float64) float64 {
	if k := e.place[c]; k >= 0 && e.t.beta == 0 {
		return e.value(e.sums[k], step)
	}
	z := e.predictions(c)
	p := pass{losses: []lossAt{{z, z, 1, 0}}}
	if c == tookOther {
		p.mixed, p.mixes = [][]float64{z}, []lossAt{{e.atStep(), e.atY, share, 1 - share}}
	}
	var sum [1]float64
	e.run(&p, sum[:])
	return e.value(sum[0], step)
}

// predictions are those at a point of the trial.
func (e *together) predictions(c choice) []float64 {
	switch c {
	case tookStep:
		return e.atStep()
	case tookOther:
		return e.other
	case tookExtrapolated:
		return e.atExtrapolated()
	}
	return e.shares[c-tookShare]
}

func (e *together) next(c choice, y, g []float64) float64 {
	n, beta, z := e.X.n, e.t.beta, e.predictions(c)
	if c == tookExtrapolated {
		copy(e.atY, z)
		e.kern.Combine2(&e.atOld[0], &z[0], beta/(1+beta), 1/(1+beta), n)
	} else {
		e.kern.Mix(&e.atY[0], &z[0], &e.atOld[0], &z[0], 1+beta, -beta, 0, n)
		copy(e.atOld, z)
	}
	at, of := e.place[c], e.gradients
	if at < 0 {
		at, of = 0, 1
		e.run(&pass{losses: []lossAt{{e.atY, e.atY, 1, 0}}, gradients: 1}, e.sums[:1])
	}
	e.gradient(g, y, at, of)
	return e.value(e.sums[at], y)
}

var (
	_ evaluator = (*separate)(nil)
	_ evaluator = (*together)(nil)

	_ [kern.Most - 2 - ahead]struct{} // gradients at step, shares and extrapolated in one pass
)
