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
		grad := k.MaxWindowsGrad
		if p.apart() {
			grad = k.MaxWindowsSet
		}
		if to := st.Pieces(dst); to.Stored() != nil {
			return []work.Phase{p.byLines(st.Pieces(s.In[0]), st.Pieces(s.In[1]), to, behindReLU, grad)}
		}
		x, dy, dx := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(dst)
		return []work.Phase{p.scatter(dx, !p.apart() || !p.covers(), func(n, i, lo, hi int) {
			p.windows(i, hi-lo, func(j, r, c int, w vec.Windows) {
				w.BehindReLU = behindReLU
				from := ((n*p.x.H+r)*p.x.W+c)*p.x.C + lo
				grad(dy[((n*p.y.H+i)*p.y.W+j)*p.y.C+lo:], x[from:], dx[from:], w)
			})
		})}
	})
	lines := min(p.kernel[0], p.x.H) * p.x.W * p.x.C
	l.Kernel.Take(lines, s.In[0], dst)
	l.Kernel.Take(p.y.W*p.y.C, s.In[1])
	l.Results[0].Value = dst
	return l, nil
}

// byLines is the gradient for a dx that is stored as bfloat16: the lines under the current windows are float32, in the
// pieces of x and dx. A line of dx is stored when no more window reaches it.
func (p *pooling) byLines(x, dy, dx *work.Pieces, behindReLU bool,
	grad func(dy, x, dx []float32, w vec.Windows)) work.Phase {
	line := p.x.W * p.x.C
	room := min(p.kernel[0], p.x.H) * line
	return work.Phase{Blocks: p.x.N, Run: func(worker, n int) {
		in, out := x.To(worker, 0, room), dx.To(worker, 0, room)
		if x.Stored() == nil {
			in = nil
		}
		image := n * p.x.H * line
		first, end := 0, 0 // lines in the pieces
		leave := func(to int) {
			if done := min(to, end) - first; done > 0 {
				dx.Store(out, line, image+first*line, done, line, line)
				copy(out, out[done*line:(end-first)*line])
				if in != nil {
					copy(in, in[done*line:(end-first)*line])
				}
			}
			if to > end { // no window reaches these lines
				clear(dx.Stored()[image+end*line : image+to*line])
				end = to
			}
			first = to
		}
		for i := range p.y.H {
			r0, r1 := p.span(0, i, p.x.H)
			if r0 > first {
				leave(r0)
			}
			if more := r1 - end; more > 0 {
				if in != nil {
					x.Copy(in[(end-first)*line:], line, image+end*line, more, line, line)
				}
				clear(out[(end-first)*line : (r1-first)*line])
				end = r1
			}
			from := in
			if in == nil {
				from = x.All()[image+first*line:]
			}
			at := (n*p.y.H + i) * p.y.W * p.y.C
			g := dy.Read(worker, at, at+p.y.W*p.y.C)
			p.windows(i, p.x.C, func(j, r, c int, w vec.Windows) {
				w.BehindReLU = behindReLU
				at := ((r-first)*p.x.W + c) * p.x.C
				grad(g[j*p.y.C:], from[at:], out[at:], w)
			})
		}
		leave(p.x.H)
	}}
}
