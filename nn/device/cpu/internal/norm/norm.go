// Package norm has batch normalisation: statistics, the affine map, their gradients, and the ops that run in the same
// pass.
package norm

import (
	"math"
	"slices"

	"onlinerna/nn/device/cpu/internal/mapping"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops for the given number of workers.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		func(f *lower.Flow, first int) []work.Match { return applied(f, first, workers) }, behindReLU,
		lower.Alone(stats), lower.Alone(update), lower.Alone(gradSums), lower.Alone(gradInput),
	}
}

// stats makes one pass. The sums are float64, so that the square of a mean much larger than the standard deviation does
// not hide the variance.
func stats(s work.Step, _ op.BatchNormStats) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	var r work.Room
	pixels, channels := nhwc.Pixels(s.InType(0).Shape)
	sums := nhwc.NewSums(&r, pixels, channels)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.For(st.Level)
		x, stats := st.Pieces(s.In[0]), st.Floats(s.Out)
		return sums.Phases(st,
			func(worker int, m nhwc.Summed) {
				if half, stored := vec.StoredFor(st.Level), x.Stored(); half != nil && stored != nil {
					half.Moments(m.First, m.Second, stored[m.From:], m.Width, m.Stride, 0, m.Rows)
					return
				}
				k.Moments(m.First, m.Second, m.Read(x, worker), m.Width, m.Stride, m.Rows)
			},
			func(c int, sum, squares float64) { Moments(stats, c, channels, pixels, sum, squares) })
	})
	l.Kernel.Take(sums.Piece(), s.In[0])
	l.Workspace = r.Bytes
	return l, nil
}

// Moments writes the mean and the variance of a channel from the sums of x and of x² over all pixels.
func Moments(stats []float32, c, channels, pixels int, sum, squares float64) {
	n := float64(pixels)
	mean := sum / n
	stats[c] = float32(mean)
	stats[channels+c] = float32(max(squares/n-float64(mean*mean), 0))
}

func update(s work.Step, o op.BatchNormUpdate) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		running, stats, momentum, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.Out)
		channels := len(stats) / 2
		unbiased := float64(o.Count) / float64(o.Count-1)
		return work.One(func() {
			m := float64(momentum[0])
			for i, v := range stats {
				now := float64(v)
				if i >= channels {
					now *= unbiased
				}
				dst[i] = float32((1-m)*float64(running[i]) + m*now)
			}
		})
	})
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}

// batchNorm is the affine map of each channel, y = (x − mean)·gain + bias, and optional ops behind it in the same pass.
type batchNorm struct {
	nhwc.Rows
	eps                   float64
	x, stats, scale, bias int // values
	other                 int // added to the result, or -1
	relu                  bool
	dst                   int
	then                  *mapping.Chain  // an expression of the result, or nil
	act                   *vec.Activation // the expression, if the same kernel computes it
	made                  bool            // the result is read outside the group too
	workers               int
}

// applied matches BatchNorm [+ Add] [+ ReLU] and BatchNorm [+ Add] + expressions.
func applied(f *lower.Flow, first, workers int) []work.Match {
	s := f.Step(first)
	o, ok := s.Op.(op.BatchNorm)
	if !ok {
		return nil
	}
	b := batchNorm{eps: o.Eps, x: s.In[0], stats: s.In[1], scale: s.In[2], bias: s.In[3], other: -1, dst: s.Out,
		workers: workers}
	steps, last := []int{first}, s
	list := []work.Match{b.match(s, steps)}
	if next, ok := lower.Next[op.Add](f, first); ok {
		last = f.Step(next)
		b.other, _ = last.Other(s.Out)
		b.dst = last.Out
		steps = append(slices.Clone(steps), next)
		list = slices.Insert(list, 0, b.match(s, steps))
	}
	end := steps[len(steps)-1]
	if next, ok := lower.Next[op.ReLU](f, end); ok {
		b.relu, b.dst = true, f.Step(next).Out
		return slices.Insert(list, 0, b.match(s, append(slices.Clone(steps), next)))
	}
	// A backward pass also reads the operand of an expression: then the operand leaves the group.
	readers := f.Readers(end)
	reader := slices.IndexFunc(readers, func(r int) bool { return lower.Is[op.Map](f.Step(r)) })
	if reader < 0 {
		return list
	}
	var longer []work.Match
	for _, c := range mapping.Around(f, end, readers[reader]) {
		b.then = &c
		b.made = f.Kept(end) || slices.ContainsFunc(readers, func(r int) bool { return !slices.Contains(c.Steps, r) })
		steps := append(slices.Clone(steps), c.Steps[1:]...)
		if m, ok := b.gradient(f, s, steps); ok {
			longer = append(longer, m)
		}
		longer = append(longer, b.match(s, steps))
	}
	return append(longer, list...)
}

