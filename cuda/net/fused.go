//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// fusable reports whether cuDNN for Hopper can fuse a convolution with other operations.
func (d *Device) fusable(s dnn.Shape) bool {
	return d.narrow() && d.opts.Fuse.convolutions() && !d.opts.Deterministic && s.C%8 == 0 && s.O%8 == 0 &&
		s.Groups == 1 && s.Dilation == [2]int{1, 1}
}

// elements is the element type of the graphs' tensors.
func (d *Device) elements() dnn.Element { return dnn.ElementOf(d.opts.Precision) }

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

// convolvedStats takes Conv2D + BatchNormStats [+ BatchNormUpdate]: the convolution sums its result as it stores it.
func (d *Device) convolvedStats(f *lower.Flow, first int) []lower.Match[kernel] {
	conv := step{d, f.Step(first)}
	o, ok := conv.Op.(op.Conv2D)
	if !ok || len(conv.In) != 2 {
		return nil
	}
	shape := shapeOf(o, conv.InType(0), conv.InType(1))
	stats, update, steps := d.statistics(f, first)
	if stats < 0 || !d.fusable(shape) {
		return nil
	}
	x := fusion{steps: steps, graph: &dnn.Graph{Name: "forward + sums"}}
	g, e := x.graph, d.elements()
	xd, wd, yd := shape.Dims()
	in, w, y := g.Tensor(e, xd), g.Tensor(e, wd), g.Tensor(e, yd)
	sums, squares, product := g.Tensor(dnn.Float32, dnn.Channels(shape.O)),
		g.Tensor(dnn.Float32, dnn.Channels(shape.O)), g.Between(dnn.Float32, yd)
	g.Convolve(dnn.Forward, shape, in, w, y)
	g.Sum(y, sums)
	g.Multiply(y, y, product)
	g.Sum(product, squares)
	narrow, out := form{last: true, narrow: true}, f.Step(stats).Out
	x.wants = []want{conv.want(0, narrow), {value: conv.In[1], form: narrow, dnn: true}}
	x.outs = []want{{value: conv.Out, form: narrow}, {value: out}}
	pixels := pixelsOf(conv.OutType())
	x.bind = func(b *binding, _ driver.Span, run func(at ...driver.Span)) {
		both := b.zeros(2 * shape.O)
		sums, squares := halves(both)
		run(b.spans[conv.In[0]], b.spans[conv.In[1]], b.spans[conv.Out], sums, squares)
		b.statsOf(both, b.spans[out], update, pixels, shape.O)
	}
	return d.match(f, x)
}

// match returns the fusion's match if cuDNN has plans for it.
func (d *Device) match(f *lower.Flow, x fusion) []lower.Match[kernel] {
	if d.plansOf(x.graph) == nil {
		return nil
	}
	slices.Sort(x.steps)
	return []lower.Match[kernel]{{Steps: x.steps, Lower: func() (*lowering, error) { return d.either(f, x) }}}
}

// convolvedNorm takes Conv2D + BatchNorm [+ Add] [+ ReLU] with given statistics: the convolution applies a scale and a
// bias as it stores its result.
func (d *Device) convolvedNorm(f *lower.Flow, first int) []lower.Match[kernel] {
	conv := step{d, f.Step(first)}
	o, ok := conv.Op.(op.Conv2D)
	if !ok || len(conv.In) != 2 {
		return nil
	}
	shape := shapeOf(o, conv.InType(0), conv.InType(1))
	next, ok := lower.Next[op.BatchNorm](f, first)
	if !ok || f.Step(next).In[0] != conv.Out || !d.fusable(shape) {
		return nil
	}
	norm := step{d, f.Step(next)}
	var all []lower.Match[kernel]
	for _, m := range d.normalised(f, next) {
		x := fusion{steps: append([]int{first}, m.Steps...), scratch: 2 * 4 * int64(shape.O)}
		other, relu := -1, false
		for _, i := range m.Steps[1:] {
			s := f.Step(i)
			if lower.Is[op.Add](s) {
				other, _ = s.Other(norm.Out)
			}
			relu = relu || lower.Is[op.ReLU](s)
		}
		if other == conv.Out {
			continue
		}
		out := f.Step(m.Steps[len(m.Steps)-1]).Out
		g, e := &dnn.Graph{Name: "forward + scale + bias"}, d.elements()
		x.graph = g
		xd, wd, yd := shape.Dims()
		in, w := g.Tensor(e, xd), g.Tensor(e, wd)
		a, c := g.Tensor(dnn.Float32, dnn.Channels(shape.O)), g.Tensor(dnn.Float32, dnn.Channels(shape.O))
		narrow := form{last: true, narrow: true}
		x.wants = []want{conv.want(0, narrow), {value: conv.In[1], form: narrow, dnn: true}}
		last := func(is bool) dnn.Tensor {
			if is {
				return g.Tensor(e, yd)
			}
			return g.Between(dnn.Float32, yd)
		}
		var added dnn.Tensor
		if other >= 0 {
			g.Name += " + add"
			added = g.Tensor(e, yd)
			x.wants = append(x.wants, want{value: other, form: narrow})
		}
		if relu {
			g.Name += " + relu"
		}
		product, result := g.Between(dnn.Float32, yd), g.Between(dnn.Float32, yd)
		g.Convolve(dnn.Forward, shape, in, w, product)
		g.Multiply(product, a, result)
		sum := last(other < 0 && !relu)
		g.Add(result, c, sum)
		if other >= 0 {
			with := last(!relu)
			g.Add(sum, added, with)
			sum = with
		}
		if relu {
			g.ReLU(sum, last(true))
		}
		x.outs = []want{{value: out, form: narrow}}
		x.bind = func(b *binding, scratch driver.Span, run func(at ...driver.Span)) {
			a, c := halves(scratch)
			b.factors(norm, scratch)
			at := []driver.Span{b.spans[conv.In[0]], b.spans[conv.In[1]], a, c}
			if other >= 0 {
				at = append(at, b.spans[other])
			}
			run(append(at, b.spans[out])...)
		}
		all = append(all, d.match(f, x)...)
	}
	return all
}

