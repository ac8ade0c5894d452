package cpu

import "onlinerna/nn/device"

func lowerScore(s step) (*lowering, string) {
	if reason := s.expect(device.Data, device.Data); reason != "" {
		return nil, reason
	}
	rows, classes := s.in(0).Shape[0], s.in(0).Shape[1]
	size := rowBlock(classes)
	var r room
	scorePart := r.doubles(3 * rows)
	l := s.data(func(st *storage) []phase {
		logits, labels := st.floats(s.In[0]), value[int32](st, s.In[1])
		scores, dst := st.scratch64(scorePart), st.floats(s.Out)
		return []phase{
			{ceil(rows, size), func(_, block int) {
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
			{1, func(int, int) {
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
	l.workspace = r.bytes
	return l, ""
}

// rank is how many logits come before that of the label: larger ones, and equal ones with a smaller index. It
// is not known where one is NaN.
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
