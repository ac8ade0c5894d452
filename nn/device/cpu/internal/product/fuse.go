package product

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/mapping"
	"onlinerna/nn/device/cpu/internal/move"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/norm"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// forward matches a convolution or a linear layer, alone or with the following ops: the statistics of its result; or a
// batch normalisation by constants or a product with a factor for each channel, an addition and a ReLU; or expressions
// of its result alone. Views may lie before the factor and before the addition.
func (d Options) forward(f *lower.Flow, first int) []work.Match {
	s := f.Step(first)
	var p productStep
	conv := false
	switch o := s.Op.(type) {
	case op.Conv2D:
		p, conv = convStep(s, o), true
		p.product = d.merge(p.product, s.InType(1).Shape)
	case op.Linear:
		p = linearStep(s)
	default:
		return nil
	}
	e := ending{last: s, factor: -1, other: -1, inside: -1}
	list := []work.Match{d.ending(p, e, []int{first})}
	endable := p.endable(d)
	if d.kernels(p.product) == nil && !endable {
		return list
	}
	summable := p.summable() || endable
	if last := statistics(f, first); last >= 0 && summable {
		return slices.Insert(list, 0, work.Match{Steps: []int{first, last}, Lower: func() (*work.Lowering, error) {
			return d.withStatistics(p, s, f.Step(last))
		}})
	}
	steps, end := []int{first}, first
	follow := func(views []int, next int) {
		e.last, end = f.Step(next), next
		steps = append(append(slices.Clone(steps), views...), next)
		list = slices.Insert(list, 0, d.ending(p, e, steps))
	}
	if next, ok := lower.Next[op.BatchNorm](f, first); ok && conv {
		if bn := f.Step(next); bn.Op.(op.BatchNorm).Fixed && bn.In[0] == s.Out {
			e.norm = &bn
			follow(nil, next)
		}
	} else if views, made, next := beyond(f, end); next >= 0 {
		if v := factor(f, first, next, made); v >= 0 {
			e.factor = v
			follow(views, next)
		}
	}
	if views, made, next := beyond(f, end); next >= 0 && lower.Is[op.Add](f.Step(next)) && !p.depthwise() {
		if other, ok := f.Step(next).Other(made); ok {
			e.other = other
			follow(views, next)
		}
	}
	if next, ok := lower.Next[op.ReLU](f, end); ok {
		e.relu = true
		follow(nil, next)
		return list
	}
	next := f.Sole(end)
	if next < 0 || !summable {
		return list
	}
	var longer []work.Match
	for _, c := range mapping.After(f, end, next) {
		if c.Alone() {
			e.inside, e.last, e.then = f.Step(end).Out, c.Last, &c
			longer = append(longer, d.ending(p, e, append(slices.Clone(steps), c.Steps[1:]...)))
		}
	}
	return append(longer, list...)
}

// beyond follows the views behind step i that keep its elements in their places, each the only reader of the value
// before, up to the step that alone reads the last, made. Next is -1 if there is none.
func beyond(f *lower.Flow, i int) (views []int, made, next int) {
	for {
		made, next = f.Step(i).Out, f.Sole(i)
		if next < 0 || !move.Keeps(f.Step(next)) {
			return views, made, next
		}
		views, i = append(views, next), next
	}
}

// factor is the value from outside that has the factors by which step next multiplies the channels of product first,
// made, or -1. In training, where another step reads the weights, the factors stay a step of their own: to save memory
// a machine makes some results a second time, with the same bits.
func factor(f *lower.Flow, first, next, made int) int {
	p, s := f.Step(first), f.Step(next)
	m, ok := s.Op.(op.Map)
	if !ok || len(f.ReadersOf(p.In[1])) > 1 {
		return -1
	}
	other, ok := s.Other(made)
	if nodes := m.Expr.Nodes(); !ok || len(nodes) != 3 || nodes[2].Kind != expr.KindMul ||
		nodes[0].Kind != expr.KindArg || nodes[1].Kind != expr.KindArg {
		return -1
	}
	x, y := s.Values[other].Type.Shape, s.OutType().Shape
	innermost := len(y) == 2 || len(y) == 4
	if axes, ok := op.Along(x, y); !ok || axes != op.Channels || !innermost || x.Size() != p.OutType().Shape[1] ||
		f.Maker(other) >= 0 || other == p.In[0] {
		return -1
	}
	return other
}

// statistics finds the step that computes the batch statistics of a convolution's result that has other readers too, or
// returns -1.
func statistics(f *lower.Flow, first int) int {
	if f.Sole(first) >= 0 {
		return -1
	}
	for _, r := range f.Readers(first) {
		if lower.Is[op.BatchNormStats](f.Step(r)) {
			return r
		}
	}
	return -1
}

