package softmax

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func score(s work.Step, _ op.Score) (*work.Lowering, error) {
	if err := work.Expect(s, device.Data, device.Data); err != nil {
		return nil, err
	}
	rows, classes := s.InType(0).Shape[0], s.InType(0).Shape[1]
	size := rowBlock(classes)
	var r work.Room
	scorePart := r.Doubles(3 * rows)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		logits, labels := st.Floats(s.In[0]), work.Value[int32](st, s.In[1])
		scores, dst := st.Scratch64(scorePart), st.Floats(s.Out)
		return []work.Phase{
			{Blocks: work.Ceil(rows, size), Run: func(_, block int) {
				for i := block * size; i < min((block+1)*size, rows); i++ {
					score := scores[3*i:][:3]
					clear(score)
					y := labels[i]
					if !counted(y, classes) {
						continue
					}
					x := logits[i*classes:][:classes]
					score[0] = crossEntropy(x, int(y), 0)
					ahead, ok := rank(x, int(y))
					if ok && ahead < 1 {
						score[1] = 1
					}
					if ok && ahead < 5 {
						score[2] = 1
					}
				}
			}},
			{Blocks: 1, Run: func(int, int) {
				var sum [3]float64
				for i, v := range scores {
					sum[i%3] += v
				}
				for i, v := range sum {
					dst[i] = float32(v)
				}
			}},
		}
	})
	l.Workspace = r.Bytes
	return l, nil
}

// rank is the number of logits ranked before the label's: larger ones, and equal ones with a smaller index. It is
// unknown if one is NaN.
func rank(x []float32, label int) (ahead int, ok bool) {
	right := x[label]
	for k, v := range x {
		if v != v {
			return 0, false
		}
		if v > right || v == right && k < label {
			ahead++
		}
	}
	return ahead, true
}
