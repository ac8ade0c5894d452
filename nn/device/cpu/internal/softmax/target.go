package softmax

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func targetLoss(s work.Step, o op.TargetLoss) (*work.Lowering, error) {
	if err := work.Expect(s, device.Data, device.Data); err != nil {
		return nil, err
	}
	rows, classes := s.InType(0).Shape[0], s.InType(0).Shape[1]
	size := rowBlock(classes)
	count := float64(rows)
	if o.Binary {
		count *= float64(classes)
	}
	var r work.Room
	lossPart := r.Doubles(rows)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		logits, targets := st.Floats(s.In[0]), st.Floats(s.In[1])
		losses, dst := st.Scratch64(lossPart), st.Floats(s.Out)
		return []work.Phase{
			{Blocks: work.Ceil(rows, size), Run: func(_, block int) {
				for i := block * size; i < min((block+1)*size, rows); i++ {
					losses[i] = rowLoss(o, logits[i*classes:][:classes], targets[i*classes:][:classes])
				}
			}},
			{Blocks: 1, Run: func(int, int) {
				sum := 0.0
				for _, v := range losses {
					sum += v
				}
				dst[0] = float32(sum / count)
			}},
		}
	})
	l.Workspace = r.Bytes
	return l, nil
}

func rowLoss(o op.TargetLoss, x, t []float32) (sum float64) {
	if o.Binary {
		for k, v := range x {
			sum += op.BinaryLoss(float64(v), float64(t[k]))
		}
		return sum
	}
	lse := logSumExp(x)
	for k, v := range x {
		if t[k] != 0 {
			sum += float64(t[k]) * (lse - float64(v))
		}
	}
	return sum
}

func targetLossGrad(s work.Step, o op.TargetLossGrad, workers int) (*work.Lowering, error) {
	if err := work.Expect(s, device.Data, device.Data, device.Data); err != nil {
		return nil, err
	}
	rows, classes := s.InType(0).Shape[0], s.InType(0).Shape[1]
	size := rowBlock(classes)
	count := float64(rows)
	if o.Binary {
		count *= float64(classes)
	}
	var r work.Room
	powersPart := r.Doubles(workers * classes)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		logits, targets, dloss := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2])
		dst, powers := st.Floats(s.Out), st.Scratch64(powersPart)
		return []work.Phase{{Blocks: work.Ceil(rows, size), Run: func(worker, block int) {
			p, scale := powers[worker*classes:][:classes], float64(dloss[0])/count
			for i := block * size; i < min((block+1)*size, rows); i++ {
				x, t, dx := logits[i*classes:][:classes], targets[i*classes:][:classes], dst[i*classes:][:classes]
				if o.Binary {
					for k, v := range x {
						dx[k] = float32(scale * (1/(1+math.Exp(-float64(v))) - float64(t[k])))
					}
					continue
				}
				sum := 0.0
				for _, v := range t {
					sum += float64(v)
				}
				softmax(p, x)
				for k, v := range p {
					dx[k] = float32(scale * (sum*v - float64(t[k])))
				}
			}
		}}}
	})
	l.Workspace = r.Bytes
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}
