// Package norm has batch normalisation: statistics, the affine map, their gradients, and what runs in the same pass.
package norm

import (
	"math"
	"slices"

	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns are those of the ops of this package.
func Patterns() []work.Pattern {
	return []work.Pattern{
		applied, behindReLU,
		lower.Alone(stats), lower.Alone(update), lower.Alone(gradSums), lower.Alone(gradInput),
	}
}

// stats sums once. The sums are float64, so that the square of a mean much larger than the deviation from
// it does not hide the variance.
func stats(s work.Step, _ op.BatchNormStats) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	var r work.Room
	pixels, channels := nhwc.Pixels(s.InType(0).Shape)
	sums := nhwc.NewSums(&r, pixels, channels)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.Current()
		x, stats := st.Floats(s.In[0]), st.Floats(s.Out)
		return sums.Phases(st,
			func(m nhwc.Summed) { k.Moments(m.First, m.Second, x[m.From:], m.Width, m.Stride, m.Rows) },
			func(c int, sum, squares float64) { Moments(stats, c, channels, pixels, sum, squares) })
	})
	l.Workspace = r.Bytes
	return l, nil
}

// Moments writes the mean and the variance of a channel from the sums of x and of its square over all pixels.
func Moments(stats []float32, c, channels, pixels int, sum, squares float64) {
	n := float64(pixels)
	mean := sum / n
	stats[c] = float32(mean)
	stats[channels+c] = float32(max(squares/n-float64(mean*mean), 0))
}

func update(s work.Step, o op.BatchNormUpdate) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		running, stats, momentum, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.Out)
		channels := len(stats) / 2
		unbiased := float64(o.Count) / float64(o.Count-1)
		return work.One(func() {
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
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}

// batchNorm is the affine map of each channel, y = (x − mean)·gain + bias, and what may follow it in the
// same pass.
type batchNorm struct {
	nhwc.Rows
	eps                   float64
	x, stats, scale, bias int // values
	other                 int // added to the result, or -1
	relu                  bool
	dst                   int
}

// applied takes BatchNorm [+ Add] [+ ReLU].
func applied(f *lower.Flow, first int) []work.Match {
	s := f.Step(first)
	o, ok := s.Op.(op.BatchNorm)
	if !ok {
		return nil
	}
	b := batchNorm{eps: o.Eps, x: s.In[0], stats: s.In[1], scale: s.In[2], bias: s.In[3], other: -1, dst: s.Out}
	steps := []int{first}
	list := []work.Match{b.match(s, steps)}
	if next, ok := lower.Next[op.Add](f, first); ok {
		add := f.Step(next)
		b.other, _ = add.Other(s.Out)
		b.dst = add.Out
		steps = append(slices.Clone(steps), next)
		list = slices.Insert(list, 0, b.match(s, steps))
	}
	if next, ok := lower.Next[op.ReLU](f, steps[len(steps)-1]); ok {
		b.relu, b.dst = true, f.Step(next).Out
		list = slices.Insert(list, 0, b.match(s, append(slices.Clone(steps), next)))
	}
	return list
}

// match is b, which begins with step s, made of the given steps.
func (b batchNorm) match(s work.Step, steps []int) work.Match {
	return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) {
		if err := work.DataIn(s); err != nil {
			return nil, err
		}
		if err := work.IsData(s, b.other); err != nil {
			return nil, err
		}
		b.Rows = nhwc.RowsOf(nhwc.Pixels(s.InType(0).Shape))
		var r work.Room
		scratch := r.Each(3, b.Width())
		l := work.Data(s, func(st *work.Storage) []work.Phase { return b.phases(st, scratch) })
		l.Results[0].Value, l.Results[0].Over = b.dst, []int{b.x, b.other}
		l.Workspace = r.Bytes
		return l, nil
	}}
}

func (b *batchNorm) phases(s *work.Storage, scratch []work.Part) []work.Phase {
	x, stats, scale, bias, dst := s.Floats(b.x), s.Floats(b.stats), s.Floats(b.scale), s.Floats(b.bias), s.Floats(b.dst)
	var other []float32
	if b.other >= 0 {
		other = s.Floats(b.other)
	}
	if s.Err != nil {
		return nil
	}
	params := s.Scratches(scratch)
	mean, gain, shift := params[0], params[1], params[2]
	prepare := work.Phase{Blocks: 1, Run: func(int, int) {
		gains(gain[:b.Channels], stats[b.Channels:], scale, b.eps)
		b.Spread(gain[b.Channels:], gain)
		b.Spread(mean, stats)
		b.Spread(shift, bias)
	}}
	k := vec.To(dst, b.Width(), x, other)
	normalize, normalizeAdd := k.Normalize, k.NormalizeAdd
	if b.relu {
		normalize, normalizeAdd = k.NormalizeReLU, k.NormalizeAddReLU
	}
	if other != nil {
		return []work.Phase{prepare, b.Phase(func(lo, hi int) {
			normalizeAdd(dst[lo:hi], x[lo:hi], other[lo:hi], mean, gain, shift)
		})}
	}
	return []work.Phase{prepare, b.Phase(func(lo, hi int) { normalize(dst[lo:hi], x[lo:hi], mean, gain, shift) })}
}

// gains sets gain to scale/σ.
func gains(gain, variance, scale []float32, eps float64) {
	for c := range gain {
		gain[c] = float32(float64(scale[c]) / math.Sqrt(float64(variance[c])+eps))
	}
}
