package cpu

import (
	"math"

	"onlinerna/nn/op"
)

// lowerBatchNormStats sums once. The sums are float64, so that the square of a mean much larger than the deviation from
// it does not hide the variance.
func lowerBatchNormStats(s step) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	var r room
	pixels, channels := pixelsOf(s.in(0).Shape)
	sums := newChannelSums(&r, pixels, channels)
	l := s.data(func(st *storage) []phase {
		k := kernels()
		x, stats := st.floats(s.In[0]), st.floats(s.Out)
		return sums.phases(st,
			func(m summed) { k.Moments(m.first, m.second, x[m.from:], m.width, m.stride, m.rows) },
			func(c int, sum, squares float64) { moments(stats, c, channels, pixels, sum, squares) })
	})
	l.workspace = r.bytes
	return l, ""
}

// moments writes the mean and the variance of a channel from the sums of x and of its square over all pixels.
func moments(stats []float32, c, channels, pixels int, sum, squares float64) {
	n := float64(pixels)
	mean := sum / n
	stats[c] = float32(mean)
	stats[channels+c] = float32(max(squares/n-float64(mean*mean), 0))
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
	rows
	eps                   float64
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
	b := &batchNorm{
		eps: o.Eps, rows: rowsOf(pixelsOf(s.in(0).Shape)),
		x: s.In[0], stats: s.In[1], scale: s.In[2], bias: s.In[3],
		other: other, relu: relu, dst: dst,
	}
	var r room
	scratch := r.each(3, b.width())
	l := s.data(func(st *storage) []phase { return b.phases(st, scratch) })
	l.results = []int{dst}
	l.workspace = r.bytes
	return l
}

func (b *batchNorm) phases(s *storage, scratch []part) []phase {
	x, stats, scale, bias, dst := s.floats(b.x), s.floats(b.stats), s.floats(b.scale), s.floats(b.bias), s.floats(b.dst)
	var other []float32
	if b.other >= 0 {
		other = s.floats(b.other)
	}
	if s.err != nil {
		return nil
	}
	params := s.scratches(scratch)
	mean, gain, shift := params[0], params[1], params[2]
	prepare := phase{1, func(int, int) {
		gains(gain[:b.channels], stats[b.channels:], scale, b.eps)
		b.spread(gain[b.channels:], gain)
		b.spread(mean, stats)
		b.spread(shift, bias)
	}}
	k := kernelsTo(dst, b.width(), x, other)
	normalize, normalizeAdd := k.Normalize, k.NormalizeAdd
	if b.relu {
		normalize, normalizeAdd = k.NormalizeReLU, k.NormalizeAddReLU
	}
	if other != nil {
		return []phase{prepare, b.phase(func(lo, hi int) {
			normalizeAdd(dst[lo:hi], x[lo:hi], other[lo:hi], mean, gain, shift)
		})}
	}
	return []phase{prepare, b.phase(func(lo, hi int) { normalize(dst[lo:hi], x[lo:hi], mean, gain, shift) })}
}

// gains sets gain to scale/σ.
func gains(gain, variance, scale []float32, eps float64) {
	for c := range gain {
		gain[c] = float32(float64(scale[c]) / math.Sqrt(float64(variance[c])+eps))
	}
}
