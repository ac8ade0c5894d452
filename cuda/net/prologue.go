//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// statistics finds the steps whose sums a convolution can take as it stores its result: BatchNormStats [+
// BatchNormUpdate].
func (d *Device) statistics(f *lower.Flow, conv int) (stats int, update *step, steps []int) {
	i := slices.IndexFunc(f.Readers(conv), func(r int) bool { return lower.Is[op.BatchNormStats](f.Step(r)) })
	if i < 0 {
		return -1, nil, nil
	}
	stats = f.Readers(conv)[i]
	steps = []int{conv, stats}
	for _, r := range f.Readers(stats) {
		if u := f.Step(r); lower.Is[op.BatchNormUpdate](u) && u.In[1] == f.Step(stats).Out && update == nil {
			update = &step{d, u}
			steps = append(steps, r)
		}
	}
	return stats, update, steps
}

// statsOf adds the kernel that turns the sums of a convolution's channels into statistics.
func (b *binding) statsOf(sums, out driver.Span, update *step, pixels, channels int) {
	running, momentum, unbiased := b.running(update)
	grid, block := each(channels)
	b.launch("fused.cu", "nn_stats_of_sums", grid, block, sums.Updated(), out.Written(), running.Updated(), momentum,
		int64(pixels), channels, unbiased)
}

// normedConvolution takes BatchNorm [+ Add] + ReLU + Conv2D + BatchNormStats [+ BatchNormUpdate]: for float16 cuDNN has
// convolutions that normalise their input. After an addition the input is the end of a residual block and is stored,
// too; only 1×1 convolutions do so. Without an addition it is not stored, and the gradient of the weights, which also
// reads it, normalises it again: see normedGradWeight.
func (d *Device) normedConvolution(f *lower.Flow, first int) []lower.Match[kernel] {
	norm := step{d, f.Step(first)}
	if d.opts.Precision != number.Float16 || !lower.Is[op.BatchNorm](norm.Step) {
		return nil
	}
	for _, m := range slices.Concat(d.normalisedTwice(f, first), d.normalised(f, first)) {
		y := read{norm: norm, added: -1, relu: m.Steps[len(m.Steps)-1]}
		if !lower.Is[op.ReLU](f.Step(y.relu)) {
			continue
		}
		switch len(m.Steps) {
		case 3:
			y.added, _ = f.Step(m.Steps[1]).Other(norm.Out)
		case 4:
			y.second = &step{d, f.Step(m.Steps[1])}
			y.added = y.second.In[0]
		}
		for _, r := range f.Readers(y.relu) {
			if y.added < 0 && !d.normedAlone(f, y.relu, r) {
				continue
			}
			if x, ok := d.normRead(f, y, r); ok {
				x.steps = append(x.steps, m.Steps...)
				if all := d.match(f, x); all != nil {
					return all
				}
			}
		}
	}
	return nil
}

// read is a convolution's computed input: a normalisation, value added unless negative (normalised by second, if set),
// and a ReLU.
type read struct {
	norm   step
	added  int
	second *step
	relu   int
}

// norms is the number of normalisations.
func (y read) norms() int {
	if y.second != nil {
		return 2
	}
	return 1
}

// normedAlone reports whether only a convolution, and the gradient of its weights if that can normalise, read the
// result of step relu.
func (d *Device) normedAlone(f *lower.Flow, relu, conv int) bool {
	for _, r := range f.Readers(relu) {
		if r != conv && (!lower.Is[normedGradWeight](f.Step(r)) || f.Kept(relu)) {
			return false
		}
	}
	return len(f.Readers(relu)) <= 2
}

// normed adds a x + b to a graph, with x, a and b in memory.
func (d *Device) normed(g *dnn.Graph, dims dnn.Dims) (sum dnn.Tensor) {
	e, channels := d.elements(), dnn.Channels(dims[1])
	x, a, c := g.Tensor(e, dims), g.Tensor(e, channels), g.Tensor(e, channels)
	scaled, sum := g.Between(dnn.Float32, dims), g.Between(dnn.Float32, dims)
	g.Multiply(x, a, scaled)
	g.Add(scaled, c, sum)
	return sum
}

// storedFactors adds the kernel that computes a and b of a normalisation a x + b in the activations' format, and
// returns their places.
func (b *binding) storedFactors(channels int, stats, scale, bias, to driver.Span, eps float64) (a, c driver.Span) {
	grid, block := each(channels)
	b.launch("fused.cu", "nn_norm_factors_stored", grid, block, stats, scale, bias, to.Written(), channels, eps)
	return halves(to)
}

