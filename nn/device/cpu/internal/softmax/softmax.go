// Package softmax has the loss of logits, its gradient and the counts of correct predictions.
package softmax

import (
	"math"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops for the given number of workers.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		lower.Alone(loss), lower.Alone(score),
		lower.Alone(func(s work.Step, o op.SoftmaxCrossEntropyGrad) (*work.Lowering, error) {
			return lossGrad(s, o, workers)
		}),
		lower.Alone(targetLoss),
		lower.Alone(func(s work.Step, o op.TargetLossGrad) (*work.Lowering, error) {
			return targetLossGrad(s, o, workers)
		}),
	}
}

// rowBlock is the number of rows of logits in a block: enough exponentials to be worth another worker.
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
	l := (1 - smoothing) * (lse - float64(x[label]))
	if smoothing != 0 {
		sum := 0.0
		for _, v := range x {
			sum += lse - float64(v)
		}
		l += smoothing / float64(len(x)) * sum
	}
	return l
}

// counted reports whether a label is one of the classes; rows with other labels are left out.
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

func loss(s work.Step, o op.SoftmaxCrossEntropy) (*work.Lowering, error) {
	if err := work.Expect(s, device.Data, device.Data); err != nil {
		return nil, err
	}
	rows, classes := s.InType(0).Shape[0], s.InType(0).Shape[1]
	size := rowBlock(classes)
	var r work.Room
	lossPart := r.Doubles(rows)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		logits, labels := st.Floats(s.In[0]), work.Value[int32](st, s.In[1])
		losses, dst := st.Scratch64(lossPart), st.Floats(s.Out)
		return []work.Phase{
			{Blocks: work.Ceil(rows, size), Run: func(_, block int) {
				for i := block * size; i < min((block+1)*size, rows); i++ {
					losses[i] = 0
					if y := labels[i]; counted(y, classes) {
						losses[i] = crossEntropy(logits[i*classes:][:classes], int(y), o.Smoothing)
					}
				}
			}},
			{Blocks: 1, Run: func(int, int) {
				sum := 0.0
				for _, v := range losses {
					sum += v
				}
				dst[0] = float32(sum / float64(max(1, countLabels(labels, classes))))
			}},
		}
	})
	l.Workspace = r.Bytes
	return l, nil
}

func lossGrad(s work.Step, o op.SoftmaxCrossEntropyGrad, workers int) (*work.Lowering, error) {
	if err := work.Expect(s, device.Data, device.Data, device.Data); err != nil {
		return nil, err
	}
	rows, classes := s.InType(0).Shape[0], s.InType(0).Shape[1]
	size := rowBlock(classes)
	var r work.Room
	powersPart := r.Doubles(workers * classes)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		logits, labels, dloss := st.Floats(s.In[0]), work.Value[int32](st, s.In[1]), st.Floats(s.In[2])
		dst, powers := st.Floats(s.Out), st.Scratch64(powersPart)
		scale := 0.0
		uniform := o.Smoothing / float64(classes)
		return []work.Phase{
			{Blocks: 1, Run: func(int, int) { scale = float64(dloss[0]) / float64(max(1, countLabels(labels, classes))) }},
			{Blocks: work.Ceil(rows, size), Run: func(worker, block int) {
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
	l.Workspace = r.Bytes
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}
