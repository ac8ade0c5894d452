package op_test

import (
	"math/rand/v2"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Operands of expressions.
var x0, x1, x2 = expr.Arg(0), expr.Arg(1), expr.Arg(2)

// example is an op with operands that fit.
type example struct {
	op op.Op
	in []op.Type
}

// examples has each op at least once, in type d, with attributes and extents that differ from each other and from
// their defaults.
func examples(d op.DType) []example {
	f := func(shape ...int) op.Type { return op.T(d, shape...) }
	labels := func(n int) op.Type { return op.T(op.Int32, n) }
	conv := op.Conv2D{Stride: [2]int{2, 3}, Pad: [2]int{1, 4}, Dilation: [2]int{3, 2}, Groups: 2}
	m := op.MaxPool{Kernel: [2]int{4, 2}, Stride: [2]int{2, 3}, Pad: [2]int{2, 1}}
	a := op.AvgPool{Kernel: [2]int{4, 2}, Stride: [2]int{2, 3}, Pad: [2]int{2, 1}}
	s := op.Shortcut{Stride: 2, Channels: 7}
	return append(general(d), []example{
		{op.Images{DType: d, Height: 5, Width: 4, Mean: []float64{.4, .5, .6}, Std: []float64{.2, .3, .1}},
			[]op.Type{op.T(op.Uint8, 2, 6, 7, 3), op.T(op.Int32, 2, 3)}},
		{conv, []op.Type{f(2, 4, 9, 10), f(6, 2, 3, 4), f(6)}},
		{conv, []op.Type{f(2, 4, 9, 10), f(6, 2, 3, 4)}},
		{op.Conv2D{}, []op.Type{f(3, 5, 4, 3), f(2, 5, 2, 3)}},
		{op.Conv2DGradInput{Conv2D: conv, Input: op.Shape{2, 4, 9, 10}}, []op.Type{f(6, 2, 3, 4), f(2, 6, 3, 4)}},
		{op.Conv2DGradWeight{Conv2D: conv, Weight: op.Shape{6, 2, 3, 4}}, []op.Type{f(2, 4, 9, 10), f(2, 6, 3, 4)}},
		{op.ChannelSum{}, []op.Type{f(2, 3, 4, 5)}},
		{op.ChannelSum{}, []op.Type{f(6, 5)}},
		{op.BatchNormStats{}, []op.Type{f(2, 3, 4, 5)}},
		{op.BatchNorm{Eps: 1e-3}, []op.Type{f(2, 3, 4, 5), f(2, 3), f(3), f(3)}},
		{op.BatchNorm{Eps: 1e-5, Fixed: true}, []op.Type{f(2, 3, 4, 5), f(2, 3), f(3), f(3)}},
		{op.BatchNormUpdate{Count: 40}, []op.Type{f(2, 3), f(2, 3), f(1)}},
		{op.BatchNormGradSums{Eps: 1e-3}, []op.Type{f(2, 3, 4, 5), f(2, 3), f(2, 3, 4, 5)}},
		{op.BatchNormGradInput{Eps: 1e-3}, []op.Type{f(2, 3, 4, 5), f(2, 3), f(3), f(2, 3), f(2, 3, 4, 5)}},
		{op.Row{Index: 1}, []op.Type{f(3, 4)}},
		{op.ReLU{}, []op.Type{f(2, 3, 4)}},
		{op.ReLUGrad{}, []op.Type{f(2, 3, 4), f(2, 3, 4)}},
		{op.Add{}, []op.Type{f(2, 3), f(2, 3)}},
		{op.Add{}, []op.Type{f(), f()}},
		{op.Map{Expr: x0.Mul(x0.Shift(3).Clamp(0, 6))}, []op.Type{f(2, 3, 4)}},
		{op.Map{Expr: x0.Mul(x1.Sigmoid()).Add(x2)}, []op.Type{f(2, 3, 4, 5), f(2, 3), f(3)}},
		{op.Map{Expr: expr.If(expr.Chance(expr.Random(5, 1, false), .5), x0.Exp(), x2)},
			[]op.Type{f(2, 3, 4), op.T(op.Int32, 2), f(2, 1, 4)}},
		{op.SumTo{Shape: op.Shape{2, 1, 4, 5}}, []op.Type{f(2, 3, 4, 5)}},
		{m, []op.Type{f(2, 3, 9, 8)}},
		{op.MaxPoolGrad{MaxPool: m}, []op.Type{f(2, 3, 9, 8), f(2, 3, 5, 3)}},
		{a, []op.Type{f(2, 3, 9, 8)}},
		{op.AvgPoolGrad{AvgPool: a, Input: op.Shape{2, 3, 9, 8}}, []op.Type{f(2, 3, 5, 3)}},
		{op.GlobalAvgPool{}, []op.Type{f(2, 3, 4, 5)}},
		{op.GlobalAvgPoolGrad{Input: op.Shape{2, 3, 4, 5}}, []op.Type{f(2, 3)}},
		{s, []op.Type{f(2, 3, 5, 4)}},
		{op.ShortcutGrad{Shortcut: s, Input: op.Shape{2, 3, 5, 4}}, []op.Type{f(2, 7, 3, 2)}},
		{op.Flatten{}, []op.Type{f(2, 3, 4, 5)}},
		{op.Reshape{Shape: op.Shape{2, 3, 4}}, []op.Type{f(6, 4)}},
		{op.Linear{}, []op.Type{f(3, 7), f(5, 7), f(5)}},
		{op.Linear{}, []op.Type{f(3, 7), f(5, 7)}},
		{op.LinearGradInput{}, []op.Type{f(5, 7), f(3, 5)}},
		{op.LinearGradWeight{}, []op.Type{f(3, 7), f(3, 5)}},
		{op.SoftmaxCrossEntropy{Smoothing: .1}, []op.Type{f(6, 5), labels(6)}},
		{op.TargetLoss{}, []op.Type{f(6, 5), f(6, 5)}},
		{op.AsymmetricLoss{Positive: .5, Negative: 4, Margin: .05}, []op.Type{f(6, 5), f(6, 5)}},
		{op.FocalLoss{Gamma: 2}, []op.Type{f(6, 5), f(6, 5)}},
		{op.DistillLoss{Temperature: 2}, []op.Type{f(6, 5), f(6, 5)}},
		{op.RegressionLoss{Delta: 1}, []op.Type{f(6, 5), f(6, 5)}},
		{op.TargetLossGrad{Binary: true}, []op.Type{f(6, 5), f(6, 5), f()}},
		{op.SoftmaxCrossEntropyGrad{Smoothing: .1}, []op.Type{f(6, 5), labels(6), f()}},
		{op.Score{}, []op.Type{f(6, 7), labels(6)}},
	}...)
}

// operands makes operands for e in float32's grid: different numbers, those of statistics and momenta positive, and
// labels from -1 to 5.
func (e example) operands(r *rand.Rand) []op.Tensor {
	in := make([]op.Tensor, len(e.in))
	for i, t := range e.in {
		in[i] = op.New(t)
		n := t.Shape.Size()
		switch t.DType {
		case op.Int32:
			set(in[i], integers(r, n, -1, 5)...)
		case op.Uint8:
			set(in[i], integers(r, n, 0, 255)...)
		default:
			x := distinct(r, n)
			for j := range x {
				if positive(e.op, i) {
					x[j] = float64(float32((x[j] + 1.5) / 2))
				}
			}
			set(in[i], x...)
		}
	}
	return in
}

// positive reports whether operand i of o has variances or is a momentum.
func positive(o op.Op, i int) bool {
	switch o.(type) {
	case op.BatchNorm, op.BatchNormGradSums, op.BatchNormGradInput:
		return i == 1
	case op.BatchNormUpdate:
		return true
	}
	return false
}

func integers(r *rand.Rand, n, lo, hi int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(lo + r.IntN(hi-lo+1))
	}
	return x
}

// distinct are numbers of (-1,1) in float32's grid, in random order, that keep their distance from each other and from
// 0, as finite differences need where a function has kinks.
func distinct(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i, j := range r.Perm(n) {
		x[i] = float64(float32((float64(j)+.25)*2/float64(n) - 1))
	}
	return x
}