// normRead is the fusion of a convolution at a step with the normalisation of its input.
func (d *Device) normRead(f *lower.Flow, y read, at int) (x fusion, ok bool) {
	conv, out := step{d, f.Step(at)}, f.Step(y.relu).Out
	o, ok := conv.Op.(op.Conv2D)
	if !ok || len(conv.In) != 2 || conv.In[0] != out || conv.In[1] == out {
		return x, false
	}
	shape := shapeOf(o, conv.InType(0), conv.InType(1))
	stats, update, steps := d.statistics(f, at)
	if stats < 0 || !d.fusable(shape) || y.added >= 0 && !pointwise(shape) {
		return x, false
	}
	narrow, found := form{last: true, narrow: true}, f.Step(stats).Out
	pair := 2 * 2 * int64(shape.C)
	factors := int64(align(int(pair)))
	x = fusion{
		steps: steps, graph: d.normedForward(shape, y.added >= 0, y.norms()),
		scratch: int64(y.norms())*factors + 2*4*int64(shape.O), wide: true,
		wants: []want{y.norm.want(0, narrow), {value: conv.In[1], form: narrow, dnn: true}},
		outs:  []want{{value: conv.Out, form: narrow}, {value: found}},
		bind: func(b *binding, scratch driver.Span, run func(at ...driver.Span)) {
			both := scratch.Span(int64(y.norms())*factors, 2*4*int64(shape.O))
			sums, squares := halves(both)
			var places []driver.Span
			normed := func(i int, n step) {
				a, c := b.storedFactors(shape.C, b.spans[n.In[1]], b.spans[n.In[2]], b.spans[n.In[3]],
					scratch.Span(int64(i)*factors, pair), n.Op.(op.BatchNorm).Eps)
				places = append(places, b.spans[n.In[0]], a, c)
			}
			normed(0, y.norm)
			switch {
			case y.second != nil:
				normed(1, *y.second)
			case y.added >= 0:
				places = append(places, b.spans[y.added])
			}
			if y.added >= 0 {
				places = append(places, b.spans[out])
			}
			run(append(places, b.spans[conv.In[1]], b.spans[conv.Out], sums, squares)...)
			b.statsOf(both, b.spans[found], update, pixelsOf(conv.OutType()), shape.O)
		},
	}
	if y.added >= 0 {
		x.wants, x.outs = append(x.wants, want{value: y.added, form: narrow}),
			append(x.outs, want{value: out, form: narrow})
	} else if f.Kept(y.relu) {
		x.leaves = &out
	}
	return x, true
}

// pointwise reports whether a convolution is 1×1 with stride 1.
func pointwise(s dnn.Shape) bool {
	return s.KH == 1 && s.KW == 1 && s.Stride == [2]int{1, 1} && s.Pad == [2]int{}
}

// normedForward is the graph of one or two normalisations, an optional addition, a ReLU, a convolution and its
// statistics. Its tensors are x, a and b for each normalisation, the added value if there is only one, with an addition
// the stored input of the convolution, then the weights, the result and two sums.
func (d *Device) normedForward(shape dnn.Shape, add bool, norms int) *dnn.Graph {
	g, e := &dnn.Graph{Name: "norm + relu + forward + stats"}, d.elements()
	xd, wd, yd := shape.Dims()
	sum := d.normed(g, xd)
	var read dnn.Tensor
	if add {
		var added dnn.Tensor
		if norms == 2 {
			g.Name, added = "norm + norm + relu + forward + stats", d.normed(g, xd)
		} else {
			g.Name, added = "norm + add + relu + forward + stats", g.Tensor(e, xd)
		}
		both := g.Between(dnn.Float32, xd)
		g.Add(sum, added, both)
		sum, read = both, g.Tensor(e, xd)
	} else {
		read = g.Between(dnn.Float32, xd)
	}
	w, out := g.Tensor(e, wd), g.Tensor(e, yd)
	sums, squares := g.Tensor(dnn.Float32, dnn.Channels(shape.O)), g.Tensor(dnn.Float32, dnn.Channels(shape.O))
	g.ReLU(sum, read)
	g.Convolve(dnn.Forward, shape, read, w, out)
	g.Stats(out, sums, squares)
	return g
}

// normedGradient is the graph of the weights' gradient of such a convolution with one normalisation: from x, a, b and
// dy to dw.
func (d *Device) normedGradient(shape dnn.Shape) *dnn.Graph {
	g, e := &dnn.Graph{Name: "norm + relu + weight gradient"}, d.elements()
	xd, wd, yd := shape.Dims()
	sum, read := d.normed(g, xd), g.Between(dnn.Float32, xd)
	dy, dw := g.Tensor(e, yd), g.Tensor(e, wd)
	g.ReLU(sum, read)
	g.Convolve(dnn.GradWeight, shape, read, dw, dy)
	return g
}

