package cpu

import (
	"math"

	"onlinerna/nn/op"
)

// batchNormGradSums are the sums over pixels that the gradient needs: of dy·(x−mean)/σ and of dy. In the same
// pass dy may first be made from what lies behind a ReLU.
type batchNormGradSums struct {
	eps              float64
	pixels, channels int
	x, stats, dy     int // values
	sums             int // the result

	// If y is not -1: dy ← from + more, and 0 where y ≤ 0. more may be -1.
	y, from, more int
}

func lowerBatchNormGradSums(s step, o op.BatchNormGradSums) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	var r room
	b := s.gradSums(o)
	sums := newChannelSums(&r, b.pixels, b.channels, 2)
	l := s.data(func(st *storage) []phase { return b.phases(st, sums) })
	l.workspace = r.bytes
	return l, ""
}

func (s step) gradSums(o op.BatchNormGradSums) *batchNormGradSums {
	pixels, channels := pixelsOf(s.in(0).Shape)
	return &batchNormGradSums{
		eps: o.Eps, pixels: pixels, channels: channels,
		x: s.In[0], stats: s.In[1], dy: s.In[2], sums: s.Out,
		y: -1, from: -1, more: -1,
	}
}

func (b *batchNormGradSums) phases(s *storage, sums *channelSums) []phase {
	x, stats, dy, dst := s.floats(b.x), s.floats(b.stats), s.floats(b.dy), s.floats(b.sums)
	var y, from, more []float32
	if b.y >= 0 {
		y, from = s.floats(b.y), s.floats(b.from)
	}
	if b.more >= 0 {
		more = s.floats(b.more)
	}
	n := b.channels
	return sums.phases(s, func(sum []float64, lo, hi int) {
		scale, bias := sum[:n], sum[n:]
		for p := lo; p < hi; p++ {
			at := p * n
			row := dy[at:][:n]
			switch {
			case more != nil:
				for c := range row {
					row[c] = passed(y[at+c], from[at+c]+more[at+c])
				}
			case y != nil:
				reluGrad(row, y[at:at+n], from[at:])
			}
			gradSums(scale, bias, x[at:], row, stats)
		}
	}, func(c int, scale, bias float64) {
		dst[c] = float32(scale / math.Sqrt(float64(stats[n+c])+b.eps))
		dst[n+c] = float32(bias)
	})
}

func gradSums(scale, bias []float64, x, dy, mean []float32) {
	scale, bias, x, mean = scale[:len(dy)], bias[:len(dy)], x[:len(dy)], mean[:len(dy)]
	for c, v := range dy {
		g := float64(v)
		scale[c] += g * (float64(x[c]) - float64(mean[c]))
		bias[c] += g
	}
}

func lowerBatchNormGradInput(s step, o op.BatchNormGradInput) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	pixels, channels := pixelsOf(s.in(0).Shape)
	rows := max(1, elementBlock/channels)
	var r room
	gainPart, meanPart, slopePart := r.floats(channels), r.floats(channels), r.floats(channels)
	l := s.data(func(st *storage) []phase {
		x, stats, scale, sums := st.floats(s.In[0]), st.floats(s.In[1]), st.floats(s.In[2]), st.floats(s.In[3])
		dy, dst := st.floats(s.In[4]), st.floats(s.Out)
		gain, mean, slope := st.scratch(gainPart), st.scratch(meanPart), st.scratch(slopePart)
		return []phase{
			{1, func(int, int) {
				gains(gain, stats[channels:], scale, o.Eps)
				n := float64(pixels)
				for c := range mean {
					mean[c] = float32(float64(sums[channels+c]) / n)
					slope[c] = float32(float64(sums[c]) / n / math.Sqrt(float64(stats[channels+c])+o.Eps))
				}
			}},
			{ceil(pixels, rows), func(_, block int) {
				for p := block * rows; p < min((block+1)*rows, pixels); p++ {
					at := p * channels
					if o.Fixed {
						scaleRow(dst[at:], dy[at:], gain)
						continue
					}
					normalizeGrad(dst[at:], x[at:], dy[at:], stats, gain, mean, slope)
				}
			}},
		}
	})
	l.workspace = r.bytes
	l.outputs[0].Over = s.over(4, 0)
	return l, ""
}

func scaleRow(dst, x, gain []float32) {
	dst, x = dst[:len(gain)], x[:len(gain)]
	for c, g := range gain {
		dst[c] = x[c] * g
	}
}

// normalizeGrad sets dst to gain·(dy − mean of dy − (x − mean)·slope).
func normalizeGrad(dst, x, dy, mean, gain, meanGrad, slope []float32) {
	dst, x, dy = dst[:len(gain)], x[:len(gain)], dy[:len(gain)]
	mean, meanGrad, slope = mean[:len(gain)], meanGrad[:len(gain)], slope[:len(gain)]
	for c, g := range gain {
		dst[c] = (dy[c] - meanGrad[c] - (x[c]-mean[c])*slope[c]) * g
	}
}
