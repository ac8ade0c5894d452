package train

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// Exponents of the power averages that rivals use: the mean age of the iterates is T/(γ+2) after T steps, so 26 has
// half the lag of 12.
var gammas = []float64{5, 12, 26}

// quarters is the number of segment means per epoch.
const quarters = 4

// A rival is an average, or a point that might beat one.
type rival struct {
	name string
	x    []float64
}

// rivals follows a run at a constant rate. At the end of an epoch it computes points that compete with the end of a
// run whose rate falls to zero there.
type rivals struct {
	run *Run
	at  int // the epoch

	emas  []device.Vector // by γ
	mean  device.Vector   // of the iterates of a quarter of an epoch
	count int             // iterates in the mean
	sum   device.Vector   // sum of gradients

	ends, means [][]float64   // newest iterates at epoch ends, and newest quarter means, oldest first
	slow        [][][]float64 // by γ: the averages at the ends of quarters

	marks []mark
}

var (
	_ hook.OpeningHook = (*rivals)(nil)
	_ hook.StepHook    = (*rivals)(nil)
	_ hook.EpochHook   = (*rivals)(nil)
)

func (*rivals) Name() string { return "rivals" }

func (h *rivals) Open(s *hook.State) error {
	h.emas, h.slow = make([]device.Vector, len(gammas)), make([][][]float64, len(gammas))
	var errs []error
	for _, v := range []*device.Vector{&h.mean, &h.sum, &h.emas[0], &h.emas[1], &h.emas[2]} {
		var err error
		*v, err = s.Net.NewParams()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (h *rivals) Close() error {
	for _, v := range append([]device.Vector{h.mean, h.sum}, h.emas...) {
		if v != nil {
			v.Free()
		}
	}
	return nil
}

func (h *rivals) AfterStep(_ context.Context, s *hook.State) error {
	var errs []error
	for i, g := range gammas {
		a := 1.
		if s.Steps > 1 {
			a = (g + 1) / (float64(s.Steps) + g)
		}
		errs = append(errs, h.emas[i].Lerp(a, s.Net.Params))
	}
	h.count++
	errs = append(errs, h.mean.Lerp(1/float64(h.count), s.Net.Params))
	before := s.Batch - s.StepBatches
	if s.Batch*quarters/s.Batches == before*quarters/s.Batches {
		return errors.Join(errs...)
	}
	h.count = 0
	keep(&h.means, 20, h.read(h.mean, &errs))
	for i := range gammas {
		keep(&h.slow[i], 5, h.read(h.emas[i], &errs))
	}
	return errors.Join(errs...)
}

func (h *rivals) read(v device.Vector, errs *[]error) []float64 {
	x := make([]float64, v.Len())
	*errs = append(*errs, v.ReadAt64(x, 0))
	return x
}

// keep appends x to a list and drops the oldest element beyond most.
func keep(list *[][]float64, most int, x []float64) {
	*list = append(*list, x)
	if len(*list) > most {
		*list = slices.Delete(*list, 0, 1)
	}
}

func (h *rivals) AfterEpoch(ctx context.Context, s *hook.State) error {
	var errs []error
	keep(&h.ends, 6, h.read(s.Net.Params, &errs))
	if err := errors.Join(errs...); err != nil || s.Epoch != h.at {
		return err
	}
	return s.Temporarily(func() error {
		list := h.points(s)
		fitted, err := h.fitted(ctx, s)
		if err != nil {
			return err
		}
		for _, p := range append(list, fitted...) {
			held, err := h.judge(ctx, s, p.x)
			if err != nil {
				return err
			}
			val, err := s.Evaluate(ctx)
			if err != nil {
				return err
			}
			h.marks = append(h.marks, mark{p.name, val.Error(), val.Loss, held.Loss})
		}
		return nil
	})
}

// judge scores a point on the held-out images and leaves it in the network.
func (h *rivals) judge(ctx context.Context, s *hook.State, x []float64) (*network.Score, error) {
	if err := errors.Join(s.Net.Params.WriteAt64(x, 0), s.Recalibrate(ctx)); err != nil {
		return nil, err
	}
	return s.EvaluateHeld(ctx)
}

// points returns the averages and the rivals that need only weights.
func (h *rivals) points(s *hook.State) []rival {
	ema := func(i int) []float64 { return h.slow[i][len(h.slow[i])-1] }
	ends, means := last(h.ends, 5), last(h.means, 13)
	list := []rival{{"SGD", h.ends[len(h.ends)-1]}}
	for i, name := range []string{"EMA 5", "EMA 12", "EMA 26"} {
		list = append(list, rival{name, ema(i)})
	}
	list = append(list,
		rival{"average of 5 epochs' ends", mean(uniform(len(ends)), ends)},
		rival{"average of 20 quarters' means", mean(uniform(len(h.means)), h.means)},
		rival{"RNA of 5 epochs' ends", chain(h.ends)},
		rival{"RNA of 12 quarters' means", chain(means)},
		rival{"RNA of three EMAs, 4 quarters", h.several(s, false)},
		rival{"the same, residuals by rate", h.several(s, true)},
		rival{"RNA of 12 quarters' means, c by tensor", h.byTensor(s, means)},
		rival{"2 EMA 26 − EMA 12", mean([]float64{2, -1}, [][]float64{ema(2), ema(1)})},
		rival{"1.5 EMA 26 − 0.5 EMA 12", mean([]float64{1.5, -.5}, [][]float64{ema(2), ema(1)})},
		rival{"1.5 EMA 12 − 0.5 EMA 5", mean([]float64{1.5, -.5}, [][]float64{ema(1), ema(0)})},
	)
	return list
}

// several is RNA over the snapshots of all power averages at once. An average's residual shrinks with its rate,
// (γ+1)/(T+γ) per step: if rates is set it is divided by that, and is about w − x for the mean w of the iterates.
func (h *rivals) several(s *hook.State, rates bool) []float64 {
	var xs, rs [][]float64
	for i, g := range gammas {
		a := 1.
		if rates {
			a = (float64(s.Steps) + g) / (g + 1)
		}
		for k := 1; k < len(h.slow[i]); k++ {
			xs = append(xs, h.slow[i][k])
			rs = append(rs, mean([]float64{a, -a}, [][]float64{h.slow[i][k], h.slow[i][k-1]}))
		}
	}
	return mean(coefficients(rs), xs)
}

// byTensor is RNA with separate coefficients for each tensor.
func (h *rivals) byTensor(s *hook.State, snapshots [][]float64) []float64 {
	x := slices.Clone(snapshots[len(snapshots)-1])
	for _, t := range s.Net.Tensors() {
		var parts [][]float64
		for _, v := range snapshots {
			parts = append(parts, v[t.Off:t.Off+t.Len])
		}
		copy(x[t.Off:], chain(parts))
	}
	return x
}

// fitted returns the rivals whose coefficients use gradients on the held-out images.
func (h *rivals) fitted(ctx context.Context, s *hook.State) ([]rival, error) {
	averages := [][]float64{mean(uniform(len(h.means)), h.means)}
	for i := range gammas {
		averages = append(averages, h.slow[i][len(h.slow[i])-1])
	}
	averages[0], averages[2] = averages[2], averages[0] // EMA 12 is the base
	means := slices.Clone(last(h.means, 8))
	slices.Reverse(means)
	means[0] = averages[0]
	var list []rival
	for _, f := range []struct {
		name string
		xs   [][]float64
	}{{"averages", averages}, {"quarters' means", means}} {
		gs := make([][]float64, len(f.xs))
		for i, x := range f.xs {
			var err error
			if gs[i], err = h.gradient(s, x); err != nil {
				return nil, err
			}
		}
		list = append(list, rival{"held-out gradients as residuals, " + f.name, mean(coefficients(gs), f.xs)})
		x, err := h.newton(ctx, s, f.xs, gs)
		if err != nil {
			return nil, err
		}
		list = append(list, rival{"minimum of a quadratic model, " + f.name, x})
	}
	return list, nil
}

// gradient returns the gradient of the held-out loss at x.
func (h *rivals) gradient(s *hook.State, x []float64) ([]float64, error) {
	if err := s.Net.Params.WriteAt64(x, 0); err != nil {
		return nil, err
	}
	first, images := true, 0
	for b, err := range h.run.in.held.Epoch(context.Background(), 0, 0) {
		if err != nil {
			return nil, err
		}
		p, err := s.Net.Start(b, network.StepOptions{Sum: h.sum, First: first})
		if err == nil {
			_, _, err = p.Wait()
		}
		if err != nil {
			return nil, err
		}
		first, images = false, images+b.N
	}
	g := make([]float64, len(x))
	if err := h.sum.ReadAt64(g, 0); err != nil {
		return nil, err
	}
	for i := range g {
		g[i] /= float64(images)
	}
	return g, nil
}

// newton minimises a quadratic model of the held-out loss over the affine hull of points, the first of which is its
// base: the gradient there is measured, and second derivatives are differences of gradients, Dᵀ(G − g 1ᵀ) symmetrised
// for D = X − x 1ᵀ. Of several ridges, and the base, it takes the one with the lowest loss.
func (h *rivals) newton(ctx context.Context, s *hook.State, xs, gs [][]float64) ([]float64, error) {
	n := len(xs) - 1
	var d, e [][]float64
	for i := range n {
		d = append(d, mean([]float64{1, -1}, [][]float64{xs[i+1], xs[0]}))
		e = append(e, mean([]float64{1, -1}, [][]float64{gs[i+1], gs[0]}))
	}
	hess, slope := mat.NewSymDense(n, nil), make([]float64, n)
	for i := range n {
		slope[i] = dot(d[i], gs[0])
		for j := range i + 1 {
			hess.SetSym(i, j, (dot(d[i], e[j])+dot(d[j], e[i]))/2)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(hess, true) {
		return xs[0], nil
	}
	values, vectors := eigen.Values(nil), &mat.Dense{}
	eigen.VectorsTo(vectors)
	most := 0.
	for _, v := range values {
		most = max(most, math.Abs(v))
	}
	best := xs[0]
	score, err := h.judge(ctx, s, best)
	if err != nil {
		return nil, err
	}
	for _, ridge := range []float64{1, .1, .01} {
		c := make([]float64, n+1)
		for k, v := range values {
			p := 0.
			for i := range n {
				p += vectors.At(i, k) * slope[i]
			}
			for i := range n {
				c[i+1] -= vectors.At(i, k) * p / (math.Abs(v) + ridge*most)
			}
		}
		c[0] = 1
		for _, a := range c[1:] {
			c[0] -= a
		}
		x := mean(c, xs)
		sc, err := h.judge(ctx, s, x)
		if err != nil {
			return nil, err
		}
		if sc.Loss < score.Loss {
			best, score = x, sc
		}
	}
	return best, nil
}

// chain is RNA of snapshots in which each follows from the previous one.
func chain(xs [][]float64) []float64 {
	var rs [][]float64
	for i, x := range xs[1:] {
		rs = append(rs, mean([]float64{1, -1}, [][]float64{x, xs[i]}))
	}
	return mean(coefficients(rs), xs[1:])
}

// coefficients returns RNA's coefficients for residuals, λ = 1e-9, or those of the plain average if RNA has none.
func coefficients(rs [][]float64) []float64 {
	gram := mat.NewSymDense(len(rs), nil)
	for i := range rs {
		for j := range i + 1 {
			gram.SetSym(i, j, dot(rs[i], rs[j]))
		}
	}
	if r := rna.Factor(gram).Solve(1e-9); r.Status == rna.OK {
		return r.C
	}
	return uniform(len(rs))
}

func dot(x, y []float64) float64 {
	sum := 0.
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func last[T any](x []T, n int) []T { return x[max(0, len(x)-n):] }