// normedGradWeight is the gradient of the weights of a convolution after a normalisation and a ReLU. Its operands are
// their result, dy, and the normalisation's x, statistics, scale and bias, from which it may recompute their result.
type normedGradWeight struct {
	op.Conv2DGradWeight
	eps float64
}

func (o normedGradWeight) String() string { return "normed " + o.Conv2DGradWeight.String() }

// Infer implements op.Op.
func (o normedGradWeight) Infer(in ...op.Type) (op.Type, error) {
	return o.Conv2DGradWeight.Infer(in[:min(2, len(in))]...)
}

// Run implements op.Op.
func (o normedGradWeight) Run(out op.Tensor, in ...op.Tensor) error {
	return o.Conv2DGradWeight.Run(out, in[:2]...)
}

// normWeights gives gradients of weights the operands for recomputing the normalisation, if cuDNN has graphs for that.
func (d *Device) normWeights(p *device.Program) {
	if d.opts.Precision != number.Float16 {
		return
	}
	f := lower.NewFlow(p)
	for i := range p.Steps {
		s := f.Step(i)
		o, ok := s.Op.(op.Conv2DGradWeight)
		if !ok || len(s.In) != 2 || s.In[0] == s.In[1] {
			continue
		}
		relu := f.Maker(s.In[0])
		if relu < 0 || !lower.Is[op.ReLU](f.Step(relu)) || f.Kept(relu) || len(f.Readers(relu)) != 2 {
			continue
		}
		at := f.Maker(f.Step(relu).In[0])
		shape := shapeOf(o.Conv2D, s.InType(0), s.OutType())
		conv := f.Readers(relu)[0]
		if at < 0 || f.Sole(at) != relu || !d.fusable(shape) || !lower.Is[op.Conv2D](f.Step(conv)) ||
			f.Step(conv).In[0] != s.In[0] {
			continue
		}
		norm, isNorm := f.Step(at).Op.(op.BatchNorm)
		if stats, _, _ := d.statistics(f, conv); !isNorm || stats < 0 ||
			d.plansOf(d.normedForward(shape, false, 1)) == nil || d.plansOf(d.normedGradient(shape)) == nil {
			continue
		}
		p.Steps[i].Op, p.Steps[i].In = normedGradWeight{o, norm.Eps}, append(slices.Clone(s.In), f.Step(at).In...)
	}
}

// plainGradWeight lowers it without the normalisation.
func (s step) plainGradWeight(o normedGradWeight) (*lowering, error) {
	s.In = s.In[:2]
	l, err := s.convGradWeight(o.Conv2DGradWeight)
	if err != nil {
		return nil, err
	}
	bind := l.Kernel.bind
	l.Kernel.bind = func(b *binding) {
		delete(s.d.pairs, b.spans[s.In[0]]) // the operand is read, so its maker must write it
		bind(b)
	}
	return l, nil
}

// normedWeights takes a normedGradWeight whose convolution can normalise.
func (d *Device) normedWeights(f *lower.Flow, first int) []lower.Match[kernel] {
	s := step{d, f.Step(first)}
	o, ok := s.Op.(normedGradWeight)
	if !ok {
		return nil
	}
	shape := shapeOf(o.Conv2D, s.InType(0), s.OutType())
	g := d.normedGradient(shape)
	plain := form{last: true}
	narrow, back := form{last: true, narrow: true}, form{last: true, narrow: true, scaled: s.form(1).scaled}
	factors := int64(align(2 * 2 * shape.C))
	weights := int64(narrow.bytes(s.OutType()))
	return d.match(f, fusion{
		steps: []int{first}, graph: g, scratch: factors + weights, takes: &s.In[0],
		wants: []want{s.want(2, narrow), s.want(1, back)},
		outs:  []want{{value: s.Out, form: plain}},
		bind: func(b *binding, scratch driver.Span, run func(at ...driver.Span)) {
			a, c := b.storedFactors(shape.C, b.spans[s.In[3]], b.spans[s.In[4]], b.spans[s.In[5]],
				scratch.Span(0, 2*2*int64(shape.C)), o.eps)
			made := scratch.Span(factors, weights)
			run(b.spans[s.In[2]], a, c, b.spans[s.In[1]], made)
			b.recast(b.spans[s.Out], plain, made, back)
		},
	})
}
