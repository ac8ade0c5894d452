package cpu

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// forward is a convolution or a linear layer.
func (s step) forward() productStep {
	if o, ok := s.Op.(op.Conv2D); ok {
		return s.conv(o)
	}
	return s.linear()
}

// fuseForward lowers a convolution or a linear layer with what follows it.
func (d *Device) fuseForward(steps []step) (*lowering, string) {
	first := steps[0]
	if reason := first.expect(device.Data, device.Weight); reason != "" {
		return nil, reason
	}
	p := first.forward()
	set := p.kernels()
	if set == nil {
		return nil, "the product runs in plain Go"
	}
	if _, ok := steps[1].Op.(op.BatchNormStats); ok {
		if len(steps) != 2 || steps[1].In[0] != first.Out || !p.summable() || !slices.Contains(first.group.Outputs, first.Out) {
			return nil, "these ops are not run as a group"
		}
		return d.fuseStatistics(first, steps[1], d.vector(p.product, set), p), ""
	}

	t := d.vector(p.product, set)
	at := 1
	if o, ok := steps[at].Op.(op.BatchNorm); ok {
		bn := steps[at]
		if !o.Fixed || bn.In[0] != first.Out || slices.Contains(bn.In[1:], first.Out) {
			return nil, "the batch normalisation is not by constants"
		}
		t.end().norm = &foldedNorm{eps: o.Eps, stats: bn.In[1], scale: bn.In[2], bias: bn.In[3]}
		at++
	}
	var over []int
	if t.end().norm != nil && at < len(steps) {
		if _, ok := steps[at].Op.(op.Add); ok {
			in := steps[at].In
			operand := 1 - slices.Index(in, steps[at-1].Out)
			if in[0] == in[1] || operand > 1 {
				return nil, "the sum is not of the result and something else"
			}
			t.end().other = in[operand]
			if !d.isData(first.group.Values[t.end().other]) {
				return nil, "operands have different layouts"
			}
			over = steps[at].over(operand)
			at++
		}
	}
	if at < len(steps) {
		if _, ok := steps[at].Op.(op.ReLU); ok && steps[at].In[0] == steps[at-1].Out {
			t.end().relu = true
			at++
		}
	}
	if at < len(steps) {
		return nil, "these ops are not run as a group"
	}
	if slices.Contains(over, slices.Index(first.group.Inputs, p.src)) {
		over = nil // the source is read again after a part of the result is written
	}

	last := steps[len(steps)-1]
	var r room
	bind := t.lower(d, &r, p.src, p.weights, p.bias, last.Out)
	l := last.data(bind)
	l.workspace = r.bytes
	l.outputs[0].Over = over
	return l, ""
}

// fuseStatistics lowers a convolution that takes the statistics of what it makes.
func (d *Device) fuseStatistics(conv, stats step, t vectorProduct, p productStep) *lowering {
	pixels, channels := pixelsOf(conv.out().Shape)
	t.end().sums = &blockSums{bind: func(st *storage) (func([]float32, rows), func(summed), func(int, float64, float64)) {
		k := kernels()
		x, dst := st.floats(conv.Out), st.floats(stats.Out)
		return nil,
			func(m summed) { k.Moments(m.first, m.second, x[m.from:], m.width, m.stride, m.rows) },
			func(c int, sum, squares float64) { moments(dst, c, channels, pixels, sum, squares) }
	}}
	return d.summed(conv.Out, stats.Out, conv, stats, t, p)
}

// summed is the lowering of a product into value dst with sums of it, of the types of two steps.
func (d *Device) summed(dst, sums int, of, by step, t vectorProduct, p productStep) *lowering {
	var r room
	bind := t.lower(d, &r, p.src, p.weights, p.bias, dst)
	return &lowering{
		results: []int{dst, sums},
		outputs: []device.Output{
			{Layout: d.Layout(of.out(), device.Data), Bytes: of.out().Bytes()},
			{Layout: d.Layout(by.out(), device.Data), Bytes: by.out().Bytes()},
		},
		workspace: r.bytes,
		bind:      bind,
	}
}

// fuseGradInput lowers the gradient of a convolution with respect to its input where that is a ReLU's result, with the
// sums that the batch normalisation before the ReLU needs.
func (d *Device) fuseGradInput(o op.Conv2DGradInput, steps []step) (*lowering, string) {
	const other = "these ops are not run as a group"
	first := steps[0]
	if reason := first.expect(device.Weight, device.Data); reason != "" {
		return nil, reason
	}
	p := first.convGradInput(o)
	set := p.kernels()
	if set == nil || !p.summable() {
		return nil, other
	}
	t := d.vector(p.product, set)
	at, more := 1, -1
	if _, ok := steps[at].Op.(op.Add); ok {
		in := steps[at].In
		operand := 1 - slices.Index(in, first.Out)
		if in[0] == in[1] || operand > 1 {
			return nil, other
		}
		more = in[operand]
		at++
	}
	if at+2 != len(steps) {
		return nil, other
	}
	grad, sums := steps[at], steps[at+1]
	norm, ok := sums.Op.(op.BatchNormGradSums)
	if !ok || !isReLUGrad(grad.Op) || sums.In[2] != grad.Out || sums.In[0] == grad.Out ||
		grad.In[1] != steps[at-1].Out || grad.In[0] == steps[at-1].Out || grad.In[0] == first.Out {
		return nil, other
	}
	g := first.group
	if !slices.Contains(g.Outputs, grad.Out) || slices.Contains(g.Outputs, first.Out) {
		return nil, other
	}
	b := sums.gradSums(norm)
	y := grad.In[0]
	for _, v := range []int{b.x, y, more} {
		if v >= 0 && !d.isData(g.Values[v]) {
			return nil, "operands have different layouts"
		}
	}
	t.end().sums = &blockSums{bind: func(st *storage) (func([]float32, rows), func(summed), func(int, float64, float64)) {
		k := kernels()
		x, stats, y, dy, dst := st.floats(b.x), st.floats(b.stats), st.floats(y), st.floats(grad.Out), st.floats(sums.Out)
		var added []float32
		if more >= 0 {
			added = st.floats(more)
		}
		return func(row []float32, r rows) { r.spread(row, stats) },
			func(m summed) {
				at := m.from
				if added != nil {
					k.AddReLUGradSums(m.first, m.second, x[at:], dy[at:], y[at:], dy[at:], added[at:], m.parameters, m.width, m.stride, m.rows)
					return
				}
				k.ReLUGradSums(m.first, m.second, x[at:], dy[at:], y[at:], dy[at:], m.parameters, m.width, m.stride, m.rows)
			},
			b.finish(dst, stats)
	}}
	return d.summed(grad.Out, sums.Out, grad, sums, t, p), ""
}
