package pool

import (
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func mean(s work.Step, o op.AvgPool) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	p := newPooling(o.Kernel, o.Stride, o.Pad, s.InType(0).Shape, s.OutType().Shape)
	part := 1 / float32(o.Kernel[0]*o.Kernel[1])
	l := nhwc.ByLine(s, func(st *work.Storage) func(worker, n, i int, line []float32) {
		k, x := vec.For(st.Level), st.Pieces(s.In[0])
		return func(worker, n, i int, line []float32) {
			lines := p.under(x, worker, n, i)
			r0, r1 := p.span(0, i, p.x.H)
			clear(line)
			for j := range p.y.W {
				c0, c1 := p.span(1, j, p.x.W)
				dst := line[j*p.x.C:][:p.x.C]
				for r := range r1 - r0 {
					for c := c0; c < c1; c++ {
						k.Add(dst, dst, lines[(r*p.x.W+c)*p.x.C:])
					}
				}
				for c := range dst {
					dst[c] *= part
				}
			}
		}
	})
	p.take(&l.Kernel, s.In[0])
	return l, nil
}

func meanGrad(s work.Step, o op.AvgPoolGrad) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	p := newPooling(o.AvgPool.Kernel, o.AvgPool.Stride, o.AvgPool.Pad, s.OutType().Shape, s.InType(0).Shape)
	part := 1 / float32(o.AvgPool.Kernel[0]*o.AvgPool.Kernel[1])
	return work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.For(st.Level)
		dy, dx := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{p.scatter(dx, true, func(n, i, lo, hi int) {
			r0, r1 := p.span(0, i, p.x.H)
			for j := range p.y.W {
				g := dy[((n*p.y.H+i)*p.y.W+j)*p.y.C:][lo:hi]
				c0, c1 := p.span(1, j, p.x.W)
				for r := r0; r < r1; r++ {
					for c := c0; c < c1; c++ {
						k.AddScaled(dx[((n*p.x.H+r)*p.x.W+c)*p.x.C+lo:][:len(g)], g, part)
					}
				}
			}
		})}
	}), nil
}
