package convex

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"onlinerna/internal/simd"
	"onlinerna/rna"
	"onlinerna/rna/convex/internal/kern"
)

// MinimizeSum runs a method that goes by samples, for Options.Iterations epochs, and RNA at the end of
// epochs: of each that is recorded. Samples are drawn with replacement. Errors are as for [Minimize].
//
// Step sizes are constants of the theory, with L_max = maxᵢ‖xᵢ‖² for either loss, as the protocol has it, and L =
// L_max + Reg: 1/(3L) for SGD, SAGA and SVRG, and Katyusha's own, where the regulariser is
// in the proximal step and L is L_max.
//
// An epoch is n gradients of samples. SVRG takes 2 (a full gradient, and n steps), Katyusha 5 (a full gradient, and 2n
// steps of two gradients); SAGA starts at 1, with the gradients of its table.
func MinimizeSum(r *Risk, m Method, opt Options) (Result, error) {
	if !slices.Contains(Stochastic(), m) {
		return Result{}, fmt.Errorf("convex: no stochastic method: %v", m)
	}
	if err := r.check(); err != nil {
		return Result{}, err
	}
	if err := simd.Err(); err != nil {
		return Result{}, fmt.Errorf("convex: %w", err)
	}
	dim, all := r.X.d, newWhole(newLinear(r))
	full := all.eval
	defer all.team.begin()()
	opt, err := opt.withDefaults(dim, DefaultEpochs)
	if err != nil {
		return Result{}, err
	}
	_, offline := m.(Offline)
	_, online := m.(Online)
	s := &samples{Risk: r, kern: all.kern, rng: rand.New(rand.NewPCG(opt.Seed, 0x726e61)), lmax: r.X.MaxRowNorm()}
	if s.lmax+r.Reg == 0 {
		return Result{}, errors.New("convex: all rows are zero and there is no regularisation")
	}
	var run epochs
	switch m.iteration() {
	case SGD:
		run = &sgd{samples: s}
	case SAGA:
		run = newSAGA(s, opt.Start)
	case SVRG:
		run = &svrg{samples: s, full: full}
	case Katyusha:
		if r.Reg == 0 {
			return Result{}, errors.New("convex: katyusha takes a regularisation above 0")
		}
		run = newKatyusha(s, full)
	}
	window, err := newWindow(dim, opt.Window)
	if err != nil {
		return Result{}, err
	}
	defer window.Close()
	rec := newRecorder(m, opt)
	start, cost := run.cost()
	if err := rec.add(start, opt.Start, full(opt.Start, nil)); err != nil {
		return rec.result, err
	}
	w := append([]float64(nil), opt.Start...)
	point := append([]float64(nil), w...)
	before := append([]float64(nil), w...)
	if err := window.Push(rna.Slice64(w)); err != nil {
		return rec.result, err
	}
	solve := rna.Options{Lambda: opt.Lambda}
	for at := start + cost; at <= start+opt.Iterations; at += cost {
		copy(before, w)
		run.epoch(w)
		shown := w
		if offline || online {
			if online {
				err = window.PushPair(rna.Slice64(before), rna.Slice64(w))
			} else {
				err = window.Push(rna.Slice64(w))
			}
			if bad := (*rna.NonFiniteError)(nil); errors.As(err, &bad) || errors.Is(err, rna.ErrOverflow) {
				err = &DivergedError{Method: m, At: at, Value: full(w, nil)}
			}
			if err != nil {
				return rec.result, err
			}
			res, err := window.Extrapolate(rna.Slice64(point), solve)
			if err != nil {
				return rec.result, err
			}
			if res.Status == rna.OK {
				if shown = point; online {
					copy(w, point)
				}
			}
		}
		if err := rec.add(at, shown, full(shown, nil)); err != nil {
			return rec.result, err
		}
	}
	return rec.result, nil
}

// samples draws rows.
type samples struct {
	*Risk
	kern *kern.Set
	rng  *rand.Rand
	lmax float64 // bounds the Lipschitz constant of a sample's gradient, without the regulariser's
}

func (s *samples) draw() int { return s.rng.IntN(s.X.n) }

// step sets w to (1 − h·Reg)w − h·mean − h·change·xᵢ; mean may be nil.
func (s *samples) step(w, mean []float64, h, change float64, i int) {
	shrink := 1 - h*s.Reg
	_, row := s.X.Row(i)
	switch {
	case s.X.index == nil && mean == nil:
		s.kern.Combine2(&w[0], &row[0], shrink, -h*change, len(w))
	case s.X.index == nil:
		s.kern.Combine3(&w[0], &mean[0], &row[0], shrink, -h, -h*change, len(w))
	case mean == nil:
		floats.Scale(shrink, w)
		s.X.add(w, -h*change, i)
	default:
		s.kern.Combine2(&w[0], &mean[0], shrink, -h, len(w))
		s.X.add(w, -h*change, i)
	}
}