// ending is the chain of ops behind a product, up to step last.
type ending struct {
	last   work.Step
	norm   *work.Step // nil for none
	factor int        // factors of the channels, or -1
	other  int        // an addend, or -1
	relu   bool
	then   *mapping.Chain // an expression of the result and perhaps of values of its shape, or nil
	inside int            // the value that then reads, if another op would find it stored as bfloat16, or -1
}

// ending returns the match of a product and its ending.
func (d Options) ending(p productStep, e ending, steps []int) work.Match {
	return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) {
		if err := p.expect(); err != nil {
			return nil, err
		}
		if err := work.IsData(e.last, e.other); err != nil {
			return nil, err
		}
		if d.kernels(p.product) == nil && !p.endable(d) {
			return d.alone(p, p.product), nil
		}
		q := *p.product
		stored := func(v int) bool { return len(e.last.Values[v].Type.Shape) == 4 || e.last.Values[v].Narrow }
		q.rounded = stored(e.last.Out)
		p.product = &q
		t := d.vector(p.product)
		if bn := e.norm; bn != nil {
			t.end().folded = &folded{eps: bn.Op.(op.BatchNorm).Eps, stats: bn.In[1], scale: bn.In[2], bias: bn.In[3],
				fixed: work.Fixed(*bn, bn.In[1:4]...)}
		} else if e.factor >= 0 {
			t.end().folded = &folded{stats: -1, scale: e.factor, bias: -1, fixed: work.Fixed(e.last, e.factor)}
		}
		t.end().other, t.end().relu, t.end().then = e.other, e.relu, e.then
		t.end().rounds = d.BFloat16 && e.inside >= 0 && stored(e.inside)
		p.step = e.last
		l := d.alone(p, t)
		_, rewrites := t.(*grouped)
		// The result may overwrite the addend unless that is read again later: as the source or the weights, or by grouped,
		// whose runs share pixels.
		if e.other != p.src && e.other != p.weights && !rewrites {
			l.Results[0].Over = []int{e.other}
		}
		return l, nil
	}}
}

// withStatistics lowers a convolution together with the statistics of its result.
func (d Options) withStatistics(p productStep, conv, stats work.Step) (*work.Lowering, error) {
	if err := p.expect(); err != nil {
		return nil, err
	}
	pixels, channels := nhwc.Pixels(conv.OutType().Shape)
	return d.summed(p, conv, stats, &blockSums{bind: func(st *work.Storage, _ [][][]float32) (func([]float32, nhwc.Rows),
		addSums, func(int, float64, float64)) {
		k, dst := vec.For(st.Level), st.Floats(stats.Out)
		return nil,
			func(_ int, m nhwc.Summed, made []float32, step int) {
				k.Moments(m.First, m.Second, made, m.Width, step, m.Rows)
			},
			func(c int, sum, squares float64) { norm.Moments(dst, c, channels, pixels, sum, squares) }
	}, store: func(st *work.Storage) addSums {
		k, dst := vec.StoredFor(st.Level), st.Pieces(conv.Out).Stored()
		if k == nil || dst == nil {
			return nil
		}
		return func(_ int, m nhwc.Summed, made []float32, step int) {
			k.MomentsMade(m.First, m.Second, dst[m.From:], made, m.Width, m.Stride, step, m.Rows)
		}
	}}), nil
}

// summed lowers a product that computes the result of step of, and with it the sums that are the result of step by.
func (d Options) summed(p productStep, of, by work.Step, sums *blockSums) *work.Lowering {
	t := d.vector(p.product)
	t.end().sums = sums
	p.step = of
	l := d.alone(p, t)
	l.Results = append(l.Results, lower.Result{Value: by.Out, Layout: work.Layout(by.OutType(), device.Data),
		Bytes: by.OutType().Bytes()})
	return l
}

// linearGrad matches the gradient of a linear layer with respect to its input, alone or with the gradient of the
// activation that made that input: an expression of it and of values of its shape. Tiles end in rows of a few columns,
// which an expression would compute with a call each.
func (d Options) linearGrad(f *lower.Flow, first int) []work.Match {
	s := f.Step(first)
	if !lower.Is[op.LinearGradInput](s) {
		return nil
	}
	p := linearGradStep(s)
	e := ending{last: s, factor: -1, other: -1, inside: -1}
	list := []work.Match{d.ending(p, e, []int{first})}
	next := f.Sole(first)
	if d.kernels(p.product) == nil || d.tileable(p.product) || !p.summable() || next < 0 {
		return list
	}
	var longer []work.Match
	for _, c := range mapping.After(f, first, next) {
		if c.Elementwise() {
			e.last, e.then = c.Last, &c
			longer = append(longer, d.ending(p, e, c.Steps))
		}
	}
	return append(longer, list...)
}

