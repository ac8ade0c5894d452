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

// lines is the number of lines along the axis.
func (p *picking) lines() int { return p.outer.Size() * p.inner.Size() }

// inBlocks is a phase that calls f for ranges of n elements along the axis. f does the given number of steps for each
// in a line; a range is about work.ElementBlock steps.
func (p *picking) inBlocks(n, steps int, f func(first, end int)) work.Phase {
	each := max(1, work.ElementBlock/max(1, p.lines()*steps))
	return work.Phase{Blocks: work.Ceil(n, each), Run: func(_, block int) {
		f(block*each, min((block+1)*each, n))
	}}
}

func gather(s work.Step, o op.Gather) (*work.Lowering, error) {
	p := newPicking(work.Strides(s.InValue(0)), work.DataStrides(s.OutType()), s.InType(0).Shape, o.Axis)
	extent := s.InType(0).Shape[o.Axis]
	return work.Data(s, func(st *work.Storage) []work.Phase {
		x, index, dst := st.Floats(s.In[0]), work.Value[int32](st, s.In[1]), st.Floats(s.Out)
		a, b := p.from[o.Axis], p.to[o.Axis]
		return []work.Phase{p.inBlocks(len(index), 1, func(first, end int) {
			p.each(func(from, to int) {
				for k := first; k < end; k++ {
					if i := int(index[k]); i >= 0 && i < extent {
						dst[to+k*b] = x[from+i*a]
					} else {
						dst[to+k*b] = 0
					}
				}
			})
		})}
	}), nil
}

// gatherGrad sums in float64, one element along the axis after the other: indices may repeat.
func gatherGrad(s work.Step, o op.GatherGrad) (*work.Lowering, error) {
	p := newPicking(work.DataStrides(s.OutType()), work.Strides(s.InValue(0)), s.InType(0).Shape, o.Axis)
	return work.Data(s, func(st *work.Storage) []work.Phase {
		dy, index, dst := st.Floats(s.In[0]), work.Value[int32](st, s.In[1]), st.Floats(s.Out)
		places := newPlaces(o.Extent, len(index))
		steps := 1 + len(index)/o.Extent
		a, b := p.from[o.Axis], p.to[o.Axis]
		return []work.Phase{
			{Blocks: 1, Run: func(int, int) { places.sort(index) }},
			p.inBlocks(o.Extent, steps, func(first, end int) {
				p.each(func(from, to int) {
					for i := first; i < end; i++ {
						sum := 0.0
						for _, k := range places.of(i) {
							sum += float64(dy[to+k*b])
						}
						dst[from+i*a] = float32(sum)
					}
				})
			}),
		}
	}), nil
}

// places are the places of each number in a list of numbers.
type places struct {
	ends []int // those of number i are in list from ends[i] to before ends[i+1]
	list []int
}

// newPlaces is for lists of n numbers, of which those from 0 to before extent count.
func newPlaces(extent, n int) *places { return &places{make([]int, extent+2), make([]int, n)} }

// sort finds the places in index, in ascending order.
func (p *places) sort(index []int32) {
	clear(p.ends)
	counts := func(i int32) bool { return i >= 0 && int(i)+2 < len(p.ends) }
	for _, i := range index {
		if counts(i) {
			p.ends[i+2]++
		}
	}
	for i := 2; i < len(p.ends); i++ {
		p.ends[i] += p.ends[i-1]
	}
	for k, i := range index {
		if counts(i) {
			p.list[p.ends[i+1]] = k
			p.ends[i+1]++
		}
	}
}

// of lists the places of i.
func (p *places) of(i int) []int { return p.list[p.ends[i]:p.ends[i+1]] }
