//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// pass is a pass of norm.cu's kernels over the pixels of channels: a thread has one channel, or several that fit one
// memory access, and blocks share the pixels.
type pass struct {
	grid, block driver.Dim
	packs       bool
}

// normBlocks is the number of blocks of norm.cu that a multiprocessor runs at a time.
const normBlocks = 4

// packed reports whether the activations in these spans can be accessed by 16 bytes, if the channels allow it.
func packed(at ...driver.Span) bool {
	return !slices.ContainsFunc(at, func(s driver.Span) bool { return s.Offset()%16 != 0 })
}

// columns is the pass for activations of a form, with accesses of 16 bytes if packed and the channels allow it.
func (d *Device) columns(pixels, channels int, f form, packed bool) pass {
	pack := 16 / f.bytes(op.T(op.Float32, 1))
	c := pass{block: driver.Dim{X: 32, Y: 8}, packs: packed && channels%pack == 0}
	if c.packs {
		channels /= pack
		// Narrower blocks sum the same pixels with more threads, and the last ones have fewer rows each to add up.
		c.block = driver.Dim{X: 16, Y: 16}
	}
	for c.block.X > 1 && c.block.X/2 >= channels {
		c.block = driver.Dim{X: c.block.X / 2, Y: c.block.Y * 2}
	}
	c.grid = driver.Dim{X: (channels + c.block.X - 1) / c.block.X}
	const least = 16 // pixels per thread, at least
	c.grid.Y = max(1, min((pixels+c.block.Y*least-1)/(c.block.Y*least),
		normBlocks*max(d.info.Multiprocessors, 1)/c.grid.X))
	return c
}

// each is the grid of a kernel of norm.cu with one thread for each channel.
func each(channels int) (grid, block driver.Dim) {
	return driver.Dim{X: (channels + 127) / 128}, driver.Dim{X: 128}
}

// blockGroup is the number of blocks whose sums one block adds up, as in norm.cu.
const blockGroup = 32

// counters count the finished blocks of a pass. A pass resets them to zero, and passes do not overlap.
func (b *binding) counters(p pass) driver.Access {
	groups := (max(p.grid.Y, 1) + blockGroup - 1) / blockGroup
	s, err := b.d.counters(max(p.grid.X, 1) * (groups + 1))
	if err != nil {
		b.fail(err)
	}
	return s.Part(0, 0) // atomic operations stay in the cache
}

// partial is memory in which the blocks of a pass leave two sums for each channel, read by the last blocks. A block
// that is alone, with one channel for each thread, writes and reads its own sums.
func (b *binding) partial(p pass, channels int) driver.Access {
	s := b.work.Span(0, int64(2*8*max(p.grid.Y, 1)*channels))
	if p.grid.Y <= 1 && !p.packs {
		return s.Written()
	}
	return s.Updated()
}

// partial is the size of all blocks' sums in bytes, an upper bound for any alignment of the activations.
func (d *Device) partial(pixels, channels int, f form) int {
	packs, singly := d.columns(pixels, channels, f, true), d.columns(pixels, channels, f, false)
	return 2 * 8 * max(packs.grid.Y, singly.grid.Y) * channels
}

// pixelsOf is the number of values in each channel of an activation.
func pixelsOf(t op.Type) int { return t.Shape[0] * t.Shape[2:].Size() }

func (s step) channelSum(op.ChannelSum) (*lowering, error) {
	_, channels, rest := extents(s.InType(0).Shape)
	pixels := pixelsOf(s.InType(0))
	x := s.form(0)
	if x.last {
		rest = 1
	}
	l := s.result(form{}, s.d.partial(pixels, channels, x), []want{s.want(0, x)},
		func(b *binding, in []driver.Span, out driver.Span) {
			c := s.d.columns(pixels, channels, x, rest == 1 && packed(in[0]))
			b.launch("norm.cu", "nn_channel_sums", c.grid, c.block, in[0], b.partial(c, channels), b.counters(c),
				out.Written(), int64(pixels), channels, int64(rest), s.d.scaleFor(x), c.packs)
		})
	l.Kernel.narrow = x.narrow
	return l, nil
}

func (s step) batchNormStats(op.BatchNormStats) (*lowering, error) {
	return moments{step: s}.lower(), nil
}

// moments computes the statistics of a batch normalisation and, with an update, the next running statistics.
type moments struct {
	step
	update *step
}

func (s moments) lower() *lowering {
	pixels, channels := pixelsOf(s.InType(0)), s.InType(0).Shape[1]
	x := s.like(s.InType(0), 0)
	sums := align(s.d.partial(pixels, channels, x))
	l := s.result(form{}, sums+8*channels, []want{s.want(0, x)}, func(b *binding, in []driver.Span, out driver.Span) {
		c := s.d.columns(pixels, channels, x, packed(in[0]))
		running, momentum, unbiased := b.running(s.update)
		b.launch("norm.cu", "nn_moments", c.grid, c.block, in[0], b.partial(c, channels), b.counters(c),
			b.or(out, sums, 8*channels).Written(),
			running.Updated(), momentum, unbiased, int64(pixels), channels, c.packs)
	})
	l.Kernel.narrow = x.narrow
	if u := s.update; u != nil {
		r := u.output(form{})
		r.Over = []int{u.In[0]}
		l.Results = append(l.Results, r)
		l.Kernel.wants = append(l.Kernel.wants, u.want(0, form{}), u.want(2, form{}))
	}
	return l
}

