package cpu

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// rowBlock is how many rows of logits are one block: enough exponentials to be worth another worker.
func rowBlock(classes int) int { return max(1, 512/classes) }

// logSumExp is log Σ exp(x), in float64 and without overflow.
func logSumExp(x []float32) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, float64(v))
	}
	if math.IsInf(top, 0) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// softmax sets p to exp(x) / Σ exp(x), without overflow. With infinite x some of p are NaN.
func softmax(p []float64, x []float32) {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, float64(v))
	}
	sum := 0.0
	for k, v := range x {
		p[k] = math.Exp(float64(v) - top)
		sum += p[k]
	}
	if math.IsInf(top, 0) {
		return
	}
	for k := range p {
		p[k] /= sum
	}
}

// crossEntropy is the loss of a row of logits with the given label and label smoothing.
func crossEntropy(x []float32, label int, smoothing float64) float64 {
	lse := logSumExp(x)
	loss := (1 - smoothing) * (lse - float64(x[label]))
	if smoothing != 0 {
		sum := 0.0
		for _, v := range x {
			sum += lse - float64(v)
		}
		loss += smoothing / float64(len(x)) * sum
	}
	return loss
}

// counted says whether a label is one of the classes; rows with others are left out.
func counted(label int32, classes int) bool { return label >= 0 && int(label) < classes }

func countLabels(labels []int32, classes int) int {
	n := 0
	for _, y := range labels {
		if counted(y, classes) {
			n++
		}
	}
	return n
}

func lowerSoftmaxCrossEntropy(s step, o op.SoftmaxCrossEntropy) (*lowering, string) {
	if reason := s.expect(device.Data, device.Data); reason != "" {
		return nil, reason
	}
	rows, classes := s.in(0).Shape[0], s.in(0).Shape[1]
	size := rowBlock(classes)
	var r room
	lossPart := r.doubles(rows)
	l := s.data(func(st *storage) []phase {
		logits, labels := st.floats(s.In[0]), value[int32](st, s.In[1])
		losses, dst := st.scratch64(lossPart), st.floats(s.Out)
		return []phase{
			{ceil(rows, size), func(_, block int) {
				for i := block * size; i < min((block+1)*size, rows); i++ {
					losses[i] = 0
					if y := labels[i]; counted(y, classes) {
						losses[i] = crossEntropy(logits[i*classes:][:classes], int(y), o.Smoothing)
					}
				}
			}},
			{1, func(int, int) {
				sum := 0.0
				for _, v := range losses {
					sum += v
				}
				dst[0] = float32(sum / float64(max(1, countLabels(labels, classes))))
			}},
		}
	})
	l.workspace = r.bytes
	return l, ""
}

func lowerSoftmaxCrossEntropyGrad(s step, o op.SoftmaxCrossEntropyGrad) (*lowering, string) {
	if reason := s.expect(device.Data, device.Data, device.Data); reason != "" {
		return nil, reason
	}
	rows, classes := s.in(0).Shape[0], s.in(0).Shape[1]
	size := rowBlock(classes)
	var r room
	powersPart := r.doubles(s.pool.Workers() * classes)
	l := s.data(func(st *storage) []phase {
		logits, labels, dloss := st.floats(s.In[0]), value[int32](st, s.In[1]), st.floats(s.In[2])
		dst, powers := st.floats(s.Out), st.scratch64(powersPart)
		scale := 0.0
		uniform := o.Smoothing / float64(classes)
		return []phase{
			{1, func(int, int) { scale = float64(dloss[0]) / float64(max(1, countLabels(labels, classes))) }},
			{ceil(rows, size), func(worker, block int) {
				p := powers[worker*classes:][:classes]
				for i := block * size; i < min((block+1)*size, rows); i++ {
					x, dx := logits[i*classes:][:classes], dst[i*classes:][:classes]
					y := labels[i]
					if !counted(y, classes) {
						clear(dx)
						continue
					}
					softmax(p, x)
					for k, v := range p {
						dx[k] = float32((v - uniform) * scale)
					}
					dx[y] = float32((p[y] - uniform - (1 - o.Smoothing)) * scale)
				}
			}},
		}
	})
	l.workspace = r.bytes
	l.outputs[0].Over = s.over(0)
	return l, ""
}
