//go:build gpu && cgo

package cuda

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// columns is the grid of the kernels of norm.cu over pixels of channels: a thread a channel, and blocks that share the pixels.
func (d *Net) columns(pixels, channels int) (grid, block Dim) {
	block = Dim{X: 32, Y: 8}
	for block.X > 1 && block.X/2 >= channels {
		block = Dim{X: block.X / 2, Y: block.Y * 2}
	}
	grid = Dim{X: (channels + block.X - 1) / block.X}
	const least = 16 // pixels for a thread
	grid.Y = max(1, min((pixels+block.Y*least-1)/(block.Y*least), d.blocks()/grid.X))
	return grid, block
}

// each is the grid of a kernel of norm.cu with a thread a channel.
func each(channels int) (grid, block Dim) {
	return Dim{X: (channels + 127) / 128}, Dim{X: 128}
}

// partial is the bytes of the sums of all blocks.
func partial(grid Dim, channels int) int { return 2 * 8 * grid.Y * channels }

// pixelsOf is how many values each channel of an activation has.
func pixelsOf(t op.Type) int { return t.Shape[0] * t.Shape[2:].Size() }

func (s netStep) channelSum() (*lowering, string) {
	_, channels, rest := extents(s.in(0).Shape)
	pixels := pixelsOf(s.in(0))
	if s.group.Values[s.In[0]].Layout == channelsLast {
		rest = 1
	}
	grid, block := s.d.columns(pixels, channels)
	return s.result(partial(grid, channels), func(b *binding, in []Span, out Span) {
		b.launch("norm.cu", "nn_channel_sums", grid, block, in[0], b.work, int64(pixels), channels, int64(rest))
		ends, threads := each(channels)
		b.launch("norm.cu", "nn_channel_sums_end", ends, threads, b.work, grid.Y, out, channels)
	})
}

func (s netStep) batchNormStats() (*lowering, string) {
	pixels, channels := pixelsOf(s.in(0)), s.in(0).Shape[1]
	grid, block := s.d.columns(pixels, channels)
	return s.result(partial(grid, channels), func(b *binding, in []Span, out Span) {
		b.launch("norm.cu", "nn_moments", grid, block, in[0], b.work, int64(pixels), channels)
		ends, threads := each(channels)
		b.launch("norm.cu", "nn_stats", ends, threads, b.work, grid.Y, out, int64(pixels), channels)
	})
}

func (s netStep) batchNorm(o op.BatchNorm) (*lowering, string) {
	return s.normalise(o, -1, false, s.Out)
}

// normalise lowers a batch normalisation with an addition of value other, unless that is negative, and a ReLU behind it. The
// result is value out.
func (s netStep) normalise(o op.BatchNorm, other int, relu bool, out int) (*lowering, string) {
	pixels, channels := pixelsOf(s.in(0)), s.in(0).Shape[1]
	grid, block := s.d.columns(pixels, channels)
	l, reason := s.result(0, func(b *binding, in []Span, _ Span) {
		added, last := Span{}, 0
		if other >= 0 {
			added = b.spans[other]
		}
		if relu {
			last = 1
		}
		b.launch("norm.cu", "nn_batch_norm", grid, block, in[0], in[1], in[2], in[3], added, b.spans[out], int64(pixels), channels, o.Eps, last)
	})
	l.results[0] = out
	l.outputs[0].Over = s.over(0)
	if at := slices.Index(s.group.Inputs, other); at >= 0 && !slices.Contains(l.outputs[0].Over, at) {
		l.outputs[0].Over = append(l.outputs[0].Over, at)
	}
	return l, reason
}

func (s netStep) batchNormUpdate(o op.BatchNormUpdate) (*lowering, string) {
	channels := s.in(0).Shape[1]
	l, reason := s.result(0, func(b *binding, in []Span, out Span) {
		if in[0] != out {
			b.copy(out, in[0])
		}
		grid, block := each(2 * channels)
		b.launch("norm.cu", "nn_batch_norm_update", grid, block, out, in[1], in[2], channels, float64(o.Count)/float64(o.Count-1))
	})
	l.outputs[0].Over = s.over(0)
	return l, reason
}

// gradSums are the sums of the gradient of a batch normalisation. The gradient is that of value dy, plus that of more unless that
// is negative, behind the ReLU with result y and written to grad, unless they are negative.
type gradSums struct {
	netStep
	o                 op.BatchNormGradSums
	dy, more, y, grad int
}

func (s netStep) batchNormGradSums(o op.BatchNormGradSums) (*lowering, string) {
	return gradSums{s, o, s.In[2], -1, -1, -1}.lower(), s.own()
}

// lower is the lowering but for the layouts of the operands, which are the caller's to check.
func (s gradSums) lower() *lowering {
	pixels, channels := pixelsOf(s.in(0)), s.in(0).Shape[1]
	grid, block := s.d.columns(pixels, channels)
	l := &lowering{results: []int{s.Out}, outputs: []device.Output{s.output()}, workspace: partial(grid, channels)}
	l.bind = func(b *binding) {
		value := func(v int) Span {
			if v < 0 {
				return Span{}
			}
			return b.spans[v]
		}
		b.launch("norm.cu", "nn_grad_sums", grid, block, b.spans[s.In[0]], b.spans[s.In[1]], value(s.dy), value(s.more), value(s.y), value(s.grad),
			b.work, int64(pixels), channels)
		ends, threads := each(channels)
		b.launch("norm.cu", "nn_grad_sums_end", ends, threads, b.work, grid.Y, b.spans[s.In[1]], b.spans[s.Out], channels, s.o.Eps)
	}
	return l
}

func (s netStep) batchNormGradInput(o op.BatchNormGradInput) (*lowering, string) {
	pixels, channels := pixelsOf(s.in(0)), s.in(0).Shape[1]
	grid, block := s.d.columns(pixels, channels)
	l, reason := s.result(0, func(b *binding, in []Span, out Span) {
		fixed := 0
		if o.Fixed {
			fixed = 1
		}
		b.launch("norm.cu", "nn_batch_norm_grad", grid, block, in[0], in[1], in[2], in[3], in[4], out, int64(pixels), channels, o.Eps, fixed)
	})
	l.outputs[0].Over = s.over(0, 4)
	return l, reason
}
