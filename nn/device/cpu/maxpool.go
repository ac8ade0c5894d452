package cpu

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/op"
)

func lowerMaxPool(s step, o op.MaxPool) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	p := newPooling(o.Kernel, o.Stride, o.Pad, s.in(0).Shape, s.out().Shape)
	return s.data(func(st *storage) []phase {
		k := kernels()
		x, y := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{linesOf(p.y).phase(y, func(n, i int, line []float32) {
			p.windows(i, p.x.c, func(j, r, c int, w vec.Windows) {
				k.MaxWindows(line[j*p.y.c:], x[((n*p.x.h+r)*p.x.w+c)*p.x.c:], w)
			})
		})}
	}), ""
}

func lowerMaxPoolGrad(s step, o op.MaxPoolGrad) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	p := newPooling(o.MaxPool.Kernel, o.MaxPool.Stride, o.MaxPool.Pad, s.in(0).Shape, s.in(1).Shape)
	return s.data(func(st *storage) []phase {
		k := kernels()
		x, dy, dx := st.floats(s.In[0]), st.floats(s.In[1]), st.floats(s.Out)
		grad := k.MaxWindowsGrad
		if p.apart() {
			grad = k.MaxWindowsSet
		}
		return []phase{p.scatter(dx, !p.apart() || !p.covers(), func(n, i, lo, hi int) {
			p.windows(i, hi-lo, func(j, r, c int, w vec.Windows) {
				from := ((n*p.x.h+r)*p.x.w+c)*p.x.c + lo
				grad(dy[((n*p.y.h+i)*p.y.w+j)*p.y.c+lo:], x[from:], dx[from:], w)
			})
		})}
	}), ""
}
