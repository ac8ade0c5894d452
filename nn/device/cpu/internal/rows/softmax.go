package rows

import (
	"math"

	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func softmax(s work.Step, _ op.Softmax) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := summer{vec.For(st.Level)}
		x, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{eachRow(s.OutType(), func(lo, hi int) { k.softmax(dst[lo:hi], x[lo:hi]) })}
	})
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}

// softmax sets y to the softmax of a row.
func (k summer) softmax(y, x []float32) {
	top := float32(math.Inf(-1))
	for _, v := range x {
		top = max(top, v)
	}
	for j, v := range x {
		y[j] = v - top
	}
	k.Exp(y, y)
	scale := float32(1 / k.sum(y))
	for j := range y {
		y[j] *= scale
	}
}

func softmaxGrad(s work.Step, _ op.SoftmaxGrad) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		y, dy, dst := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.Out)
		return []work.Phase{eachRow(s.OutType(), func(lo, hi int) {
			row, g, dx := y[lo:hi], dy[lo:hi], dst[lo:hi]
			sum := float32(dot(row, g))
			for j, v := range row {
				dx[j] = v * (g[j] - sum)
			}
		})}
	})
	l.Results[0].Over = []int{s.In[0], s.In[1]}
	return l, nil
}
