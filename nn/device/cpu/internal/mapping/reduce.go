package mapping

import (
	"math"
	"slices"

	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// reduce sums in float64. Workers share the elements of the result; one worker sums each, in storage order: alone, or
// beside those that are next to it in memory.
func reduce(s work.Step, o op.Reduce) (*work.Lowering, error) {
	shape, x, y := s.InType(0).Shape, work.Strides(s.InValue(0)), work.DataStrides(s.OutType())
	var kept, summed []work.Side
	for i, n := range shape {
		if n == 1 {
			continue
		}
		if a := (work.Side{N: n, Src: x[i], Dst: y[i]}); slices.Contains(o.Axes, i) {
			summed = append(summed, a)
		} else {
			kept = append(kept, a)
		}
	}
	for _, list := range [][]work.Side{kept, summed} {
		slices.SortFunc(list, func(a, b work.Side) int { return b.Src - a.Src })
	}
	if n := len(kept) - 1; n >= 0 && len(summed) > 0 && kept[n].Src == 1 && kept[n].Dst == 1 {
		return reduceRows(s, o, kept[:n], summed, kept[n].N), nil
	}
	count := o.Count(shape)
	rows := s.OutType().Shape.Size()
	each := max(1, work.ElementBlock/count)
	return work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{{Blocks: work.Ceil(rows, each), Run: func(_, block int) {
			for i := block * each; i < min((block+1)*each, rows); i++ {
				from, to := work.Places(kept, i)
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

// reduceRows combines rows of width elements, a row of the result for each element of the other kept axes.
func reduceRows(s work.Step, o op.Reduce, kept, summed []work.Side, width int) *work.Lowering {
	tile := 1 << 10
	if few := 8; extent(kept)*work.Ceil(width, tile) < few { // for workers to share
		tile = 64
	}
	outer, last := summed[:len(summed)-1], summed[len(summed)-1]
	rows, times, tiles := extent(kept), extent(outer), work.Ceil(width, tile)
	each := max(1, work.ElementBlock/(min(width, tile)*times*last.N))
	size, divisor := vec.Padded(min(width, tile)), 1.0
	switch o.By {
	case op.Max:
		size = 0
	case op.Mean:
		divisor = float64(times * last.N)
	}
	var r work.Room
	part := r.Doubles(rows * tiles * size)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst, all, k := st.Floats(s.In[0]), st.Floats(s.Out), st.Scratch64(part), vec.For(st.Level)
		return []work.Phase{{Blocks: work.Ceil(rows*tiles, each), Run: func(_, block int) {
			for i := block * each; i < min((block+1)*each, rows*tiles); i++ {
				from, to := work.Places(kept, i/tiles)
				lo := i % tiles * tile
				row, sums := dst[to+lo:][:min(tile, width-lo)], all[i*size:][:size]
				if o.By == op.Max {
					k.Fill(row, float32(math.Inf(-1)))
				}
				clear(sums)
				for t := range times {
					at, _ := work.Places(outer, t)
					x := src[from+lo+at:]
					if o.By == op.Max {
						raise(row, x, last)
					} else {
						k.Sums(sums, x, len(row), last.Src, last.N)
					}
				}
				for c := range sums[:min(size, len(row))] {
					row[c] = float32(sums[c] / divisor)
				}
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l
}

// extent is the number of elements of axes.
func extent(axes []work.Side) int {
	n := 1
	for _, a := range axes {
		n *= a.N
	}
	return n
}

// raise sets the elements of row to their maxima with those of rows of x, or to NaN.
func raise(row, x []float32, rows work.Side) {
	for i := range rows.N {
		for c, v := range x[i*rows.Src:][:len(row)] {
			row[c] = max(row[c], v)
		}
	}
}

// total adds elements to sum.
func total(x []float32, from int, axes []work.Side, sum float64) float64 {
	switch {
	case len(axes) == 0:
		return sum + float64(x[from])
	case len(axes) == 1 && axes[0].Src == 1:
		return sum + sumOf(x[from:][:axes[0].N])
	}
	for i := range axes[0].N {
		sum = total(x, from+i*axes[0].Src, axes[1:], sum)
	}
	return sum
}

// largest is the maximum of top and the elements, or NaN.
func largest(x []float32, from int, axes []work.Side, top float64) float64 {
	if len(axes) == 0 {
		return max(top, float64(x[from]))
	}
	for i := range axes[0].N {
		top = largest(x, from+i*axes[0].Src, axes[1:], top)
	}
	return top
}
