package mapping

import (
	"math"
	"slices"

	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// reduce sums in float64. Workers share the elements of the result; one worker sums each, in storage order.
func reduce(s work.Step, o op.Reduce) (*work.Lowering, error) {
	shape, x, y := s.InType(0).Shape, work.Strides(s.InValue(0)), work.DataStrides(s.OutType())
	var kept, summed []axis
	for i, n := range shape {
		if n == 1 {
			continue
		}
		if a := (axis{n, x[i], y[i]}); slices.Contains(o.Axes, i) {
			summed = append(summed, a)
		} else {
			kept = append(kept, a)
		}
	}
	for _, list := range [][]axis{kept, summed} {
		slices.SortFunc(list, func(a, b axis) int { return b.x - a.x })
	}
	count := o.Count(shape)
	rows := s.OutType().Shape.Size()
	each := max(1, work.ElementBlock/count)
	return work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{{Blocks: work.Ceil(rows, each), Run: func(_, block int) {
			for i := block * each; i < min((block+1)*each, rows); i++ {
				from, to, rest := 0, 0, i
				for k := len(kept) - 1; k >= 0; k-- {
					a := kept[k]
					from, to, rest = from+rest%a.n*a.x, to+rest%a.n*a.y, rest/a.n
				}
				switch o.By {
				case op.Max:
					dst[to] = float32(largest(src, from, summed, math.Inf(-1)))
				case op.Mean:
					dst[to] = float32(total(src, from, summed, 0) / float64(count))
				default:
					dst[to] = float32(total(src, from, summed, 0))
				}
			}
		}}}
	}), nil
}

// axis is a dimension with the strides of operand and result.
type axis struct{ n, x, y int }

// total adds elements to sum.
func total(x []float32, from int, axes []axis, sum float64) float64 {
	switch {
	case len(axes) == 0:
		return sum + float64(x[from])
	case len(axes) == 1 && axes[0].x == 1:
		return sum + sumOf(x[from:][:axes[0].n])
	}
	for i := range axes[0].n {
		sum = total(x, from+i*axes[0].x, axes[1:], sum)
	}
	return sum
}

// largest is the maximum of top and the elements, or NaN.
func largest(x []float32, from int, axes []axis, top float64) float64 {
	if len(axes) == 0 {
		return max(top, float64(x[from]))
	}
	for i := range axes[0].n {
		top = largest(x, from+i*axes[0].x, axes[1:], top)
	}
	return top
}
