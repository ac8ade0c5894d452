package convex

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"onlinerna/rna"
)

// descend runs gradient methods with the backtracking and the momentum of the protocol, and RNA on them.
func descend(p Problem, m Method, opt Options, rec *recorder) error {
	d, err := newDescent(p, opt)
	if err != nil {
		return err
	}
	defer d.window.Close()
	base := m.iteration()
	_, plain := m.(PlainOnline)
	_, anderson := m.(Anderson)
	if p.L == 0 && (plain || anderson || base != GD && base != NesterovConvex) {
		return fmt.Errorf("convex: %s takes the constant L", m)
	}
	switch {
	case plain:
		return d.plain(rec, opt.Iterations)
	case anderson:
		d.solve.Lambda = rna.Set(0)
		return d.plain(rec, opt.Iterations)
	case base == OptimalAdaptive:
		return d.adaptive(rec, opt.Iterations)
	case base != GD && base != NesterovConvex && p.Mu == 0:
		return fmt.Errorf("convex: %s takes the constant μ > 0 of strong convexity", m)
	case base == PrintedAdaptive:
		return d.printed(rec, opt.Iterations)
	}
	momentum := func() float64 { return 0 }
	switch base {
	case NesterovConvex:
		momentum = momentumFrom(1, 0)
	case NesterovStrong:
		momentum = momentumFrom(math.Sqrt(p.Mu/p.L), p.Mu/p.L)
	}
	_, offline := m.(Offline)
	_, online := m.(Online)
	return d.run(rec, opt.Iterations, momentum, offline, online)
}

// momentumFrom gives the β of each iteration: α⁺ is the root in (0, 1) of t² + (α² − q)t − α² = 0, and
// β = α(1 − α)/(α² + α⁺).
func momentumFrom(alpha, q float64) func() float64 {
	return func() float64 {
		a2 := alpha * alpha
		b := a2 - q
		root := 0.0 // without cancellation for either sign of b
		if s := math.Sqrt(b*b + 4*a2); b > 0 {
			root = 2 * a2 / (b + s)
		} else {
			root = (s - b) / 2
		}
		beta := alpha * (1 - alpha) / (a2 + root)
		alpha = root
		return beta
	}
}

// A descent is the state of a gradient method at y.
type descent struct {
	p     Problem
	lk    float64 // the backtracking's estimate of L
	y, g  []float64
	minus []float64 // −∇f(y)
	old   []float64 // the z before

	eval  evaluator
	trial trial

	many         int       // doublings of L_k the last time that there was more than one
	step         []float64 // w⁺
	extrapolated []float64 // w_rna
	searched     []float64 // w_ls
	window       *rna.Window
	solve        rna.Options
}

func newDescent(p Problem, opt Options) (*descent, error) {
	window, err := newWindow(p.Dim, opt.Window)
	if err != nil {
		return nil, err
	}
	d := &descent{p: p, lk: p.L, many: 3, window: window, solve: rna.Options{Lambda: opt.Lambda}}
	for _, v := range []*[]float64{&d.y, &d.g, &d.minus, &d.old, &d.step, &d.extrapolated, &d.searched} {
		*v = make([]float64, p.Dim)
	}
	copy(d.y, opt.Start)
	copy(d.old, opt.Start)
	d.eval = &separate{p: p}
	if p.linear != nil {
		d.eval = newTogether(p.linear)
	}
	return d, nil
}

// guess replaces an unknown L by one whose first step has unit length.
func (d *descent) guess() {
	if d.lk > 0 {
		return
	}
	if d.lk = floats.Norm(d.g, 2); d.lk < 1e-300 {
		d.lk = 1 // y is the optimum
	}
}

// extrapolate pushes (y, −∇f(y)) and sets w_rna = Y c − U c/L.
func (d *descent) extrapolate() (ok bool, err error) {
	floats.ScaleTo(d.minus, -1, d.g)
	err = d.window.PushResidual(rna.Slice64(d.y), rna.Slice64(d.minus))
	if bad := (*rna.NonFiniteError)(nil); errors.As(err, &bad) || errors.Is(err, rna.ErrOverflow) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l := d.p.L
	if l == 0 {
		l = d.lk
	}
	d.solve.Beta = rna.Set(1 / l)
	res, err := d.window.Extrapolate(rna.Slice64(d.extrapolated), d.solve)
	return res.Status == rna.OK, err
}

