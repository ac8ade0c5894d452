package network

import (
	"math"
	"testing"

	"onlinerna/data"
	"onlinerna/nn/op"
)

// The expected losses are those of torch.nn.functional.cross_entropy with class weights and label smoothing, of timm's
// BinaryCrossEntropy, and of cross_entropy with timm's mixup_target, on the same logits.
func TestObjective(t *testing.T) {
	logits := op.Tensor{Shape: op.Shape{3, 3}, Data: []float32{1, 2, -1, .5, 0, 3, .2, -1, .4}}
	labels := []int32{1, 0, 2}
	other := []int32{2, 0, 1}
	for _, c := range []struct {
		name   string
		o      objective
		batch  data.Batch
		binary bool
		want   float64
	}{
		{"weights and smoothing", objective{.1, 0, []float64{1, 3, .5}, nil}, data.Batch{N: 3, Labels: labels}, false,
			0.982946245809966},
		{"threshold", objective{0, .2, nil, nil}, data.Batch{N: 3, Labels: labels, Other: other, Share: .7}, true,
			1.0659643411636353},
		{"binary, smoothed", objective{.1, 0, nil, nil}, data.Batch{N: 3, Labels: labels}, true, 0.857075412410331},
		{"mixed and smoothed", objective{.1, 0, nil, nil}, data.Batch{N: 3, Labels: labels, Other: other, Share: .7}, false,
			1.6687246539695544},
	} {
		got := op.New(op.T(op.Float32))
		targets := op.Tensor{Shape: op.Shape{3, 3}, Data: c.o.targets(nil, &c.batch, 3)}
		if err := (op.TargetLoss{Binary: c.binary}).Run(got, logits, targets); err != nil {
			t.Fatal(err)
		}
		if v := float64(got.Data.([]float32)[0]); math.Abs(v-c.want) > 2e-7 {
			t.Errorf("%s: loss %.9g, want %.9g", c.name, v, c.want)
		}
	}
}
