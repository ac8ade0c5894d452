package rows

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func softmax(s work.Step, _ op.Softmax) (*work.Lowering, error) {
	_, width, _ := matrix(s.OutType())
	return byRows(s, s.In[:1], func(st *work.Storage, k *vec.Set) func(worker, lo, hi, count int) {
		x, dst := st.Pieces(s.In[0]), st.Pieces(s.Out)
		return func(worker, lo, hi, count int) {
			k.Softmax(dst.To(worker, lo, hi), x.Read(worker, lo, hi), nil, 1, width, count)
			dst.Done(worker, lo, hi)
		}
	})
}

func softmaxGrad(s work.Step, _ op.SoftmaxGrad) (*work.Lowering, error) {
	_, width, _ := matrix(s.OutType())
	return byRows(s, s.In[:2], func(st *work.Storage, k *vec.Set) func(worker, lo, hi, count int) {
		y, dy, dst := st.Pieces(s.In[0]), st.Pieces(s.In[1]), st.Pieces(s.Out)
		return func(worker, lo, hi, count int) {
			k.SoftmaxGrad(dst.To(worker, lo, hi), y.Read(worker, lo, hi), dy.Read(worker, lo, hi), nil, 1, width, count)
			dst.Done(worker, lo, hi)
		}
	})
}
