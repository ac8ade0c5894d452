package rows

import (
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func softmax(s work.Step, _ op.Softmax, workers int) (*work.Lowering, error) {
	return eachOf(s, workers, []int{s.In[0]}, func(st *work.Storage) func(k *room, lo, hi int) {
		x, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		return func(k *room, lo, hi int) { k.softmax(dst[lo:hi], x[lo:hi]) }
	})
}

// softmax sets y to the softmax of a row.
func (k *room) softmax(y, x []float32) {
	k.affine(y, x, float64(k.largest(x)), 1)
	k.Exp(y, y)
	k.Scale(y, y, k.copy(0, 1/k.sum(y)))
}

func softmaxGrad(s work.Step, _ op.SoftmaxGrad, workers int) (*work.Lowering, error) {
	return eachOf(s, workers, s.In[:2], func(st *work.Storage) func(k *room, lo, hi int) {
		y, dy, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.Out)
		return func(k *room, lo, hi int) {
			dot, _ := k.dots(y[lo:hi], dy[lo:hi], 0)
			row := k.row[:hi-lo]
			k.affine(row, dy[lo:hi], dot, 1)
			k.Mul(dst[lo:hi], y[lo:hi], row)
		}
	})
}