// slopeAt is ∂ℓ/∂z of row i at w.
func (s *samples) slopeAt(i int, w []float64) float64 { return s.Loss.slope(s.X.dot(i, w), s.Y[i]) }

// epochs runs some epochs of a method from w and leaves the result there. The caller may move w in between.
type epochs interface {
	epoch(w []float64)
	cost() (start, each int) // in epochs
}

// sgd has a constant step.
type sgd struct{ *samples }

func (s *sgd) cost() (start, each int) { return 0, 1 }

func (s *sgd) epoch(w []float64) {
	h := 1 / (3 * (s.lmax + s.Reg))
	for range s.X.n {
		i := s.draw()
		s.step(w, nil, h, s.slopeAt(i, w), i)
	}
}

// saga keeps the slope of every sample: gradients of linear models are multiples of rows.
type saga struct {
	*samples
	slopes []float64
	mean   []float64 // of the gradients in the table
}

func newSAGA(s *samples, w []float64) *saga {
	a := &saga{samples: s, slopes: make([]float64, s.X.n), mean: make([]float64, s.X.d)}
	for i := range a.slopes {
		a.slopes[i] = s.slopeAt(i, w)
		s.X.add(a.mean, a.slopes[i]/float64(s.X.n), i)
	}
	return a
}

func (a *saga) cost() (start, each int) { return 1, 1 }

func (a *saga) epoch(w []float64) {
	h := 1 / (3 * (a.lmax + a.Reg))
	for range a.X.n {
		i := a.draw()
		slope := a.slopeAt(i, w)
		change := slope - a.slopes[i]
		a.slopes[i] = slope
		if a.X.index == nil {
			_, row := a.X.Row(i)
			a.kern.SAGAStep(&w[0], &a.mean[0], &row[0], 1-h*a.Reg, -h, -h*change, change/float64(a.X.n), len(w))
			continue
		}
		a.step(w, a.mean, h, change, i)
		a.X.add(a.mean, change/float64(a.X.n), i)
	}
}

// svrg goes n steps from a full gradient.
type svrg struct {
	*samples
	full   Func
	anchor []float64
	grad   []float64
	slopes []float64
}

func (s *svrg) cost() (start, each int) { return 0, 2 }

func (s *svrg) epoch(w []float64) {
	s.take(w)
	h := 1 / (3 * (s.lmax + s.Reg))
	for range s.X.n {
		i := s.draw()
		change := s.slopeAt(i, w) - s.slopes[i]
		s.step(w, s.grad, h, change, i)
	}
}

// take sets the anchor, the gradient of the data term there and the slopes.
func (s *svrg) take(w []float64) {
	if s.grad == nil {
		s.anchor, s.grad, s.slopes = make([]float64, len(w)), make([]float64, len(w)), make([]float64, s.X.n)
	}
	copy(s.anchor, w)
	s.full(w, s.grad)
	floats.AddScaled(s.grad, -s.Reg, w)
	for i := range s.slopes {
		s.slopes[i] = s.slopeAt(i, w)
	}
}

// katyusha is Allen-Zhu's algorithm 1 with option II's proximal steps, the regulariser being ψ.
type katyusha struct {
	svrg
	y, z, x, mean, noisy []float64
	end                  []float64 // of the epoch before
}

func newKatyusha(s *samples, full Func) *katyusha {
	k := &katyusha{svrg: svrg{samples: s, full: full}}
	for _, v := range []*[]float64{&k.y, &k.z, &k.x, &k.mean, &k.noisy} {
		*v = make([]float64, s.X.d)
	}
	return k
}

func (k *katyusha) cost() (start, each int) { return 0, 5 }

func (k *katyusha) epoch(w []float64) {
	if k.end == nil || !slices.Equal(k.end, w) { // the first, or the caller has moved w
		copy(k.y, w)
		copy(k.z, w)
	}
	k.take(w)
	steps := 2 * k.X.n
	sigma := k.Reg
	const tau2 = 0.5
	tau1 := math.Min(math.Sqrt(float64(steps)*sigma/(3*k.lmax)), 0.5)
	alpha := 1 / (3 * tau1 * k.lmax)
	theta, total := 1+alpha*sigma, 0.0
	clear(k.mean)
	for range steps {
		k.kern.Mix(&k.x[0], &k.z[0], &k.anchor[0], &k.y[0], tau1, tau2, 1-tau1-tau2, len(w))
		i := k.draw()
		change := k.slopeAt(i, k.x) - k.slopes[i]
		copy(k.noisy, k.grad)
		k.X.add(k.noisy, change, i)
		short := 1 / (3 * k.lmax)
		// The mean weighs y_j by θ^j; weights are relative to the newest, so that none overflows.
		total = total/theta + 1
		k.kern.KatyushaStep(&k.z[0], &k.y[0], &k.mean[0], &k.x[0], &k.noisy[0], alpha, 1/(1+alpha*sigma), short,
			1/(1+short*sigma), 1/total, len(w))
	}
	copy(w, k.mean)
	k.end = append(k.end[:0], w...)
}