// run iterates to the end of the protocol. The candidates of an iteration are evaluated together.
func (d *descent) run(rec *recorder, iterations int, momentum func() float64, offline, online bool) error {
	t := &d.trial
	t.online = online
	fy := d.eval.start(d.y, d.g)
	d.guess()
	for k := 1; k <= iterations; k++ {
		beta := momentum()
		t.beta, t.extrapolated, t.searched = beta, nil, nil
		d.setShares()
		floats.AddScaledTo(d.step, d.y, -1/d.lk, d.g)
		t.step = d.step
		if offline || online {
			found, err := d.extrapolate()
			if err != nil {
				return err
			}
			if found {
				t.extrapolated = d.extrapolated
			}
			if found && online && beta != 0 {
				for j := range d.searched {
					d.searched[j] = (d.extrapolated[j] + beta*d.old[j]) / (1 + beta)
				}
				t.searched = d.searched
			}
		}
		d.eval.try(t)
		fstep, took := d.backtrack(fy)
		d.lk /= 2
		z, shown, value := d.step, d.step, fstep
		if t.extrapolated != nil {
			last, flast := t.extrapolated, t.fextrapolated
			if t.searched != nil {
				last, flast = t.searched, t.fsearched
			}
			if offline {
				shown, value = t.extrapolated, t.fextrapolated
			} else if flast < fstep {
				z, shown, value, took = last, t.extrapolated, t.fextrapolated, tookExtrapolated
			}
		}
		for j := range d.y {
			d.y[j] = (1+beta)*z[j] - beta*d.old[j]
		}
		copy(d.old, z)
		if err := rec.add(k, shown, value); err != nil {
			return err
		}
		if k < iterations {
			fy = d.eval.next(took, d.y, d.g)
		}
	}
	return nil
}

// setShares sets the shares of the trial: for the next L_k, and for the L_k after as many doublings as last time.
func (d *descent) setShares() {
	shares := d.trial.shares[:0]
	l := d.lk
	for tries := 1; tries <= d.many && (d.p.L == 0 || l < d.p.L); tries++ {
		l = d.doubled(l)
		if tries == 1 || tries == d.many || l == d.p.L {
			shares = append(shares, d.lk/l)
		}
	}
	d.trial.shares = shares
}

// doubled returns the L_k to try after l.
func (d *descent) doubled(l float64) float64 {
	if d.p.L == 0 || 2*l <= d.p.L {
		return 2 * l
	}
	return d.p.L
}

// backtrack doubles L_k until f(w⁺) ≤ f(y) − ‖∇f(y)‖²/(2L_k), up to L, and sets step to w⁺. The trial has been
// evaluated.
func (d *descent) backtrack(fy float64) (fstep float64, took choice) {
	const most = 2100 // doublings from the smallest number to the largest
	first, norm2 := d.lk, floats.Dot(d.g, d.g)
	fstep = d.trial.fstep
	for tries := 0; !(fstep <= fy-norm2/(2*d.lk)) && tries < most; tries++ {
		if d.p.L > 0 && d.lk >= d.p.L {
			break
		}
		d.lk = d.doubled(d.lk)
		floats.AddScaledTo(d.step, d.y, -1/d.lk, d.g)
		took = tookOther
		if k := slices.Index(d.trial.shares, first/d.lk); k >= 0 {
			took = tookShare + choice(k)
		}
		fstep = d.eval.retry(took, d.step, first/d.lk)
		if tries > 0 {
			d.many = tries + 1
		}
	}
	return fstep, took
}

// plain is eq. (online_rna): x = y − ∇f(y)/L and y = RNA(X, Y, λ) at each iteration, regardless of f.
func (d *descent) plain(rec *recorder, iterations int) error {
	d.p.F(d.y, d.g)
	for k := 1; k <= iterations; k++ {
		ok, err := d.extrapolate()
		if err != nil {
			return err
		}
		if ok {
			copy(d.y, d.extrapolated)
		} else {
			floats.AddScaled(d.y, -1/d.p.L, d.g)
		}
		if err := rec.add(k, d.y, d.p.F(d.y, d.g)); err != nil {
			return err
		}
	}
	return nil
}
