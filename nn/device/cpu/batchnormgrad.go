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
	sums := newChannelSums(&r, b.pixels, b.channels)
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
	k := kernels()
	mean := s.scratch(sums.parameters)
	prepare := phase{1, func(int, int) { sums.spread(mean, stats) }}
	return append([]phase{prepare}, sums.phases(s, func(m summed) {
		at := m.from
		switch {
		case more != nil:
			k.AddReLUGradSums(m.first, m.second, x[at:], dy[at:], y[at:], from[at:], more[at:], m.parameters, m.width, m.stride, m.rows)
		case y != nil:
			k.ReLUGradSums(m.first, m.second, x[at:], dy[at:], y[at:], from[at:], m.parameters, m.width, m.stride, m.rows)
		default:
			k.GradSums(m.first, m.second, x[at:], dy[at:], m.parameters, m.width, m.stride, m.rows)
		}
	}, b.finish(dst, stats))...)
}

// finish makes the result from sums over all pixels of dy·(x−mean) and dy.
func (b *batchNormGradSums) finish(dst, stats []float32) func(channel int, scale, bias float64) {
	return func(c int, scale, bias float64) {
		dst[c] = float32(scale / math.Sqrt(float64(stats[b.channels+c])+b.eps))
		dst[b.channels+c] = float32(bias)
	}
}

// lowerBatchNormGradInput makes gain·(dy − mean of dy − (x − mean)·slope).
func lowerBatchNormGradInput(s step, o op.BatchNormGradInput) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	rows := rowsOf(pixelsOf(s.in(0).Shape))
	channels := rows.channels
	var r room
	scratch := r.each(4, rows.width())
	l := s.data(func(st *storage) []phase {
		k := kernels()
		x, stats, scale, sums := st.floats(s.In[0]), st.floats(s.In[1]), st.floats(s.In[2]), st.floats(s.In[3])
		dy, dst := st.floats(s.In[4]), st.floats(s.Out)
		if st.err != nil {
			return nil
		}
		params := st.scratches(scratch)
		mean, gain, meanGrad, slope := params[0], params[1], params[2], params[3]
		prepare := phase{1, func(int, int) {
			gains(gain[:channels], stats[channels:], scale, o.Eps)
			n := float64(rows.pixels)
			for c := range channels {
				meanGrad[c] = float32(float64(sums[channels+c]) / n)
				slope[c] = float32(float64(sums[c]) / n / math.Sqrt(float64(stats[channels+c])+o.Eps))
			}
			rows.spread(mean, stats)
			for _, p := range params[1:] {
				rows.spread(p[channels:], p)
			}
		}}
		if o.Fixed {
			return []phase{prepare, rows.phase(func(lo, hi int) { k.Scale(dst[lo:hi], dy[lo:hi], gain) })}
		}
		return []phase{prepare, rows.phase(func(lo, hi int) {
			k.NormalizeGrad(dst[lo:hi], x[lo:hi], dy[lo:hi], mean, gain, meanGrad, slope)
		})}
	})
	l.workspace = r.bytes
	l.outputs[0].Over = s.over(4, 0)
	return l, ""
}
