package move

import (
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// picking is the axis of a gather: extents outside, along and inside the axis, on both sides.
type picking struct {
	outer, inner op.Shape
	from, to     []int // strides of x and of the picked elements, by dimension
	axis         int
}

func newPicking(x, y []int, shape op.Shape, axis int) picking {
	return picking{outer: shape[:axis], inner: shape[axis+1:], from: x, to: y, axis: axis}
}

// each calls f for each line of elements along the axis, with the places of its first element in x and among the picked
// ones.
func (p *picking) each(f func(from, to int)) {
	var walk func(s op.Shape, d, from, to int, f func(from, to int))
	walk = func(s op.Shape, d, from, to int, f func(from, to int)) {
		if len(s) == 0 {
			f(from, to)
			return
		}
		for i := range s[0] {
			walk(s[1:], d+1, from+i*p.from[d], to+i*p.to[d], f)
		}
	}
	walk(p.outer, 0, 0, 0, func(from, to int) { walk(p.inner, p.axis+1, from, to, f) })
}

func gather(s work.Step, o op.Gather) (*work.Lowering, error) {
	p := newPicking(work.Strides(s.InValue(0)), work.DataStrides(s.OutType()), s.InType(0).Shape, o.Axis)
	extent := s.InType(0).Shape[o.Axis]
	return work.Data(s, func(st *work.Storage) []work.Phase {
		x, index, dst := st.Floats(s.In[0]), work.Value[int32](st, s.In[1]), st.Floats(s.Out)
		return []work.Phase{{Blocks: len(index), Run: func(_, k int) {
			i, a, b := int(index[k]), p.from[o.Axis], p.to[o.Axis]
			p.each(func(from, to int) {
				if i >= 0 && i < extent {
					dst[to+k*b] = x[from+i*a]
				} else {
					dst[to+k*b] = 0
				}
			})
		}}}
	}), nil
}

// gatherGrad sums in float64, one element along the axis after the other: indices may repeat.
func gatherGrad(s work.Step, o op.GatherGrad) (*work.Lowering, error) {
	p := newPicking(work.DataStrides(s.OutType()), work.Strides(s.InValue(0)), s.InType(0).Shape, o.Axis)
	return work.Data(s, func(st *work.Storage) []work.Phase {
		dy, index, dst := st.Floats(s.In[0]), work.Value[int32](st, s.In[1]), st.Floats(s.Out)
		return []work.Phase{{Blocks: o.Extent, Run: func(_, i int) {
			a, b := p.from[o.Axis], p.to[o.Axis]
			p.each(func(from, to int) {
				sum := 0.0
				for k, at := range index {
					if int(at) == i {
						sum += float64(dy[to+k*b])
					}
				}
				dst[from+i*a] = float32(sum)
			})
		}}}
	}), nil
}
