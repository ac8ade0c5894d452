package move

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// picking is a move of runs of adjacent elements, in lines along an axis, from x.
type picking struct {
	lines, run int
	sides      []work.Side // of lines
	from, to   int         // strides along the axis of x and of the picked elements
}

// newPicking takes the strides of both and the shape of x.
func newPicking(x, y []int, shape op.Shape, axis int) *picking {
	p := &picking{lines: 1, run: 1, from: x[axis], to: y[axis]}
	for d, n := range shape {
		if d != axis && n > 1 {
			p.sides = append(p.sides, work.Side{N: n, Src: x[d], Dst: y[d]})
			p.lines *= n
		}
	}
	slices.SortFunc(p.sides, func(a, b work.Side) int { return b.Src - a.Src })
	for len(p.sides) > 0 {
		last := p.sides[len(p.sides)-1]
		if last.Src != p.run || last.Dst != p.run {
			break
		}
		p.sides = p.sides[:len(p.sides)-1]
		p.run, p.lines = p.run*last.N, p.lines/last.N
	}
	return p
}

// inBlocks is a phase that calls f for each line with ranges of n elements along the axis. f takes the given number of
// steps for each; a block is about work.ElementBlock steps.
func (p *picking) inBlocks(n, steps int, f func(from, to, first, end int)) work.Phase {
	parts, lines := 1, max(1, work.ElementBlock/max(1, n*steps*p.run))
	each := n
	if few := 64; p.lines < few {
		lines, each = p.lines, max(1, work.ElementBlock/max(1, p.lines*steps*p.run))
		parts = work.Ceil(n, each)
	}
	return work.Phase{Blocks: work.Ceil(p.lines, lines) * parts, Run: func(_, block int) {
		first := block % parts * each
		for i := block / parts * lines; i < min((block/parts+1)*lines, p.lines); i++ {
			from, to := work.Places(p.sides, i)
			f(from, to, first, min(first+each, n))
		}
	}}
}

func gather(s work.Step, o op.Gather) (*work.Lowering, error) {
	p := newPicking(work.Strides(s.InValue(0)), work.DataStrides(s.OutType()), s.InType(0).Shape, o.Axis)
	extent := s.InType(0).Shape[o.Axis]
	return work.Data(s, func(st *work.Storage) []work.Phase {
		x, index, dst := st.Floats(s.In[0]), work.Value[int32](st, s.In[1]), st.Floats(s.Out)
		return []work.Phase{p.inBlocks(len(index), 1, func(from, to, first, end int) {
			for k := first; k < end; k++ {
				y := dst[to+k*p.to:][:p.run]
				switch i := int(index[k]); {
				case i < 0 || i >= extent:
					clear(y)
				case p.run == 1:
					y[0] = x[from+i*p.from]
				default:
					copy(y, x[from+i*p.from:])
				}
			}
		})}
	}), nil
}

// gatherGrad sums in float64, one element along the axis after the other: indices may repeat.
func gatherGrad(s work.Step, o op.GatherGrad) (*work.Lowering, error) {
	p := newPicking(work.DataStrides(s.OutType()), work.Strides(s.InValue(0)), s.OutType().Shape, o.Axis)
	return work.Data(s, func(st *work.Storage) []work.Phase {
		dy, index, dst := st.Floats(s.In[0]), work.Value[int32](st, s.In[1]), st.Floats(s.Out)
		places := newPlaces(o.Extent, len(index))
		return []work.Phase{
			{Blocks: 1, Run: func(int, int) { places.sort(index) }},
			p.inBlocks(o.Extent, 1+len(index)/o.Extent, func(from, to, first, end int) {
				for i := first; i < end; i++ {
					add(dst[from+i*p.from:][:p.run], dy[to:], places.of(i), p.to)
				}
			}),
		}
	}), nil
}

// add sets y to the sum of the runs of x at places of the given stride.
func add(y, x []float32, places []int, stride int) {
	const tile = 64
	var sums [tile]float64
	for lo := 0; lo < len(y); lo += tile {
		y := y[lo:min(lo+tile, len(y))]
		sums := sums[:len(y)]
		clear(sums)
		for _, k := range places {
			for i, v := range x[k*stride+lo:][:len(y)] {
				sums[i] += float64(v)
			}
		}
		for i, v := range sums {
			y[i] = float32(v)
		}
	}
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
