package network

import (
	"cmp"
	"fmt"
	"math"

	"onlinerna/data"
	"onlinerna/nn/op"
)

// Meaning is that of a net's outputs.
type Meaning struct {
	Task data.Task // empty: data.Classification
	// Thresholds are, for a multi-label net, the probabilities of classes from which an image shows them; empty: 0.5.
	Thresholds []float64
	// Offset and Scale are a regression's: a number is Offset + Scale·output. Empty: the output.
	Offset, Scale []float64
}

// Classifies reports whether each image shows one class.
func (h *Meaning) Classifies() bool { return h.Task == "" || h.Task == data.Classification }

// task is Task with its default.
func (h *Meaning) task() data.Task { return cmp.Or(h.Task, data.Classification) }

// Values converts an image's outputs to the probabilities of the classes, which sum to 1 unless the net is multi-label,
// or to the numbers of a regression.
func (h *Meaning) Values(outputs []float32) []float64 {
	switch h.Task {
	case data.MultiLabel:
		p := make([]float64, len(outputs))
		for k, z := range outputs {
			p[k] = 1 / (1 + math.Exp(-float64(z)))
		}
		return p
	case data.Regression:
		x := make([]float64, len(outputs))
		for k, z := range outputs {
			x[k] = float64(z)
			if k < len(h.Scale) {
				x[k] = h.Offset[k] + h.Scale[k]*float64(z)
			}
		}
		return x
	}
	return Softmax(outputs)
}

// Threshold is the probability from which an image shows a class.
func (h *Meaning) Threshold(class int) float64 {
	if class < len(h.Thresholds) {
		return h.Thresholds[class]
	}
	return 0.5
}

// normal is a target as the net learns it.
func (h *Meaning) normal(k int, t float64) float64 {
	if h.Task != data.Regression || k >= len(h.Scale) {
		return t
	}
	return (t - h.Offset[k]) / h.Scale[k]
}

// Check returns an error if the meaning does not suit a number of outputs.
func (h *Meaning) Check(outputs int) error {
	for _, list := range [][]float64{h.Thresholds, h.Offset, h.Scale} {
		if len(list) > outputs {
			return fmt.Errorf("%d numbers of the task %s for %d outputs", len(list), h.Task, outputs)
		}
	}
	if len(h.Offset) != len(h.Scale) {
		return fmt.Errorf("%d offsets and %d scales of the outputs", len(h.Offset), len(h.Scale))
	}
	return nil
}

// loss is the loss of an image by its targets, in float64: the mean over targets of the binary cross-entropy, or of the
// square of the error on the scale of the outputs.
func (h *Meaning) loss(outputs []float32, targets func(k int) float64, width int) float64 {
	sum := 0.
	for k := range width {
		if h.Task == data.MultiLabel {
			sum += op.BinaryLoss(float64(outputs[k]), targets(k))
			continue
		}
		e := float64(outputs[k]) - h.normal(k, targets(k))
		sum += e * e
	}
	return sum / float64(width)
}

// BatchLosses returns the losses of a batch's images by the task, given their outputs.
func (n *Network) BatchLosses(b *data.Batch, outputs []float32) []float64 {
	k := len(outputs) / b.N
	list := make([]float64, b.N)
	for i := range b.N {
		row := outputs[i*k : (i+1)*k]
		if n.Meaning.Classifies() {
			list[i] = crossEntropy(row, int(b.Labels[i]))
			continue
		}
		width := len(b.Targets) / b.N
		list[i] = n.Meaning.loss(row, func(k int) float64 { return float64(b.Targets[i*width+k]) }, width)
	}
	return list
}
