package op

import (
	"fmt"
	"math"
)

// SoftmaxCrossEntropy is the mean over images of the cross-entropy between softmax(logits [N,K]) and the labels [N],
// int32. With label smoothing ε the target is 1−ε at the label plus ε/K everywhere. Images whose label lies outside
// 0 … K−1 do not count; if none counts the loss is 0.
type SoftmaxCrossEntropy struct {
	Smoothing float64 // ε, in [0,1)
}

// Kind is "softmax_cross_entropy".
func (SoftmaxCrossEntropy) Kind() string { return "softmax_cross_entropy" }

func (o SoftmaxCrossEntropy) String() string {
	return fmt.Sprintf("softmax_cross_entropy{smoothing %g}", o.Smoothing)
}

// Infer gives a scalar.
func (o SoftmaxCrossEntropy) Infer(in ...Type) (Type, error) {
	dt, err := checkLabels(o, in)
	if err == nil {
		err = checkSmoothing(o, in, o.Smoothing)
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt), nil
}

// checkLabels checks logits, labels and further operands.
func checkLabels(o Op, in []Type, rest ...operand) (DType, error) {
	dt, err := check(o, in, append([]operand{{"logits", 2, float}, {"labels", 1, integer}}, rest...)...)
	if err == nil && in[0].Shape[0] != in[1].Shape[0] {
		err = wrong(o, in, "%d rows of logits, %d labels", in[0].Shape[0], in[1].Shape[0])
	}
	return dt, err
}

func checkSmoothing(o Op, in []Type, smoothing float64) error {
	if !(smoothing >= 0 && smoothing < 1) {
		return wrong(o, in, "smoothing must lie in [0,1)")
	}
	return nil
}

// Gradients: for the logits only.
func (o SoftmaxCrossEntropy) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(SoftmaxCrossEntropyGrad{o.Smoothing}, Leaf(0), Leaf(1), Leaf(ResultGrad)), nil}, nil
}

// Run computes the loss.
func (o SoftmaxCrossEntropy) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, crossEntropy[float32], crossEntropy[float64])
}

func crossEntropy[T element](o SoftmaxCrossEntropy, out Tensor, in []Tensor) {
	sum, count := 0.0, 0
	eachLabelled(in, func(_, label int, logits []T) {
		top, lse := logSumExp(logits)
		loss := (1 - o.Smoothing) * (lse - (float64(logits[label]) - top))
		if o.Smoothing > 0 {
			mean := 0.0
			for _, v := range logits {
				mean += lse - (float64(v) - top)
			}
			loss += o.Smoothing * mean / float64(len(logits))
		}
		sum += loss
		count++
	})
	vec[T](out)[0] = T(sum / float64(max(count, 1)))
}

// eachLabelled calls fn for every image whose label is one.
func eachLabelled[T element](in []Tensor, fn func(n, label int, logits []T)) {
	x, k := vec[T](in[0]), in[0].Shape[1]
	for n, l := range in[1].Data.([]int32) {
		if l >= 0 && int(l) < k {
			fn(n, int(l), x[n*k:][:k])
		}
	}
}

// logSumExp gives the largest logit and log Σ exp(logit − largest).
func logSumExp[T element](logits []T) (top, lse float64) {
	top = math.Inf(-1)
	for _, v := range logits {
		top = math.Max(top, float64(v))
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top, math.Log(sum)
}

// SoftmaxCrossEntropyGrad is the gradient of SoftmaxCrossEntropy with respect to the logits, for operands logits,
// labels and the gradient of the loss, a scalar.
type SoftmaxCrossEntropyGrad struct {
	Smoothing float64
}

// Kind is "softmax_cross_entropy_grad".
func (SoftmaxCrossEntropyGrad) Kind() string { return "softmax_cross_entropy_grad" }

func (o SoftmaxCrossEntropyGrad) String() string {
	return fmt.Sprintf("softmax_cross_entropy_grad{smoothing %g}", o.Smoothing)
}

// Infer gives the shape of the logits.
func (o SoftmaxCrossEntropyGrad) Infer(in ...Type) (Type, error) {
	dt, err := checkLabels(o, in, operand{"gradient", 0, float})
	if err == nil {
		err = checkSmoothing(o, in, o.Smoothing)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}

// Run computes the gradient.
func (o SoftmaxCrossEntropyGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, crossEntropyGrad[float32], crossEntropyGrad[float64])
}

func crossEntropyGrad[T element](o SoftmaxCrossEntropyGrad, out Tensor, in []Tensor) {
	dx, g := vec[T](out), float64(vec[T](in[2])[0])
	clear(dx)
	count := 0
	eachLabelled(in, func(int, int, []T) { count++ })
	eachLabelled(in, func(n, label int, logits []T) {
		k := len(logits)
		top, lse := logSumExp(logits)
		for j, v := range logits {
			target := o.Smoothing / float64(k)
			if j == label {
				target += 1 - o.Smoothing
			}
			dx[n*k+j] = T(g * (math.Exp(float64(v)-top-lse) - target) / float64(count))
		}
	})
}

// Score gives, for logits [N,K] and labels [N], the sum of the cross-entropies without smoothing and the numbers
// of images that are right at top 1 and at top 5, as [3]. An image is right at k if fewer than k logits are larger than
// its label's, or equal to it with a smaller index; one with a NaN is wrong. Labels outside 0 … K−1 do not count.
type Score struct{}

// Kind is "score".
func (Score) Kind() string { return "score" }

func (Score) String() string { return "score" }

// Infer gives [3].
func (o Score) Infer(in ...Type) (Type, error) {
	dt, err := checkLabels(o, in)
	if err != nil {
		return Type{}, err
	}
	return T(dt, 3), nil
}

// Run counts.
func (o Score) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, score[float32], score[float64])
}

func score[T element](_ Score, out Tensor, in []Tensor) {
	loss, right1, right5 := 0.0, 0, 0
	eachLabelled(in, func(_, label int, logits []T) {
		top, lse := logSumExp(logits)
		mine := logits[label]
		loss += lse - (float64(mine) - top)
		above := 0
		for j, v := range logits {
			switch {
			case v != v:
				above += len(logits) + 5
			case v > mine || v == mine && j < label:
				above++
			}
		}
		if above < 1 {
			right1++
		}
		if above < 5 {
			right5++
		}
	})
	y := vec[T](out)
	y[0], y[1], y[2] = T(loss), T(right1), T(right5)
}
