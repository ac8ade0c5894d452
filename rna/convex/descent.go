package convex

import (
	"errors"
	"fmt"
	"math"

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
	base, offline, online := m.split()
	switch base {
	case PlainOnlineRNAGD, AndersonGD, NesterovStrong, OptimalAdaptive:
		if p.L == 0 {
			return fmt.Errorf("convex: %s takes the constant L", m)
		}
	}
	switch base {
	case PlainOnlineRNAGD:
		return d.plain(rec, opt.Iterations)
	case AndersonGD:
		d.solve.Lambda = rna.Set(0)
		return d.plain(rec, opt.Iterations)
	}
	switch {
	case base != GD && base != NesterovConvex && p.Mu == 0:
		return fmt.Errorf("convex: %s takes the constant μ > 0 of strong convexity", m)
	case base == OptimalAdaptive:
		return d.adaptive(rec, opt.Iterations)
	}
	momentum := func() float64 { return 0 }
	switch base {
	case NesterovConvex:
		momentum = momentumFrom(1, 0)
	case NesterovStrong:
		momentum = momentumFrom(math.Sqrt(p.Mu/p.L), p.Mu/p.L)
	}
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

	step, wider  []float64 // w⁺ for L_k and for 2 L_k
	extrapolated []float64 // w_rna
	searched     []float64 // w_ls
	window       *rna.Window
	solve        rna.Options
}

func newDescent(p Problem, opt Options) (*descent, error) {
	space, err := rna.NewHost64(p.Dim, 0)
	if err != nil {
		return nil, err
	}
	window, err := rna.NewWindow(space, opt.Window)
	if err != nil {
		return nil, err
	}
	d := &descent{p: p, lk: p.L, window: window, solve: rna.Options{Lambda: opt.Lambda}}
	for _, v := range []*[]float64{&d.y, &d.g, &d.minus, &d.old, &d.step, &d.wider, &d.extrapolated, &d.searched} {
		*v = make([]float64, p.Dim)
	}
	copy(d.y, opt.Start)
	copy(d.old, opt.Start)
	return d, nil
}

// gradient sets g = ∇f(y). An unknown L is first guessed to make a step of unit length.
func (d *descent) gradient() (f float64) {
	f = d.p.F(d.y, d.g)
	if d.lk == 0 {
		d.lk = math.Max(floats.Norm(d.g, 2), math.SmallestNonzeroFloat64)
	}
	return f
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

// run iterates to the end of the protocol. The candidates of an iteration are evaluated in one pass.
func (d *descent) run(rec *recorder, iterations int, momentum func() float64, offline, online bool) error {
	values := make([]float64, 4)
	points := make([][]float64, 0, 4)
	for k := 1; k <= iterations; k++ {
		fy := d.gradient()
		beta := momentum()
		points = append(points[:0], d.step)
		backtracks := d.p.L == 0 || d.lk < d.p.L
		if backtracks {
			points = append(points, d.wider)
			floats.AddScaledTo(d.wider, d.y, -1/d.doubled(), d.g)
		}
		floats.AddScaledTo(d.step, d.y, -1/d.lk, d.g)
		var found bool
		if offline || online {
			var err error
			if found, err = d.extrapolate(); err != nil {
				return err
			}
		}
		first := len(points)
		if found {
			points = append(points, d.extrapolated)
			if online && beta != 0 {
				for j := range d.searched {
					d.searched[j] = (d.extrapolated[j] + beta*d.old[j]) / (1 + beta)
				}
				points = append(points, d.searched)
			}
		}
		values = values[:len(points)]
		d.p.Values(values, points)
		fstep := values[0]
		if backtracks {
			fstep = d.backtrack(fy, fstep, values[1])
		}
		d.lk /= 2
		z, shown, value := d.step, d.step, fstep
		if found {
			if offline {
				shown, value = d.extrapolated, values[first]
			} else if last := len(points) - 1; values[last] < fstep {
				z, shown, value = points[last], d.extrapolated, values[first]
			}
		}
		for j := range d.y {
			d.y[j] = (1+beta)*z[j] - beta*d.old[j]
		}
		copy(d.old, z)
		if err := rec.add(k, shown, value); err != nil {
			return err
		}
	}
	return nil
}

// doubled is the next L_k to try.
func (d *descent) doubled() float64 {
	if l := 2 * d.lk; d.p.L == 0 || l <= d.p.L {
		return l
	}
	return d.p.L
}

// backtrack doubles L_k until f(w⁺) ≤ f(y) − ‖∇f(y)‖²/(2L_k), up to L, and sets step to w⁺. It is given f at step and at wider.
func (d *descent) backtrack(fy, fstep, fwider float64) float64 {
	const most = 2100 // doublings from the smallest number to the largest
	norm2 := floats.Dot(d.g, d.g)
	for tries := 0; !(fstep <= fy-norm2/(2*d.lk)) && tries < most; tries++ {
		if d.p.L > 0 && d.lk >= d.p.L {
			break
		}
		d.lk = d.doubled()
		if tries == 0 {
			d.step, d.wider = d.wider, d.step
			fstep = fwider
			continue
		}
		floats.AddScaledTo(d.step, d.y, -1/d.lk, d.g)
		fstep = d.p.F(d.step, nil)
	}
	return fstep
}

// plain is eq. (online_rna): x = y − ∇f(y)/L and y = RNA(X, Y, λ) at each iteration, whatever f says.
func (d *descent) plain(rec *recorder, iterations int) error {
	for k := 1; k <= iterations; k++ {
		d.gradient()
		ok, err := d.extrapolate()
		if err != nil {
			return err
		}
		if ok {
			copy(d.y, d.extrapolated)
		} else {
			floats.AddScaled(d.y, -1/d.p.L, d.g)
		}
		if err := rec.add(k, d.y, d.p.F(d.y, nil)); err != nil {
			return err
		}
	}
	return nil
}
