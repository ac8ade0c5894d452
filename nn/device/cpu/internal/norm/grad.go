package norm

import (
	"math"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// GradSums are the sums over pixels that the gradient needs: of dy·(x−mean)/σ and of dy. The same pass may first
// compute dy as the gradient of a ReLU.
type GradSums struct {
	eps              float64
	pixels, channels int
	X, Stats, dy     int // values
	Sums             int // the result

	// If y is not -1: dy ← from + more, and 0 if y ≤ 0. more may be -1.
	y, from, more int
}

func gradSums(s work.Step, o op.BatchNormGradSums) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	return NewGradSums(s, o).lower(s, nil), nil
}

// NewGradSums returns the sums of a single step.
func NewGradSums(s work.Step, o op.BatchNormGradSums) *GradSums {
	pixels, channels := nhwc.Pixels(s.InType(0).Shape)
	return &GradSums{
		eps: o.Eps, pixels: pixels, channels: channels,
		X: s.In[0], Stats: s.In[1], dy: s.In[2], Sums: s.Out,
		y: -1, from: -1, more: -1,
	}
}

// lower lowers step s with additional results.
func (b *GradSums) lower(s work.Step, more []lower.Result) *work.Lowering {
	var r work.Room
	sums := nhwc.NewSums(&r, b.pixels, b.channels)
	l := work.Data(s, func(st *work.Storage) []work.Phase { return b.phases(st, sums) })
	l.Results = append(l.Results, more...)
	l.Kernel.Take(sums.Piece(), b.X, b.dy, b.y, b.from, b.more)
	l.Workspace = r.Bytes
	return l
}

// Sums finds the first step that sums the result of step i, which has other readers too, for the gradient of a batch
// normalisation. It returns -1 for none.
func Sums(f *lower.Flow, i int) int {
	if f.Sole(i) >= 0 {
		return -1 // nobody else needs the result that the group would store
	}
	out := f.Step(i).Out
	for _, r := range f.Readers(i) {
		if s := f.Step(r); lower.Is[op.BatchNormGradSums](s) && s.In[2] == out && s.In[0] != out {
			return r
		}
	}
	return -1
}

// behindReLU matches [Add +] ReLUGrad + BatchNormGradSums.
func behindReLU(f *lower.Flow, first int) []work.Match {
	steps := []int{first}
	add := f.Step(first)
	added := lower.Is[op.Add](add)
	if added {
		next, ok := lower.Next[op.ReLUGrad](f, first)
		if !ok {
			return nil
		}
		steps = append(steps, next)
	}
	grad := f.Step(steps[len(steps)-1])
	if !lower.Is[op.ReLUGrad](grad) || added && grad.In[1] != add.Out {
		return nil
	}
	last := Sums(f, steps[len(steps)-1])
	if last < 0 {
		return nil
	}
	sums := f.Step(last)
	return []work.Match{{Steps: append(steps, last), Lower: func() (*work.Lowering, error) {
		b := NewGradSums(sums, sums.Op.(op.BatchNormGradSums))
		b.y, b.from = grad.In[0], grad.In[1]
		if added {
			b.from, b.more = add.In[0], add.In[1]
		}
		if err := work.IsData(sums, b.X, b.y, b.from, b.more); err != nil {
			return nil, err
		}
		// X is read after the gradient is written.
		over := slices.DeleteFunc([]int{b.y, b.from, b.more}, func(v int) bool { return v == b.X })
		return b.lower(sums, []lower.Result{{
			Value: grad.Out, Layout: work.Layout(grad.OutType(), device.Data), Bytes: grad.OutType().Bytes(), Over: over,
		}}), nil
	}}}
}

