package cpu

import (
	"math"

	"onlinerna/nn/op"
)

func lowerMaxPool(s step, o op.MaxPool) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	p := newPooling(o.Kernel, o.Stride, o.Pad, s.in(0).Shape, s.out().Shape)
	return s.data(func(st *storage) []phase {
		x, y := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{linesOf(p.y).phase(y, func(n, i int, line []float32) {
			r0, r1 := p.span(0, i, p.x.h)
			for j := range p.y.w {
				c0, c1 := p.span(1, j, p.x.w)
				p.maximum(line[j*p.x.c:][:p.x.c], x[n*p.x.h*p.x.w*p.x.c:], r0, r1, c0, c1)
			}
		})}
	}), ""
}

// maximum sets dst to the maxima of the pixels of one image x in rows r0 to r1 and columns c0 to c1. It is NaN
// where one of them is.
func (p *pooling) maximum(dst, x []float32, r0, r1, c0, c1 int) {
	for i := range dst {
		dst[i] = float32(math.Inf(-1))
	}
	for r := r0; r < r1; r++ {
		for c := c0; c < c1; c++ {
			px := x[(r*p.x.w+c)*len(dst):][:len(dst)]
			for i, v := range px {
				dst[i] = max(dst[i], v)
			}
		}
	}
}

func lowerMaxPoolGrad(s step, o op.MaxPoolGrad) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	p := newPooling(o.MaxPool.Kernel, o.MaxPool.Stride, o.MaxPool.Pad, s.in(0).Shape, s.in(1).Shape)
	return s.data(func(st *storage) []phase {
		x, dy, dx := st.floats(s.In[0]), st.floats(s.In[1]), st.floats(s.Out)
		return []phase{p.scatter(dx, func(n, i, j, r0, r1, c0, c1, lo, hi int) {
			if r0 >= r1 || c0 >= c1 {
				return
			}
			g := dy[((n*p.y.h+i)*p.y.w+j)*p.y.c:][:p.y.c]
			first := ((n*p.x.h+r0)*p.x.w + c0) * p.x.c
			for c := lo; c < hi; c++ {
				dx[first+c+p.argmax(x[first+c:], r1-r0, c1-c0)] += g[c]
			}
		})}
	}), ""
}

// argmax is where the first maximum in a window of rows × cols pixels lies, of the channel with which x starts.
func (p *pooling) argmax(x []float32, rows, cols int) int {
	best, at := x[0], 0
	for r := range rows {
		for c := range cols {
			i := (r*p.x.w + c) * p.x.c
			if v := x[i]; v > best || v != v && best == best {
				best, at = v, i
			}
		}
	}
	return at
}
