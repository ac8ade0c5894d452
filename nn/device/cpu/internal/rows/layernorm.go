package rows

import (
	"math"

	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// moments returns the mean of a row and 1/√(variance + eps). The sums are float64, so that the square of a mean much
// larger than the standard deviation does not hide the variance.
func (k *room) moments(x []float32, eps float64) (mean, inverse float64) {
	k.columns(len(x), func(at, width, rows int) { k.Moments(k.first, k.second, x[at:], width, width, rows) })
	count := float64(len(x))
	mean = total(k.first) / count
	return mean, 1 / math.Sqrt(max(total(k.second)/count-float64(mean*mean), 0)+eps)
}

func layerNorm(s work.Step, o op.LayerNorm, workers int) (*work.Lowering, error) {
	return eachOf(s, workers, []int{s.In[0]}, func(st *work.Storage) func(k *room, lo, hi int) {
		x, scale, bias, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.Out)
		return func(k *room, lo, hi int) {
			y := dst[lo:hi]
			mean, inverse := k.moments(x[lo:hi], o.Eps)
			k.affine(y, x[lo:hi], mean, inverse)
			k.Mul(y, y, scale)
			k.Add(y, y, bias)
		}
	})
}

func layerNormGradInput(s work.Step, o op.LayerNormGradInput, workers int) (*work.Lowering, error) {
	return eachOf(s, workers, []int{s.In[0], s.In[2]}, func(st *work.Storage) func(k *room, lo, hi int) {
		x, scale, dy, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.Out)
		return func(k *room, lo, hi int) {
			row, g, n := x[lo:hi], k.row[:hi-lo], float64(hi-lo)
			mean, inverse := k.moments(row, o.Eps)
			k.Mul(g, dy[lo:hi], scale)
			mixed, sum := k.dots(row, g, mean)
			mixed += sum * (float64(float32(mean)) - mean)
			k.NormalizeGrad(dst[lo:hi], row, g, k.copy(0, mean), k.copy(1, inverse), k.copy(2, sum/n),
				k.copy(3, mixed*inverse*inverse/n))
		}
	})
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
	stride := vec.Padded(width)
	places, all := rooms(&r, workers, width), r.Doubles(parts*stride)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		x, dy, dst, sums := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.Out), st.Scratch64(all)
		rooms := places.bind(st)
		columns := max(1, work.Ceil(width, workers))
		return []work.Phase{
			{Blocks: parts, Run: func(worker, part int) {
				k := &rooms[worker]
				sum := sums[part*stride:][:stride]
				clear(sum)
				for i := part * each; i < min((part+1)*each, rows); i++ {
					row, g := x[i*width:][:width], dy[i*width:][:width]
					mean, inverse := k.moments(row, o.Eps)
					k.affine(k.row, row, mean, inverse)
					k.Mul(k.row, k.row, g)
					k.Sums(sum, k.row, width, width, 1)
				}
			}},
			{Blocks: work.Ceil(width, columns), Run: func(_, block int) {
				for j := block * columns; j < min((block+1)*columns, width); j++ {
					sum := 0.0
					for p := range parts {
						sum += sums[p*stride+j]
					}
					dst[j] = float32(sum)
				}
			}},
		}
	})
	l.Workspace = r.Bytes
	return l, nil
}
