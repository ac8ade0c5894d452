package cpu

import "onlinerna/nn/op"

func lowerAvgPool(s step, o op.AvgPool) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	p := newPooling(o.Kernel, o.Stride, o.Pad, s.in(0).Shape, s.out().Shape)
	part := 1 / float32(o.Kernel[0]*o.Kernel[1])
	return s.data(func(st *storage) []phase {
		k := kernels()
		x, y := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{linesOf(p.y).phase(y, func(n, i int, line []float32) {
			r0, r1 := p.span(0, i, p.x.h)
			clear(line)
			for j := range p.y.w {
				c0, c1 := p.span(1, j, p.x.w)
				dst := line[j*p.x.c:][:p.x.c]
				for r := r0; r < r1; r++ {
					for c := c0; c < c1; c++ {
						k.Add(dst, dst, x[((n*p.x.h+r)*p.x.w+c)*p.x.c:])
					}
				}
				for c := range dst {
					dst[c] *= part
				}
			}
		})}
	}), ""
}

func lowerAvgPoolGrad(s step, o op.AvgPoolGrad) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	p := newPooling(o.AvgPool.Kernel, o.AvgPool.Stride, o.AvgPool.Pad, s.out().Shape, s.in(0).Shape)
	part := 1 / float32(o.AvgPool.Kernel[0]*o.AvgPool.Kernel[1])
	return s.data(func(st *storage) []phase {
		k := kernels()
		dy, dx := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{p.scatter(dx, true, func(n, i, lo, hi int) {
			r0, r1 := p.span(0, i, p.x.h)
			for j := range p.y.w {
				g := dy[((n*p.y.h+i)*p.y.w+j)*p.y.c:][lo:hi]
				c0, c1 := p.span(1, j, p.x.w)
				for r := r0; r < r1; r++ {
					for c := c0; c < c1; c++ {
						k.AddScaled(dx[((n*p.x.h+r)*p.x.w+c)*p.x.c+lo:][:len(g)], g, part)
					}
				}
			}
		})}
	}), ""
}
