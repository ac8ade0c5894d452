//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// statistics are the steps with which a convolution's sums are taken where it stores its result: BatchNormStats [+ BatchNormUpdate].
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

// statsOf adds the statistics that sums of shape.O channels make.
func (b *binding) statsOf(sums, out driver.Span, update *step, pixels, channels int) {
	running, momentum, unbiased := b.running(update)
	grid, block := each(channels)
	b.launch("fused.cu", "nn_stats_of_sums", grid, block, sums, out.Written(), running.Updated(), momentum, int64(pixels), channels, unbiased)
}

// normedConvolution takes BatchNorm + Add + ReLU + Conv2D + BatchNormStats [+ BatchNormUpdate], a residual block's end and the 1×1 convolution
// that the next one begins with: cuDNN has kernels for float16 that normalise what they read, and store that, too.
func (d *Device) normedConvolution(f *lower.Flow, first int) []lower.Match[kernel] {
	norm := step{d, f.Step(first)}
	if d.opts.Precision != number.Float16 || !lower.Is[op.BatchNorm](norm.Step) {
		return nil
	}
	for _, m := range d.normalised(f, first) {
		if len(m.Steps) != 3 { // with the addition and the ReLU
			continue
		}
		other, _ := f.Step(m.Steps[1]).Other(norm.Out)
		for _, r := range f.Readers(m.Steps[2]) {
			if x, ok := d.normRead(f, norm, other, m.Steps[2], r); ok {
				x.steps = append(x.steps, m.Steps...)
				return d.match(f, x)
			}
		}
	}
	return nil
}

// normRead is the fusion of a normalisation to which value other is added, of the ReLU behind it, and of the convolution at a step.
func (d *Device) normRead(f *lower.Flow, norm step, other, relu, at int) (x fusion, ok bool) {
	conv := step{d, f.Step(at)}
	y := f.Step(relu).Out
	o, ok := conv.Op.(op.Conv2D)
	if !ok || len(conv.In) != 2 || conv.In[0] != y || conv.In[1] == y {
		return x, false
	}
	shape := shapeOf(o, conv.InType(0), conv.InType(1))
	stats, update, steps := d.statistics(f, at)
	if stats < 0 || !d.fusable(shape) || shape.KH != 1 || shape.KW != 1 || shape.Stride != [2]int{1, 1} || shape.Pad != [2]int{} {
		return x, false
	}
	g, e := &dnn.Graph{Name: "norm + add + relu + forward + stats"}, d.elements()
	xd, wd, yd := shape.Dims()
	in, a, c, added, sum := g.Tensor(e, xd), g.Tensor(e, dnn.Channels(shape.C)), g.Tensor(e, dnn.Channels(shape.C)), g.Tensor(e, xd), g.Tensor(e, xd)
	w, out := g.Tensor(e, wd), g.Tensor(e, yd)
	sums, squares := g.Tensor(dnn.Float32, dnn.Channels(shape.O)), g.Tensor(dnn.Float32, dnn.Channels(shape.O))
	scaled, normed, before := g.Between(dnn.Float32, xd), g.Between(dnn.Float32, xd), g.Between(dnn.Float32, xd)
	g.Multiply(in, a, scaled)
	g.Add(scaled, c, normed)
	g.Add(normed, added, before)
	g.ReLU(before, sum)
	g.Convolve(dnn.Forward, shape, sum, w, out)
	g.Stats(out, sums, squares)
	narrow, found := form{last: true, narrow: true}, f.Step(stats).Out
	factors := int64(align(2 * 2 * shape.C))
	return fusion{
		steps: steps, graph: g, scratch: factors + 2*4*int64(shape.O), wide: true,
		wants: []want{norm.want(0, narrow), {value: other, form: narrow}, {value: conv.In[1], form: narrow, dnn: true}},
		outs:  []want{{value: y, form: narrow}, {value: conv.Out, form: narrow}, {value: found}},
		bind: func(b *binding, scratch driver.Span, run func(at ...driver.Span)) {
			half, part := 2*int64(shape.C), 4*int64(shape.O)
			both := scratch.Span(factors, 2*part)
			grid, block := each(shape.C)
			b.launch("fused.cu", "nn_norm_factors_stored", grid, block, b.spans[norm.In[1]], b.spans[norm.In[2]], b.spans[norm.In[3]],
				scratch.Span(0, 2*half).Written(), shape.C, norm.Op.(op.BatchNorm).Eps)
			run(b.spans[norm.In[0]], scratch.Span(0, half), scratch.Span(half, half), b.spans[other], b.spans[y], b.spans[conv.In[1]], b.spans[conv.Out],
				both.Span(0, part), both.Span(part, part))
			b.statsOf(both, b.spans[found], update, pixelsOf(conv.OutType()), shape.O)
		},
	}, true
}