// convolvedGradient takes Conv2DGradInput + Add + ReLUGrad + BatchNormGradSums, the backward pass over the end of a
// residual block: the convolution stores the gradient before the ReLU and takes the sums.
func (d *Device) convolvedGradient(f *lower.Flow, first int) []lower.Match[kernel] {
	conv := step{d, f.Step(first)}
	o, ok := conv.Op.(op.Conv2DGradInput)
	if !ok {
		return nil
	}
	shape := shapeOf(o.Conv2D, conv.OutType(), conv.InType(0))
	next, ok := lower.Next[op.Add](f, first)
	if !ok || shape.Stride != [2]int{1, 1} || !d.fusable(shape) {
		return nil
	}
	add := f.Step(next)
	more, ok := add.Other(conv.Out)
	if !ok {
		return nil
	}
	var all []lower.Match[kernel]
	for _, m := range d.summedGradient(f, next) {
		if len(m.Steps) != 3 {
			continue
		}
		mask, sums := f.Step(m.Steps[1]), f.Step(m.Steps[2])
		y, grad, in := mask.In[0], mask.Out, sums.In[0]
		x := fusion{steps: append([]int{first}, m.Steps...),
			graph: &dnn.Graph{Name: "input gradient + add + relu' + sums"}}
		g, e := x.graph, d.elements()
		xd, wd, yd := shape.Dims()
		w, dy, other, result, before := g.Tensor(e, wd), g.Tensor(e, yd), g.Tensor(e, xd), g.Tensor(e, xd),
			g.Tensor(e, xd)
		dx, both := g.Between(dnn.Float32, xd), g.Between(dnn.Float32, xd)
		g.Convolve(dnn.GradInput, shape, dx, w, dy)
		g.Add(dx, other, both)
		d.maskedSums(g, xd, result, both, before)
		narrow := form{last: true, narrow: true}
		scaled := form{last: true, narrow: true, scaled: d.scaling()}
		x.wants = []want{{value: conv.In[0], form: narrow, dnn: true}, conv.want(1, scaled),
			{value: more, form: scaled}, {value: y, form: narrow}, {value: in, form: narrow}}
		x.outs = []want{{value: grad, form: scaled}, {value: sums.Out}}
		x.bind = func(b *binding, _ driver.Span, run func(at ...driver.Span)) {
			both := b.zeros(2 * shape.C)
			total, products := halves(both)
			run(b.spans[conv.In[0]], b.spans[conv.In[1]], b.spans[more], b.spans[y], b.spans[in], b.spans[grad], total,
				products)
			b.gradSumsOf(both, sums, shape.C, scaled)
		}
		all = append(all, d.match(f, x)...)
	}
	return all
}

