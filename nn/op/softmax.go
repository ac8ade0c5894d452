package op

import (
	"fmt"
	"math"

	"onlinerna/nn/op/expr"
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

// eachLabelled calls fn for every image with a valid label.
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

// Softmax is exp(x)/Σ exp(x) along the last dimension of x, without overflow.
type Softmax struct{}

var _ Composite = Softmax{}

// Kind is "softmax".
func (Softmax) Kind() string { return "softmax" }

func (Softmax) String() string { return "softmax" }

// Infer gives the shape of x.
func (o Softmax) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	return lastNorm(o, in, dt, 0, err)
}

// Overwrites lists x.
func (Softmax) Overwrites(...Type) []int { return []int{0} }

// Decompose reduces rows and maps.
func (o Softmax) Decompose(in ...Type) *Term {
	s := in[0].Shape
	x := asRows(Leaf(0), s)
	powers := Apply(Map{expr.Arg(0).Sub(expr.Arg(1)).Exp()}, x, Apply(Reduce{Max, []int{1}}, x))
	y := Apply(Map{expr.Arg(0).Div(expr.Arg(1))}, powers, Apply(Reduce{Sum, []int{1}}, powers))
	n, width := rows(s)
	return shaped(y, Shape{n, width}, s)
}

// Gradients needs the result only.
func (o Softmax) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(SoftmaxGrad{}, Leaf(Result), Leaf(ResultGrad))}, nil
}

// Run sums in float64.
func (o Softmax) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, softmax[float32], softmax[float64])
}

func softmax[T element](_ Softmax, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	_, c := rows(out.Shape)
	p := make([]float64, c)
	for i := 0; i < len(x); i += c {
		top, sum := math.Inf(-1), 0.0
		for _, v := range x[i : i+c] {
			top = max(top, float64(v))
		}
		for j, v := range x[i : i+c] {
			p[j] = math.Exp(float64(v) - top)
			sum += p[j]
		}
		for j, v := range p {
			y[i+j] = T(v / sum)
		}
	}
}

// SoftmaxGrad is the gradient of Softmax for operands y and dy: y·(dy − Σ dy·y).
type SoftmaxGrad struct{}

var _ Composite = SoftmaxGrad{}

// Kind is "softmax_grad".
func (SoftmaxGrad) Kind() string { return "softmax_grad" }

func (SoftmaxGrad) String() string { return "softmax_grad" }

// Infer gives the shape of both operands.
func (o SoftmaxGrad) Infer(in ...Type) (Type, error) {
	t, err := pair(o, in, "result", "gradient")
	return lastNorm(o, in, t.DType, 0, err)
}

// Overwrites lists both operands.
func (SoftmaxGrad) Overwrites(...Type) []int { return []int{0, 1} }

// Decompose reduces rows and maps.
func (o SoftmaxGrad) Decompose(in ...Type) *Term {
	s := in[0].Shape
	a, b, c := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	y, dy := asRows(Leaf(0), s), asRows(Leaf(1), s)
	sum := Apply(Reduce{Sum, []int{1}}, Apply(Map{a.Mul(b)}, y, dy))
	n, width := rows(s)
	return shaped(Apply(Map{a.Mul(b.Sub(c))}, y, dy, sum), Shape{n, width}, s)
}

// Run sums in float64.
func (o SoftmaxGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, softmaxGrad[float32], softmaxGrad[float64])
}

func softmaxGrad[T element](_ SoftmaxGrad, out Tensor, in []Tensor) {
	y, dy, dx := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	_, c := rows(out.Shape)
	for i := 0; i < len(y); i += c {
		sum := 0.0
		for j, v := range y[i : i+c] {
			sum += float64(v) * float64(dy[i+j])
		}
		for j, v := range y[i : i+c] {
			dx[i+j] = T(float64(v) * (float64(dy[i+j]) - sum))
		}
	}
}