// or returns s, or this part of the workspace if s is empty because no step outside the group reads the value.
func (b *binding) or(s driver.Span, at, bytes int) driver.Span {
	if s.Bytes() == 0 {
		return b.work.Span(int64(at), int64(bytes))
	}
	return s
}

// running returns the running statistics to update in place, the momentum, and the correction of variances. All are
// zero without an update.
func (b *binding) running(u *step) (at, momentum driver.Span, unbiased float64) {
	if u == nil {
		return at, momentum, 0
	}
	at = b.spans[u.Out]
	if from := b.spans[u.In[0]]; from != at {
		b.copy(at, from)
	}
	return at, b.spans[u.In[2]], correction(u.Op.(op.BatchNormUpdate))
}

// correction is the factor from the biased variance to the sample variance.
func correction(o op.BatchNormUpdate) float64 { return float64(o.Count) / float64(o.Count-1) }

func (s step) batchNorm(o op.BatchNorm) (*lowering, error) {
	return s.normalise(o, -1, false, s.Out), nil
}

// normalise lowers a batch normalisation, followed by the addition of value other, unless that is negative, and by a
// ReLU if relu. The result is value out.
func (s step) normalise(o op.BatchNorm, other int, relu bool, out int) *lowering {
	pixels, channels := pixelsOf(s.InType(0)), s.InType(0).Shape[1]
	x := s.like(s.InType(0), 0)
	wants := []want{s.want(0, x)}
	if other >= 0 {
		wants = append(wants, want{value: other, form: x})
	}
	l := s.result(x, 0, wants, func(b *binding, in []driver.Span, _ driver.Span) {
		added, to := driver.Span{}, b.spans[out]
		if other >= 0 {
			added = b.spans[other]
		}
		c := s.d.columns(pixels, channels, x, packed(in[0], added, to))
		b.launch("norm.cu", "nn_batch_norm", c.grid, c.block, in[0], in[1], in[2], in[3], added, to.Written(),
			int64(pixels), channels, o.Eps, relu, c.packs)
	})
	l.Results[0].Value, l.Results[0].Over = out, []int{s.In[0], other}
	return l
}

// normaliseWith lowers the sum of two batch normalisations, followed by a ReLU if relu. The result is value out.
func (s step) normaliseWith(two step, relu bool, out int) *lowering {
	pixels, channels := pixelsOf(s.InType(0)), s.InType(0).Shape[1]
	x := s.like(s.InType(0), 0)
	x.narrow = x.narrow || two.form(0).narrow
	l := s.result(x, 0, []want{s.want(0, x), two.want(0, x)}, func(b *binding, in []driver.Span, _ driver.Span) {
		other, to := b.spans[two.In[0]], b.spans[out]
		c := s.d.columns(pixels, channels, x, packed(in[0], other, to))
		b.launch("norm.cu", "nn_batch_norm_two", c.grid, c.block, in[0], in[1], in[2], in[3], other, b.spans[two.In[1]],
			b.spans[two.In[2]], b.spans[two.In[3]],
			to.Written(), int64(pixels), channels, s.Op.(op.BatchNorm).Eps, two.Op.(op.BatchNorm).Eps, relu, c.packs)
	})
	l.Results[0].Value, l.Results[0].Over = out, []int{s.In[0], two.In[0]}
	for i := 1; i < len(two.In); i++ {
		l.Kernel.wants = append(l.Kernel.wants, two.want(i, form{}))
	}
	return l
}

func (s step) batchNormUpdate(o op.BatchNormUpdate) (*lowering, error) {
	channels := s.InType(0).Shape[1]
	l := s.result(form{}, 0, nil, func(b *binding, in []driver.Span, out driver.Span) {
		if in[0] != out {
			b.copy(out, in[0])
		}
		grid, block := each(2 * channels)
		b.launch("norm.cu", "nn_batch_norm_update", grid, block, out.Updated(), in[1], in[2], channels, correction(o))
	})
	l.Kernel.narrow = s.d.narrow() // shares the other kernels' module
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}

// gradSums are the sums for the gradient of a batch normalisation. The incoming gradient is value dy, plus value more
// unless negative. With y ≥ 0 it is masked by the ReLU with result y and written to value grad.
type gradSums struct {
	step
	o                 op.BatchNormGradSums
	dy, more, y, grad int
}

func (s step) batchNormGradSums(o op.BatchNormGradSums) (*lowering, error) {
	l, _ := gradSums{s, o, s.In[2], -1, -1, -1}.lower()
	return l, nil
}