// maskedConvolution takes Conv2DGradInput + BatchNorm + ReLU + ReLUGrad + BatchNormGradSums + BatchNormGradInput, the
// backward pass over a normalisation and a ReLU that only one convolution reads: the convolution recomputes the mask,
// stores the gradient before the ReLU and takes the sums. One more pass completes the normalisation's gradient.
func (d *Device) maskedConvolution(f *lower.Flow, first int) []lower.Match[kernel] {
	conv := step{d, f.Step(first)}
	o, ok := conv.Op.(op.Conv2DGradInput)
	if !ok {
		return nil
	}
	shape := shapeOf(o.Conv2D, conv.OutType(), conv.InType(0))
	mask, ok := lower.Next[op.ReLUGrad](f, first)
	if !ok || f.Step(mask).In[1] != conv.Out || shape.Stride != [2]int{1, 1} || !d.fusable(shape) {
		return nil
	}
	relu := f.Maker(f.Step(mask).In[0])
	if relu < 0 {
		return nil
	}
	at := f.Maker(f.Step(relu).In[0])
	if at < first { // a group must begin with its first step
		return nil
	}
	var all []lower.Match[kernel]
	for _, m := range d.maskedGradient(f, at) {
		norm, sums, dx := step{d, f.Step(at)}, f.Step(m.Steps[3]), f.Step(m.Steps[4])
		x := fusion{steps: append([]int{first}, m.Steps...),
			graph: &dnn.Graph{Name: "input gradient + norm's relu' + sums"}, scratch: 2 * 4 * int64(shape.C)}
		g, e := x.graph, d.elements()
		xd, wd, yd := shape.Dims()
		w, dy, before := g.Tensor(e, wd), g.Tensor(e, yd), g.Tensor(e, xd)
		scale, bias := g.Tensor(dnn.Float32, dnn.Channels(shape.C)), g.Tensor(dnn.Float32, dnn.Channels(shape.C))
		result, scaled, normed := g.Between(dnn.Float32, xd), g.Between(dnn.Float32, xd), g.Between(dnn.Float32, xd)
		g.Convolve(dnn.GradInput, shape, result, w, dy)
		g.Multiply(before, scale, scaled)
		g.Add(scaled, bias, normed)
		d.maskedSums(g, xd, normed, result, before)
		narrow := form{last: true, narrow: true}
		back := form{last: true, narrow: true, scaled: d.scaling()}
		x.wants = []want{{value: conv.In[0], form: narrow, dnn: true}, conv.want(1, back), norm.want(0, narrow)}
		x.outs = []want{{value: sums.Out}, {value: dx.Out, form: back}}
		x.bind = func(b *binding, scratch driver.Span, run func(at ...driver.Span)) {
			found := b.zeros(2 * shape.C)
			a, c := halves(scratch)
			total, products := halves(found)
			in, stats, to := b.spans[norm.In[0]], b.spans[norm.In[1]], b.spans[dx.Out]
			b.factors(norm, scratch)
			run(b.spans[conv.In[0]], b.spans[conv.In[1]], in, a, c, to, total, products)
			b.gradSumsOf(found, sums, shape.C, back)
			b.normGrad(dx.Op.(op.BatchNormGradInput), norm.InType(0), back, in, stats, b.spans[norm.In[2]],
				driver.Span{}, b.spans[sums.Out], to, to)
		}
		all = append(all, d.match(f, x)...)
	}
	return all
}

// maskedSums adds to a graph: the part of dy that a ReLU with result or operand y passes, stored in memory; its sums by
// channel; and the sums of its products with x.
func (d *Device) maskedSums(g *dnn.Graph, dims dnn.Dims, y, dy, x dnn.Tensor) {
	channels := dnn.Channels(dims[1])
	dr, sums, products := g.Tensor(d.elements(), dims), g.Tensor(dnn.Float32, channels), g.Tensor(dnn.Float32, channels)
	product := g.Between(dnn.Float32, dims)
	g.ReLUGrad(y, dy, dr)
	g.Sum(dr, sums)
	g.Multiply(dr, x, product)
	g.Sum(product, products)
}

// gradSumsOf adds the kernel that turns such sums into BatchNormGradSums; of is the gradient's form.
func (b *binding) gradSumsOf(found driver.Span, sums lower.Step, channels int, of form) {
	grid, block := each(channels)
	b.launch("fused.cu", "nn_grad_sums_of_sums", grid, block, found.Updated(), b.spans[sums.In[1]], b.spans[sums.Out].Written(),
		channels,
		sums.Op.(op.BatchNormGradSums).Eps, b.d.scaleFor(of))
}

// factors adds the kernel that computes a and b of a batch normalisation a x + b.
func (b *binding) factors(norm step, to driver.Span) {
	channels := norm.InType(0).Shape[1]
	grid, block := each(channels)
	b.launch("fused.cu", "nn_norm_factors", grid, block, b.spans[norm.In[1]], b.spans[norm.In[2]], b.spans[norm.In[3]],
		to.Written(), channels,
		norm.Op.(op.BatchNorm).Eps)
}

// halves splits a span in two.
func halves(s driver.Span) (first, second driver.Span) {
	half := s.Bytes() / 2
	return s.Span(0, half), s.Span(half, half)
}

// zeros are n zeros to which a graph adds sums. The kernel that reads the sums makes them zeros again.
func (b *binding) zeros(n int) driver.Span {
	s, err := b.d.counters(n)
	if err != nil {
		b.fail(err)
	}
	return s
}
