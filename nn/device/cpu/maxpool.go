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
			var best, at [channelTile]int32
			g := dy[((n*p.y.h+i)*p.y.w+j)*p.y.c:][lo:hi]
			first := ((n*p.x.h+r0)*p.x.w+c0)*p.x.c + lo
			for r := range r1 - r0 {
				for c := range c1 - c0 {
					off := (r*p.x.w + c) * p.x.c
					larger(best[:len(g)], at[:len(g)], x[first+off:], int32(off), off == 0)
				}
			}
			to := dx[first:]
			for c, v := range g {
				to[int(at[c])+c] += v
			}
		})}
	}), ""
}

// larger notes where x is larger than the best, or anything at first: its rank, and the position off.
func larger(best, at []int32, x []float32, off int32, first bool) {
	x, at = x[:len(best)], at[:len(best)]
	if first {
		for c, v := range x {
			best[c], at[c] = order(v), off
		}
		return
	}
	for c, v := range x {
		// Both are chosen without a branch: which is larger cannot be predicted.
		k, b, p := order(v), best[c], at[c]
		if k > b {
			p = off
		}
		best[c], at[c] = max(b, k), p
	}
}

// order maps numbers to integers in the same order, with equal zeros and NaN above all.
func order(v float32) int32 {
	b := int32(math.Float32bits(v + 0))
	b ^= int32(uint32(b>>31) >> 1)
	if v != v {
		b = math.MaxInt32
	}
	return b
}