func (b *GradSums) phases(s *work.Storage, sums *nhwc.Sums) []work.Phase {
	x, stats, dy, dst := s.Pieces(b.X), s.Floats(b.Stats), s.Pieces(b.dy), s.Floats(b.Sums)
	y, from, more := s.Pieces(b.y), s.Pieces(b.from), s.Pieces(b.more)
	k := vec.For(s.Level)
	mean := s.Scratch(sums.Parameters)
	prepare := work.Phase{Blocks: 1, Run: func(int, int) { sums.Spread(mean, stats) }}
	half := vec.StoredFor(s.Level)
	for _, v := range []*work.Pieces{x, dy, y, from, more} {
		if v != nil && v.Stored() == nil {
			half = nil
		}
	}
	if half != nil {
		return append([]work.Phase{prepare}, sums.Phases(s, func(_ int, m nhwc.Summed) {
			of := func(v *work.Pieces) []uint16 { return v.Stored()[m.From:] }
			switch {
			case more != nil:
				half.AddReLUGradSums(m.First, m.Second, of(x), of(dy), of(y), of(from), of(more), m.Parameters, m.Width,
					m.Stride, 0, m.Rows)
			case y != nil:
				half.ReLUGradSums(m.First, m.Second, of(x), of(dy), of(y), of(from), m.Parameters, m.Width, m.Stride, 0, m.Rows)
			default:
				half.GradSums(m.First, m.Second, of(x), of(dy), m.Parameters, m.Width, m.Stride, 0, m.Rows)
			}
		}, b.Finish(dst, stats))...)
	}
	return append([]work.Phase{prepare}, sums.Phases(s, func(worker int, m nhwc.Summed) {
		in := func(v *work.Pieces) []float32 { return m.Read(v, worker) }
		switch {
		case more != nil:
			k.AddReLUGradSums(m.First, m.Second, in(x), m.To(dy, worker), in(y), in(from), in(more), m.Parameters, m.Width,
				m.Stride, m.Rows)
			m.Done(dy, worker)
		case y != nil:
			k.ReLUGradSums(m.First, m.Second, in(x), m.To(dy, worker), in(y), in(from), m.Parameters, m.Width, m.Stride, m.Rows)
			m.Done(dy, worker)
		default:
			k.GradSums(m.First, m.Second, in(x), in(dy), m.Parameters, m.Width, m.Stride, m.Rows)
		}
	}, b.Finish(dst, stats))...)
}

// Finish computes the result from sums over all pixels of dy·(x−mean) and dy.
func (b *GradSums) Finish(dst, stats []float32) func(channel int, scale, bias float64) {
	return func(c int, scale, bias float64) {
		dst[c] = float32(scale / math.Sqrt(float64(stats[b.channels+c])+b.eps))
		dst[b.channels+c] = float32(bias)
	}
}

// gradInput computes gain·(dy − mean of dy − (x − mean)·slope).
func gradInput(s work.Step, o op.BatchNormGradInput) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	rows := nhwc.RowsOf(nhwc.Pixels(s.InType(0).Shape))
	channels := rows.Channels
	var r work.Room
	scratch := r.Each(4, rows.Width())
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.For(st.Level)
		x, stats, scale, sums := st.Pieces(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.In[3])
		dy, dst := st.Pieces(s.In[4]), st.Pieces(s.Out)
		if st.Err != nil {
			return nil
		}
		params := st.Scratches(scratch)
		mean, gain, meanGrad, slope := params[0], params[1], params[2], params[3]
		prepare := work.Phase{Blocks: 1, Run: func(int, int) {
			gains(gain[:channels], stats[channels:], scale, o.Eps)
			n := float64(rows.Pixels)
			for c := range channels {
				meanGrad[c] = float32(float64(sums[channels+c]) / n)
				slope[c] = float32(float64(sums[c]) / n / math.Sqrt(float64(stats[channels+c])+o.Eps))
			}
			rows.Spread(mean, stats)
			for _, p := range params[1:] {
				rows.Spread(p[channels:], p)
			}
		}}
		half, to, from, grad := vec.StoredFor(st.Level), dst.Stored(), x.Stored(), dy.Stored()
		if half != nil && to != nil && from != nil && grad != nil {
			return []work.Phase{prepare, rows.Phase(func(_, lo, hi int) {
				half.NormalizeGrad(to[lo:hi], from[lo:hi], grad[lo:hi], mean, gain, meanGrad, slope)
			})}
		}
		return []work.Phase{prepare, rows.Pieces(dst, func(worker, lo, hi int) {
			k.NormalizeGrad(dst.To(worker, lo, hi), x.Read(worker, lo, hi), dy.Read(worker, lo, hi), mean, gain, meanGrad, slope)
		})}
	})
	l.Kernel.Take(rows.Piece(), s.In[0], s.In[4], s.Out)
	l.Workspace = r.Bytes
	l.Results[0].Over = []int{s.In[4], s.In[0]}
	return l, nil
}
