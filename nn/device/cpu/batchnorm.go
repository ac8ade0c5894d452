package cpu

import (
	"math"

	"onlinerna/nn/op"
)

func lowerBatchNormStats(s step) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	var r room
	pixels, channels := pixelsOf(s.in(0).Shape)
	sums := newChannelSums(&r, pixels, channels, 2)
	l := s.data(func(st *storage) []phase {
		x, stats := st.floats(s.In[0]), st.floats(s.Out)
		return sums.phases(st, func(sum []float64, lo, hi int) {
			moments(sum[:channels], sum[channels:], x[lo*channels:hi*channels], x[:channels])
		}, func(c int, sum, squares float64) {
			n := float64(pixels)
			mean := sum / n
			stats[c] = float32(float64(x[c]) + mean)
			stats[channels+c] = float32(max(squares/n-float64(mean*mean), 0))
		})
	})
	l.workspace = r.bytes
	return l, ""
}

// moments adds to sum and squares those of the channels of x less shift. A shift near the mean keeps the
// variance from cancelling.
func moments(sum, squares []float64, x, shift []float32) {
	sum, squares = sum[:len(shift)], squares[:len(shift)]
	for len(x) >= len(shift) {
		row := x[:len(shift)]
		x = x[len(shift):]
		for c, s := range shift {
			d := float64(row[c]) - float64(s)
			sum[c] += d
			squares[c] += d * d
		}
	}
}

func lowerBatchNormUpdate(s step, o op.BatchNormUpdate) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	l := s.data(func(st *storage) []phase {
		running, stats, momentum, dst := st.floats(s.In[0]), st.floats(s.In[1]), st.floats(s.In[2]), st.floats(s.Out)
		channels := len(stats) / 2
		unbiased := float64(o.Count) / float64(o.Count-1)
		return one(func() {
			m := float64(momentum[0])
			for i, v := range stats {
				now := float64(v)
				if i >= channels {
					now *= unbiased
				}
				dst[i] = float32((1-m)*float64(running[i]) + m*now)
			}
		})
	})
	l.outputs[0].Over = s.over(0)
	return l, ""
}

// batchNorm is the affine map of each channel, y = (x − mean)·gain + bias, and what may follow it in the
// same pass.
type batchNorm struct {
	eps                   float64
	pixels, channels      int
	x, stats, scale, bias int // values
	other                 int // added to the result, or -1
	relu                  bool
	dst                   int
}

func lowerBatchNorm(s step, o op.BatchNorm) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	l := s.batchNorm(o, -1, false, s.Out)
	l.outputs[0].Over = s.over(0)
	return l, ""
}

// batchNorm lowers the step, with what follows it, into value dst.
func (s step) batchNorm(o op.BatchNorm, other int, relu bool, dst int) *lowering {
	pixels, channels := pixelsOf(s.in(0).Shape)
	b := &batchNorm{
		eps: o.Eps, pixels: pixels, channels: channels,
		x: s.In[0], stats: s.In[1], scale: s.In[2], bias: s.In[3],
		other: other, relu: relu, dst: dst,
	}
	var r room
	gain := r.floats(channels)
	l := s.data(func(st *storage) []phase { return b.phases(st, gain) })
	l.results = []int{dst}
	l.workspace = r.bytes
	return l
}

func (b *batchNorm) phases(s *storage, gainPart part) []phase {
	x, stats, scale, bias, dst := s.floats(b.x), s.floats(b.stats), s.floats(b.scale), s.floats(b.bias), s.floats(b.dst)
	gain := s.scratch(gainPart)
	var other []float32
	if b.other >= 0 {
		other = s.floats(b.other)
	}
	channels := b.channels
	rows := max(1, elementBlock/channels)
	return []phase{
		{1, func(int, int) { gains(gain, stats[channels:], scale, b.eps) }},
		{ceil(b.pixels, rows), func(_, block int) {
			for p := block * rows; p < min((block+1)*rows, b.pixels); p++ {
				lo := p * channels
				row := x[lo:][:channels]
				to := dst[lo:][:channels]
				switch {
				case other != nil && b.relu:
					normalizeAddReLU(to, row, other[lo:], stats, gain, bias)
				case other != nil:
					normalizeAdd(to, row, other[lo:], stats, gain, bias)
				case b.relu:
					normalizeReLU(to, row, stats, gain, bias)
				default:
					normalize(to, row, stats, gain, bias)
				}
			}
		}},
	}
}

// gains sets gain to scale/σ.
func gains(gain, variance, scale []float32, eps float64) {
	for c := range gain {
		gain[c] = float32(float64(scale[c]) / math.Sqrt(float64(variance[c])+eps))
	}
}

// The next four are the row of a pixel's channels; they round alike.

func normalize(dst, x, mean, gain, bias []float32) {
	dst, mean, gain, bias = dst[:len(x)], mean[:len(x)], gain[:len(x)], bias[:len(x)]
	for c, v := range x {
		dst[c] = (v-mean[c])*gain[c] + bias[c]
	}
}

func normalizeReLU(dst, x, mean, gain, bias []float32) {
	dst, mean, gain, bias = dst[:len(x)], mean[:len(x)], gain[:len(x)], bias[:len(x)]
	for c, v := range x {
		dst[c] = max((v-mean[c])*gain[c]+bias[c], 0)
	}
}

func normalizeAdd(dst, x, other, mean, gain, bias []float32) {
	dst, other = dst[:len(x)], other[:len(x)]
	mean, gain, bias = mean[:len(x)], gain[:len(x)], bias[:len(x)]
	for c, v := range x {
		dst[c] = (v-mean[c])*gain[c] + bias[c] + other[c]
	}
}

func normalizeAddReLU(dst, x, other, mean, gain, bias []float32) {
	dst, other = dst[:len(x)], other[:len(x)]
	mean, gain, bias = mean[:len(x)], gain[:len(x)], bias[:len(x)]
	for c, v := range x {
		dst[c] = max((v-mean[c])*gain[c]+bias[c]+other[c], 0)
	}
}