// match is the match of b for the given steps, which begin with s.
func (b batchNorm) match(s work.Step, steps []int) work.Match {
	return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) {
		if err := work.DataIn(s); err != nil {
			return nil, err
		}
		if err := work.IsData(s, b.other); err != nil {
			return nil, err
		}
		b.Rows = nhwc.RowsOf(nhwc.Pixels(s.InType(0).Shape))
		var r work.Room
		scratch := r.Each(3, b.Width())
		if b.then != nil {
			act, ok := b.then.Activation()
			if !ok || b.made || b.other >= 0 {
				return b.expression(s, &r, scratch)
			}
			b.act, b.dst = &act, b.then.Last.Out
		}
		l := work.Data(s, func(st *work.Storage) []work.Phase { return b.phases(st, scratch) })
		l.Kernel.Take(b.Piece(), b.x, b.other, b.dst)
		l.Results[0].Value, l.Results[0].Over = b.dst, []int{b.x, b.other}
		l.Workspace = r.Bytes
		return l, nil
	}}
}

// expression lowers b with an expression of its result, a part of the rows at a time.
func (b *batchNorm) expression(s work.Step, r *work.Room, scratch []work.Part) (*work.Lowering, error) {
	part := max(1, mapping.Block/b.Width()) * b.Width()
	plan, err := b.then.Plan(r, b.workers, part)
	if err != nil {
		return nil, err
	}
	var parts []work.Part
	if !b.made {
		parts = r.Each(b.workers, part)
	}
	y := b.then.Last
	l := work.Data(y, func(st *work.Storage) []work.Phase {
		made, dst := st.Pieces(b.dst), st.Pieces(y.Out)
		params := st.Scratches(scratch)
		prepare, run := b.prepare(st, params), b.kernel(st, params, vec.For(st.Level))
		bound, before := plan.Bind(st)
		buffers := st.Scratches(parts)
		if st.Err != nil {
			return nil
		}
		before = append(append(before, bound.Begin()...), prepare)
		return append(before, b.Phase(func(worker, lo, hi int) {
			for ; lo < hi; lo += part {
				end := min(lo+part, hi)
				var x []float32
				if b.made {
					x = made.To(worker, lo, end)
				} else {
					x = buffers[worker][:end-lo]
				}
				run(worker, x, lo)
				bound.Run(worker, dst.To(worker, lo, end), lo, x)
				dst.Done(worker, lo, end)
				if b.made {
					made.Done(worker, lo, end)
				}
			}
		}))
	})
	l.Kernel.Take(part, b.x, b.other, b.dst, y.Out)
	plan.Take(&l.Kernel)
	l.Results[0].Over = append(plan.Over, b.x, b.other)
	l.Workspace = r.Bytes
	if b.made { // the expression still reads its operands when the result is written
		over := slices.DeleteFunc([]int{b.x, b.other}, func(v int) bool { return slices.Contains(b.then.In, v) })
		l.Results = append(l.Results, lower.Result{
			Value: b.dst, Layout: l.Results[0].Layout, Bytes: l.Results[0].Bytes, Over: over,
		})
	}
	return l, nil
}

