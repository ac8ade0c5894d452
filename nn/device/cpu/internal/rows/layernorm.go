package rows

import (
	"math"

	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// moments returns the mean of a row and 1/√(variance + eps). The sums are float64, so that the square of a mean much
// larger than the standard deviation does not hide the variance.
func (k summer) moments(x []float32, eps float64) (mean, inverse float64) {
	var sums, squares [lanes]float64
	n := len(x) / lanes
	if n > 0 {
		k.Moments(sums[:], squares[:], x, lanes, lanes, n)
	}
	square := 0.0
	for i, v := range sums {
		mean += v
		square += squares[i]
	}
	for _, v := range x[n*lanes:] {
		mean += float64(v)
		square += float64(v) * float64(v)
	}
	count := float64(len(x))
	mean /= count
	return mean, 1 / math.Sqrt(max(square/count-float64(mean*mean), 0)+eps)
}

func layerNorm(s work.Step, o op.LayerNorm) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := summer{vec.For(st.Level)}
		x, scale, bias, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.Out)
		return []work.Phase{eachRow(s.OutType(), func(lo, hi int) {
			row, y := x[lo:hi], dst[lo:hi]
			m, inv := k.moments(row, o.Eps)
			mean, inverse := float32(m), float32(inv)
			scale, bias := scale[:len(row)], bias[:len(row)]
			for j, v := range row {
				y[j] = float32((v-mean)*inverse*scale[j]) + bias[j]
			}
		})}
	})
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}

func layerNormGradInput(s work.Step, o op.LayerNormGradInput) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := summer{vec.For(st.Level)}
		x, scale, dy, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.Out)
		return []work.Phase{eachRow(s.OutType(), func(lo, hi int) {
			row, g, dx := x[lo:hi], dy[lo:hi], dst[lo:hi]
			mean, inverse := k.moments(row, o.Eps)
			sum, mixed := 0.0, 0.0
			for j, v := range row {
				a := float64(g[j]) * float64(scale[j])
				sum += a
				mixed += a * (float64(v) - mean)
			}
			n := float64(len(row))
			sum, mixed = sum/n, mixed*inverse*inverse/n
			m, inv, a, b := float32(mean), float32(inverse), float32(sum), float32(mixed)
			for j, v := range row {
				dx[j] = (float32(g[j]*scale[j]) - a - float32((v-m)*b)) * inv // float32: no platform fuses them
			}
		})}
	})
	l.Results[0].Over = []int{s.In[0], s.In[2]}
	return l, nil
}

// layerNormGradScale sums over rows: first within parts of the rows, then over the parts in order. The number of parts
// does not depend on the workers.
func layerNormGradScale(s work.Step, o op.LayerNormGradScale, workers int) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	rows, width, each := matrix(s.InType(0))
	const most = 64
	each = max(each, work.Ceil(rows, most))
	parts := work.Ceil(rows, each)
	var r work.Room
	room := r.Doubles(parts * width)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := summer{vec.For(st.Level)}
		x, dy, dst, sums := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.Out), st.Scratch64(room)
		columns := max(1, work.Ceil(width, workers))
		return []work.Phase{
			{Blocks: parts, Run: func(_, part int) {
				sum := sums[part*width:][:width]
				clear(sum)
				for i := part * each; i < min((part+1)*each, rows); i++ {
					row, g := x[i*width:][:width], dy[i*width:][:width]
					mean, inverse := k.moments(row, o.Eps)
					for j, v := range row {
						sum[j] += float64(g[j]) * (float64(v) - mean) * inverse
					}
				}
			}},
			{Blocks: work.Ceil(width, columns), Run: func(_, block int) {
				for j := block * columns; j < min((block+1)*columns, width); j++ {
					sum := 0.0
					for p := range parts {
						sum += sums[p*width+j]
					}
					dst[j] = float32(sum)
				}
			}},
		}
	})
	l.Workspace = r.Bytes
	return l, nil
}