// gradInput matches the gradient of a convolution with respect to its input, alone or, if that input is a ReLU's
// result, with an addition, the ReLU's gradient and the sums for the batch normalisation before the ReLU.
func (d Options) gradInput(f *lower.Flow, first int) []work.Match {
	s := f.Step(first)
	o, ok := s.Op.(op.Conv2DGradInput)
	if !ok {
		return nil
	}
	p := convGradInputStep(s, o)
	p.product = d.merge(p.product, s.InType(0).Shape)
	list := []work.Match{d.ending(p, ending{last: s, factor: -1, other: -1, inside: -1}, []int{first})}
	if d.kernels(p.product) == nil || !p.summable() {
		return list
	}
	steps, made, more := []int{first}, s.Out, -1
	if next, ok := lower.Next[op.Add](f, first); ok {
		add := f.Step(next)
		more, _ = add.Other(made)
		steps, made = append(steps, next), add.Out
	}
	next, ok := lower.Next[op.ReLUGrad](f, steps[len(steps)-1])
	if !ok || f.Step(next).In[1] != made {
		return list
	}
	last := norm.Sums(f, next)
	if last < 0 {
		return list
	}
	return slices.Insert(list, 0, work.Match{Steps: append(steps, next, last), Lower: func() (*work.Lowering, error) {
		return d.gradBehindReLU(p, f.Step(next), f.Step(last), more)
	}})
}

// gradBehindReLU lowers a gradient with respect to a ReLU's result, plus value more unless more is -1, together
// with the ReLU's gradient and its sums.
func (d Options) gradBehindReLU(p productStep, grad, sums work.Step, more int) (*work.Lowering, error) {
	if err := p.expect(); err != nil {
		return nil, err
	}
	b := norm.NewGradSums(sums, sums.Op.(op.BatchNormGradSums))
	relu := grad.In[0]
	if err := work.IsData(grad, b.X, relu, more); err != nil {
		return nil, err
	}
	reads := []int{b.X, relu}
	if more >= 0 {
		reads = append(reads, more)
	}
	if set := d.kernels(p.product); set.Narrow == nil && set.Tiles == nil { // those sum a few columns at a time
		p.product = p.besides(len(reads))
	}
	l := d.summed(p, grad, sums, &blockSums{reads: reads,
		bind: func(st *work.Storage, rooms [][][]float32) (func([]float32, nhwc.Rows), addSums, func(int, float64, float64)) {
			k := vec.For(st.Level)
			x, stats, y, dst := st.Pieces(b.X), st.Floats(b.Stats), st.Pieces(relu), st.Floats(sums.Out)
			added := st.Pieces(more)
			return func(row []float32, r nhwc.Rows) { r.Spread(row, stats) },
				func(worker int, m nhwc.Summed, dy []float32, step int) {
					of := func(v *work.Pieces, room int) []float32 {
						if rooms == nil {
							return v.All()[m.From:]
						}
						to := rooms[room][worker]
						v.Copy(to, step, m.From, m.Rows, m.Width, m.Stride)
						return to
					}
					if added != nil {
						k.AddReLUGradSums(m.First, m.Second, of(x, 0), dy, of(y, 1), dy, of(added, 2),
							m.Parameters, m.Width, step, m.Rows)
						return
					}
					k.ReLUGradSums(m.First, m.Second, of(x, 0), dy, of(y, 1), dy, m.Parameters, m.Width, step, m.Rows)
				},
				b.Finish(dst, stats)
		},
		store: func(st *work.Storage) addSums {
			k := vec.StoredFor(st.Level)
			x, y, dst := st.Pieces(b.X).Stored(), st.Pieces(relu).Stored(), st.Pieces(grad.Out).Stored()
			added := st.Pieces(more)
			if k == nil || x == nil || y == nil || dst == nil || added != nil && added.Stored() == nil {
				return nil
			}
			return func(_ int, m nhwc.Summed, made []float32, step int) {
				if added != nil {
					k.AddReLUGradSumsMade(m.First, m.Second, x[m.From:], dst[m.From:], y[m.From:], added.Stored()[m.From:], made,
						m.Parameters, m.Width, m.Stride, step, m.Rows)
					return
				}
				k.ReLUGradSumsMade(m.First, m.Second, x[m.From:], dst[m.From:], y[m.From:], made, m.Parameters, m.Width, m.Stride,
					step, m.Rows)
			}
		}})
	l.Kernel.Take(0, b.X, relu, more)
	return l, nil
}