func (b *batchNorm) phases(st *work.Storage, scratch []work.Part) []work.Phase {
	dst := st.Pieces(b.dst)
	operands := [][]float32{st.Pieces(b.x).All()}
	if b.other >= 0 {
		operands = append(operands, st.Pieces(b.other).All())
	}
	if st.Err != nil {
		return nil
	}
	params := st.Scratches(scratch)
	prepare := b.prepare(st, params)
	run := b.kernel(st, params, vec.To(st.Level, dst.All(), b.Width(), operands...))
	if half := b.half(st, params, dst); half != nil {
		return []work.Phase{prepare, b.Phase(func(_, lo, hi int) { half(lo, hi) })}
	}
	return []work.Phase{prepare, b.Rows.Pieces(dst, func(worker, lo, hi int) { run(worker, dst.To(worker, lo, hi), lo) })}
}

// prepare is the phase that makes the rows of parameters: means, gains and biases.
func (b *batchNorm) prepare(st *work.Storage, params [][]float32) work.Phase {
	stats, scale, bias := st.Floats(b.stats), st.Floats(b.scale), st.Floats(b.bias)
	mean, gain, shift := params[0], params[1], params[2]
	return work.Phase{Blocks: 1, Run: func(int, int) {
		gains(gain[:b.Channels], stats[b.Channels:], scale, b.eps)
		b.Spread(gain[b.Channels:], gain)
		b.Spread(mean, stats)
		b.Spread(shift, bias)
	}}
}

// kernel returns the map of the elements from lo on, which begin with a row.
func (b *batchNorm) kernel(st *work.Storage, params [][]float32, k *vec.Set) func(worker int, dst []float32, lo int) {
	x, other := st.Pieces(b.x), st.Pieces(b.other)
	mean, gain, shift := params[0], params[1], params[2]
	normalize, normalizeAdd := k.Normalize, k.NormalizeAdd
	if b.relu {
		normalize, normalizeAdd = k.NormalizeReLU, k.NormalizeAddReLU
	}
	if b.act != nil {
		normalize = k.NormalizeAct[*b.act]
	}
	if other != nil {
		return func(worker int, dst []float32, lo int) {
			hi := lo + len(dst)
			normalizeAdd(dst, x.Read(worker, lo, hi), other.Read(worker, lo, hi), mean, gain, shift)
		}
	}
	return func(worker int, dst []float32, lo int) {
		normalize(dst, x.Read(worker, lo, lo+len(dst)), mean, gain, shift)
	}
}

// half is the map of elements lo to hi if all of them are stored as bfloat16 and the level has kernels for that, or nil.
func (b *batchNorm) half(st *work.Storage, params [][]float32, dst *work.Pieces) func(lo, hi int) {
	k := vec.StoredFor(st.Level)
	x, y := st.Pieces(b.x).Stored(), dst.Stored()
	if k == nil || x == nil || y == nil {
		return nil
	}
	mean, gain, shift := params[0], params[1], params[2]
	normalize, normalizeAdd := k.Normalize, k.NormalizeAdd
	if b.relu {
		normalize, normalizeAdd = k.NormalizeReLU, k.NormalizeAddReLU
	}
	if b.act != nil {
		normalize = k.NormalizeAct[*b.act]
	}
	if b.other < 0 {
		return func(lo, hi int) { normalize(y[lo:hi], x[lo:hi], mean, gain, shift) }
	}
	other := st.Pieces(b.other).Stored()
	if other == nil {
		return nil
	}
	return func(lo, hi int) { normalizeAdd(y[lo:hi], x[lo:hi], other[lo:hi], mean, gain, shift) }
}

// gains sets gain to scale/σ.
func gains(gain, variance, scale []float32, eps float64) {
	for c := range gain {
		gain[c] = float32(float64(scale[c]) / math.Sqrt(float64(variance[c])+eps))
	}
}
