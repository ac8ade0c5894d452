package cpu

import (
	"slices"

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
	return s.maxPoolGrad(o, s.Out, false)
}

// fuseMaxPoolGrad lowers the gradient of pooling what a ReLU made together with that of the ReLU.
func (d *Device) fuseMaxPoolGrad(o op.MaxPoolGrad, steps []step) (*lowering, string) {
	pool, relu := steps[0], steps[1]
	if len(steps) != 2 || !isReLUGrad(relu.Op) || relu.In[0] != pool.In[0] || relu.In[1] != pool.Out ||
		slices.Contains(pool.group.Outputs, pool.Out) {
		return nil, "these ops are not run as a group"
	}
	return pool.maxPoolGrad(o, relu.Out, true)
}

// maxPoolGrad lowers the step into value dst, with the gradient of a ReLU before the pooling if it says so.
func (s step) maxPoolGrad(o op.MaxPoolGrad, dst int, behindReLU bool) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	p := newPooling(o.MaxPool.Kernel, o.MaxPool.Stride, o.MaxPool.Pad, s.in(0).Shape, s.in(1).Shape)
	l := s.data(func(st *storage) []phase {
		k := kernels()
		x, dy, dx := st.floats(s.In[0]), st.floats(s.In[1]), st.floats(dst)
		grad := k.MaxWindowsGrad
		if p.apart() {
			grad = k.MaxWindowsSet
		}
		return []phase{p.scatter(dx, !p.apart() || !p.covers(), func(n, i, lo, hi int) {
			p.windows(i, hi-lo, func(j, r, c int, w vec.Windows) {
				w.BehindReLU = behindReLU
				from := ((n*p.x.h+r)*p.x.w+c)*p.x.c + lo
				grad(dy[((n*p.y.h+i)*p.y.w+j)*p.y.c+lo:], x[from:], dx[from:], w)
			})
		})}
	})
	l.results = []int{dst}
	return l, ""
}
