package norm

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/mapping"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Again repeats a BatchNorm before the gradient of the expression behind it. The copy, that gradient and the sums of
// the BatchNorm's own gradient run in one pass, and the first result is not stored.
func Again(p *device.Program) {
	f := lower.NewFlow(p)
	for i := len(p.Steps) - 1; i >= 0; i-- {
		late, before := gradientOf(f, i)
		if late < 0 {
			continue
		}
		z := p.Steps[i].Out
		again := lower.Repeat(p, before, i)
		s := &p.Steps[late+1]
		s.In = slices.Clone(s.In)
		for k, u := range s.In {
			if u == z {
				s.In[k] = again
			}
		}
		f = lower.NewFlow(p)
	}
}

// gradientOf returns a step that reads the BatchNorm of step i for the gradient of the expression behind it, and the
// first step of the chain that this step is in, or -1. Only two expressions read the BatchNorm, the chain begins behind
// the other one, and the BatchNorm's gradient sums the chain's result.
func gradientOf(f *lower.Flow, i int) (reader, first int) {
	s, readers := f.Step(i), f.Readers(i)
	if !lower.Is[op.BatchNorm](s) || f.Kept(i) || len(readers) != 2 ||
		slices.ContainsFunc(readers, func(r int) bool { return !lower.Is[op.Map](f.Step(r)) }) {
		return -1, -1
	}
	reader = readers[1]
	first = mapping.Heads(f, i, reader)[0]
	if readers[0] >= first {
		return -1, -1
	}
	for _, m := range lower.MapsFrom(f, first) {
		sums := sumsOf(f, s, m.Steps[len(m.Steps)-1])
		if sums >= 0 && slices.Contains(m.Steps, reader) && f.Movable(append(m.Steps, sums)) {
			return reader, first
		}
	}
	return -1, -1
}

// sumsOf finds the sums for the gradient of BatchNorm s whose dy step last makes, or -1.
func sumsOf(f *lower.Flow, s work.Step, last int) int {
	sums := Sums(f, last)
	if sums >= 0 && f.Step(sums).In[0] == s.In[0] && f.Step(sums).In[1] == s.In[1] {
		return sums
	}
	return -1
}

// gradient matches BatchNorm + expressions + BatchNormGradSums: steps are those before the sums.
func (b batchNorm) gradient(f *lower.Flow, s work.Step, steps []int) (m work.Match, ok bool) {
	last := sumsOf(f, s, steps[len(steps)-1])
	if last < 0 || b.made || b.other >= 0 || slices.Contains(b.then.In, b.x) { // the sums read x after the expression
		return m, false
	}
	sums := f.Step(last)
	return work.Match{Steps: append(slices.Clone(steps), last), Lower: func() (*work.Lowering, error) {
		if err := work.DataIn(s); err != nil {
			return nil, err
		}
		return b.sums(sums)
	}}, true
}

// sums lowers b with an expression dy of its result and the step that sums dy·(x−mean) and dy. Stored as bfloat16, dy
// is rounded before it is summed.
func (b *batchNorm) sums(s work.Step) (*work.Lowering, error) {
	b.Rows = nhwc.RowsOf(nhwc.Pixels(s.InType(0).Shape))
	var r work.Room
	scratch, sums := r.Each(3, b.Width()), nhwc.NewSums(&r, b.Pixels, b.Channels)
	grad, over, err := b.expressionGrad(&r)
	if err != nil {
		return nil, err
	}
	y, g := b.then.Last, NewGradSums(s, s.Op.(op.BatchNormGradSums))
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.For(st.Level)
		x, dy, stats, dst := st.Pieces(b.x), st.Pieces(y.Out), st.Floats(b.stats), st.Floats(s.Out)
		params, centres := st.Scratches(scratch), st.Scratch(sums.Parameters)
		prepare := b.prepare(st, params)
		before, run := grad.bind(st)
		if st.Err != nil {
			return nil
		}
		half := grad.stored(st, x, dy)
		before = append(before, prepare, work.Phase{Blocks: 1, Run: func(int, int) { sums.Spread(centres, stats) }})
		return append(before, sums.Phases(st, func(worker int, m nhwc.Summed) {
			column := m.From % b.Width()
			mean, gain, shift := params[0][column:][:m.Width], params[1][column:][:m.Width], params[2][column:][:m.Width]
			n, rows := m.Width, m.Rows
			if m.Width == m.Stride { // without gaps
				n, rows = m.Rows*m.Width, 1
			}
			if half != nil {
				for row := range rows {
					half(m.From+row*m.Stride, n, mean, gain, shift)
				}
				vec.StoredFor(st.Level).GradSums(m.First, m.Second, x.Stored()[m.From:], dy.Stored()[m.From:],
					m.Parameters, m.Width, m.Stride, 0, m.Rows)
				return
			}
			from, to := m.Read(x, worker), m.To(dy, worker)
			for row := range rows {
				at := row * m.Stride
				run(worker, to[at:][:n], from[at:][:n], m.From+at, mean, gain, shift)
			}
			m.Done(dy, worker)
			k.GradSums(m.First, m.Second, from, m.Read(dy, worker), m.Parameters, m.Width, m.Stride, m.Rows)
		}, g.Finish(dst, stats))...)
	})
	l.Kernel.Take(sums.Piece(), b.x, y.Out)
	grad.take(&l.Kernel, sums.Piece())
	l.Results = append(l.Results, lower.Result{
		Value: y.Out, Layout: work.Layout(y.OutType(), device.Data), Bytes: y.OutType().Bytes(), Over: over,
	})
	l.Workspace = r.Bytes
	return l, nil
}

