// Package pool has pooling: maxima, means and means of whole planes, with their gradients.
package pool

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/norm"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops.
func Patterns() []work.Pattern {
	return []work.Pattern{
		lower.Alone(maxPool), maxGrad,
		lower.Alone(mean), lower.Alone(meanGrad),
		lower.Alone(global), lower.Alone(globalGrad),
	}
}

func maxPool(s work.Step, o op.MaxPool) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	p := newPooling(o.Kernel, o.Stride, o.Pad, s.InType(0).Shape, s.OutType().Shape)
	l := nhwc.ByLine(s, func(st *work.Storage) func(worker, n, i int, line []float32) {
		k, x := vec.For(st.Level), st.Pieces(s.In[0])
		return func(worker, n, i int, line []float32) {
			lines := p.under(x, worker, n, i)
			p.windows(i, p.x.C, func(j, _, c int, w vec.Windows) {
				k.MaxWindows(line[j*p.y.C:], lines[c*p.x.C:], w)
			})
		}
	})
	p.take(&l.Kernel, s.In[0])
	return l, nil
}

// maxGrad matches the gradient of pooling. It includes the gradient of the ReLU before the pooling unless a better
// pattern takes that.
func maxGrad(f *lower.Flow, first int) []work.Match {
	s := f.Step(first)
	o, ok := s.Op.(op.MaxPoolGrad)
	if !ok {
		return nil
	}
	list := []work.Match{maxGradMatch(s, o, []int{first}, s.Out, false)}
	next, ok := lower.Next[op.ReLUGrad](f, first)
	if !ok {
		return list
	}
	if relu := f.Step(next); relu.In[0] == s.In[0] && relu.In[1] == s.Out && norm.Sums(f, next) < 0 {
		list = slices.Insert(list, 0, maxGradMatch(s, o, []int{first, next}, relu.Out, true))
	}
	return list
}

// maxGradMatch lowers the gradient of step s into value dst. behindReLU includes the gradient of a ReLU before the
// pooling.
func maxGradMatch(s work.Step, o op.MaxPoolGrad, steps []int, dst int, behindReLU bool) work.Match {
	return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) { return lowerMaxGrad(s, o, dst, behindReLU) }}
}

func lowerMaxGrad(s work.Step, o op.MaxPoolGrad, dst int, behindReLU bool) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	p := newPooling(o.MaxPool.Kernel, o.MaxPool.Stride, o.MaxPool.Pad, s.InType(0).Shape, s.InType(1).Shape)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.For(st.Level)
		x, dy, dx := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(dst)
		grad := k.MaxWindowsGrad
		if p.apart() {
			grad = k.MaxWindowsSet
		}
		return []work.Phase{p.scatter(dx, !p.apart() || !p.covers(), func(n, i, lo, hi int) {
			p.windows(i, hi-lo, func(j, r, c int, w vec.Windows) {
				w.BehindReLU = behindReLU
				from := ((n*p.x.H+r)*p.x.W+c)*p.x.C + lo
				grad(dy[((n*p.y.H+i)*p.y.W+j)*p.y.C+lo:], x[from:], dx[from:], w)
			})
		})}
	})
	l.Results[0].Value = dst
	return l, nil
}