// lower returns the lowering and the gradient's form.
func (s gradSums) lower() (*lowering, form) {
	pixels, channels := pixelsOf(s.InType(0)), s.InType(0).Shape[1]
	x := s.like(s.InType(0), 0)
	g := x
	l := &lowering{Results: []lower.Result{s.output(form{})}}
	for _, v := range []int{s.dy, s.more, s.y, s.In[0]} {
		if v >= 0 {
			f := s.formOf(v)
			x.narrow, g.scaled = x.narrow || f.narrow, g.scaled || f.scaled
		}
	}
	g.narrow = x.narrow
	l.Kernel.narrow, l.Workspace = x.narrow, s.d.partial(pixels, channels, x)
	for _, w := range []want{{value: s.dy, form: g}, {value: s.more, form: g}, {value: s.y, form: x},
		{value: s.In[0], form: x}, {value: s.In[1]}} {
		if w.value >= 0 {
			l.Kernel.wants = append(l.Kernel.wants, w)
		}
	}
	l.Kernel.bind = func(b *binding) {
		value := func(v int) driver.Span {
			if v < 0 {
				return driver.Span{}
			}
			return b.spans[v]
		}
		in, dy, more, y, grad := b.spans[s.In[0]], value(s.dy), value(s.more), value(s.y), value(s.grad)
		c := s.d.columns(pixels, channels, x, packed(in, dy, more, y, grad))
		b.launch("norm.cu", "nn_grad_sums", c.grid, c.block, in, b.spans[s.In[1]], dy, more, y, grad.Written(),
			b.partial(c, channels), b.counters(c),
			b.spans[s.Out].Written(), int64(pixels), channels, s.o.Eps, s.d.scaleFor(g), c.packs)
	}
	return l, g
}

// normGrad adds the gradient of a batch normalisation of activations of type t; g is the form of dy and dx. A bias that
// is not empty selects the variant followed by a ReLU.
func (b *binding) normGrad(o op.BatchNormGradInput, t op.Type, g form, x, stats, scale, bias, sums, dy,
	dx driver.Span) {
	pixels, channels := pixelsOf(t), t.Shape[1]
	c := b.d.columns(pixels, channels, g, packed(x, dy, dx))
	b.launch("norm.cu", "nn_batch_norm_grad", c.grid, c.block, x, stats, scale, bias, sums, dy, dx.Written(),
		int64(pixels), channels,
		o.Eps, b.d.scaleFor(g), c.packs)
}

func (s step) batchNormGradInput(o op.BatchNormGradInput) (*lowering, error) {
	g := s.like(s.InType(0), 0, 4)
	x := form{last: g.last, narrow: g.narrow}
	l := s.result(g, 0, []want{s.want(0, x), s.want(4, g)}, func(b *binding, in []driver.Span, out driver.Span) {
		b.normGrad(o, s.InType(0), g, in[0], in[1], in[2], driver.Span{}, in[3], in[4], out)
	})
	l.Results[0].Over = []int{s.In[0], s.In[4]}
	return l, nil
}

// maskedGradient lowers the gradient, sums and dx, of a batch normalisation s followed by a ReLU, whose result has the
// gradient dy.
func (s step) maskedGradient(dy int, sums, dx lower.Step) *lowering {
	pixels, channels := pixelsOf(s.InType(0)), s.InType(0).Shape[1]
	o := dx.Op.(op.BatchNormGradInput)
	have := s.formOf(dy)
	x := s.like(s.InType(0), 0)
	x.narrow = x.narrow || have.narrow
	g := x
	g.scaled = have.scaled
	to := step{s.d, dx}.output(g)
	to.Over = []int{s.In[0], dy}
	partial := align(s.d.partial(pixels, channels, x))
	l := &lowering{Results: []lower.Result{step{s.d, sums}.output(form{}), to}, Workspace: partial + 8*channels}
	l.Kernel.narrow = x.narrow
	l.Kernel.wants = []want{s.want(0, x), {value: dy, form: g}, s.want(1, form{}), s.want(2, form{}), s.want(3, form{})}
	l.Kernel.bind = func(b *binding) {
		in, stats, scale, bias, d := b.spans[s.In[0]], b.spans[s.In[1]], b.spans[s.In[2]], b.spans[s.In[3]], b.spans[dy]
		found := b.or(b.spans[sums.Out], partial, 8*channels)
		c := s.d.columns(pixels, channels, x, packed(in, d, b.spans[dx.Out]))
		b.launch("norm.cu", "nn_grad_sums_relu", c.grid, c.block, in, stats, scale, bias, d, b.partial(c, channels),
			b.counters(c), found.Written(),
			int64(pixels), channels, o.Eps, s.d.scaleFor(g), c.packs)
		b.normGrad(o, s.InType(0), g, in, stats, scale, bias, found, d, b.spans[dx.Out])
	}
	return l
}