// A block has a whole row of a tile of sums.
const _ = uint(mapping.Block - nhwc.SumTile)

// expressionGrad is a chain behind a BatchNorm as a function of its operand. It is the gradient of an activation for
// the value dy; or that for the result of a plan in blocks; or a plan that reads the BatchNorm's result.
type expressionGrad struct {
	active bool
	act    vec.Activation
	dy     int           // -1 for a plan
	plan   *mapping.Plan // nil for dy
	parts  []work.Part   // of the plan: blocks of its result, or of the BatchNorm's
}

// expressionGrad reserves its scratch in r and lists the values whose storage the result may take.
func (b *batchNorm) expressionGrad(r *work.Room) (e expressionGrad, over []int, err error) {
	chain := *b.then
	e.dy = -1
	if act, dy, ok := chain.ActivationGrad(); ok {
		e.active, e.act, e.dy, chain = true, act, dy.Value(), dy
	}
	if e.dy >= 0 {
		return e, []int{e.dy}, nil
	}
	e.parts = r.Each(b.workers, mapping.Block)
	if e.plan, err = chain.Plan(r, b.workers, mapping.Block); err != nil {
		return e, nil, err
	}
	return e, e.plan.Over, nil
}

// take makes k take the operands of e, for calls with at most the given number of elements.
func (e *expressionGrad) take(k *work.Kernel, elements int) {
	k.Take(elements, e.dy)
	if e.plan != nil {
		e.plan.Take(k)
	}
}

// bind returns the phases before e, and e for elements of x from place lo on with the parameters of their columns.
func (e *expressionGrad) bind(st *work.Storage) (
	before []work.Phase, run func(worker int, to, x []float32, lo int, mean, gain, shift []float32)) {
	k := vec.For(st.Level)
	if e.plan == nil {
		dy := st.Pieces(e.dy)
		return nil, func(worker int, to, x []float32, lo int, mean, gain, shift []float32) {
			k.NormalizeActGrad[e.act](to, x, dy.Read(worker, lo, lo+len(x)), mean, gain, shift)
		}
	}
	buffers := st.Scratches(e.parts)
	bound, before := e.plan.Bind(st)
	if st.Err != nil {
		return nil, nil
	}
	return append(before, bound.Begin()...), func(worker int, to, x []float32, lo int, mean, gain, shift []float32) {
		part := max(1, mapping.Block/len(mean)) * len(mean)
		for len(x) > 0 {
			n := min(part, len(x))
			made := buffers[worker][:n]
			if e.active {
				bound.Run(worker, made, lo, nil)
				k.NormalizeActGrad[e.act](to[:n], x[:n], made, mean, gain, shift)
			} else {
				k.Normalize(made, x[:n], mean, gain, shift)
				bound.Run(worker, to[:n], lo, made)
			}
			to, x, lo = to[n:], x[n:], lo+n
		}
	}
}

// stored is e for n elements from place lo on if the level has kernels for that and all are stored as bfloat16, or nil.
func (e *expressionGrad) stored(st *work.Storage, x, to *work.Pieces) func(lo, n int, mean, gain, shift []float32) {
	k := vec.StoredFor(st.Level)
	if k == nil || e.plan != nil {
		return nil
	}
	from, dst, dy := x.Stored(), to.Stored(), st.Pieces(e.dy).Stored()
	if from == nil || dst == nil || dy == nil {
		return nil
	}
	return func(lo, n int, mean, gain, shift []float32) {
		k.NormalizeActGrad[e.act](dst[lo:lo+n], from[lo:], dy[lo:], mean, gain, shift)
	}
}
