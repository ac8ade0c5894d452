package rows

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func softmax(s work.Step, _ op.Softmax) (*work.Lowering, error) {
	_, width, _ := matrix(s.OutType())
	return byRows(s, s.In[:1], func(st *work.Storage, k *vec.Set) func(lo, hi, count int) {
		x, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		return func(lo, hi, count int) { k.Softmax(dst[lo:hi], x[lo:hi], nil, 1, width, count) }
	})
}

func softmaxGrad(s work.Step, _ op.SoftmaxGrad) (*work.Lowering, error) {
	_, width, _ := matrix(s.OutType())
	return byRows(s, s.In[:2], func(st *work.Storage, k *vec.Set) func(lo, hi, count int) {
		y, dy, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.Out)
		return func(lo, hi, count int) { k.SoftmaxGrad(dst[lo:hi], y[lo:hi], dy[lo:hi], nil, 1, width, count) }
	})
}
