package op_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
)

var (
	nan       = math.NaN()
	inf       = math.Inf(1)
	minusZero = math.Copysign(0, -1)
)

// filled is a tensor of type d with the given elements.
func filled(d op.DType, shape op.Shape, x ...float64) op.Tensor {
	t := op.New(op.Type{DType: d, Shape: shape})
	set(t, x...)
	return t
}

// Results that follow from the definitions by hand.
func TestValues(t *testing.T) {
	type shape = op.Shape
	pixels := func(n, h, w, c int) op.Tensor { // 1, 2, 3, …
		x := op.New(op.T(op.Uint8, n, h, w, c))
		for i := range x.Data.([]uint8) {
			x.Data.([]uint8)[i] = uint8(i + 1)
		}
		return x
	}
	whole := func(s shape, x ...float64) op.Tensor { return filled(op.Int32, s, x...) }
	for _, d := range []op.DType{op.Float32, op.Float64} {
		f := func(s shape, x ...float64) op.Tensor { return filled(d, s, x...) }
		unit := op.Images{DType: d, Height: 2, Width: 2, Mean: []float64{0}, Std: []float64{1. / 255}}
		pool := [2]int{2, 2}
		pad := op.MaxPool{Kernel: pool, Stride: pool, Pad: [2]int{1, 1}}
		for _, c := range []struct {
			name string
			op   op.Op
			in   []op.Tensor
			want []float64
		}{
			{"crop", unit, []op.Tensor{pixels(1, 3, 3, 1), whole(shape{1, 3}, 1, 0, 0)}, []float64{4, 5, 7, 8}},
			{"flipped crop", unit, []op.Tensor{pixels(1, 3, 3, 1), whole(shape{1, 3}, 1, 0, 1)}, []float64{5, 4, 8, 7}},
			{"crop over the edge", unit, []op.Tensor{pixels(1, 3, 3, 1), whole(shape{1, 3}, -1, 2, 0)},
				[]float64{0, 0, 3, 0}},
			{"flip over the edge", unit, []op.Tensor{pixels(1, 3, 3, 1), whole(shape{1, 3}, 2, 2, 1)},
				[]float64{0, 9, 0, 0}},
			{"a crop for each image", unit, []op.Tensor{pixels(2, 2, 2, 1), whole(shape{2, 3}, 0, 0, 0, 0, 0, 1)},
				[]float64{1, 2, 3, 4, 6, 5, 8, 7}},
			{"channels", op.Images{DType: d, Height: 1, Width: 2, Mean: []float64{0, 1},
				Std: []float64{1. / 255, 1. / 255}},
				[]op.Tensor{pixels(1, 1, 2, 2), whole(shape{1, 3}, 0, 0, 0)}, []float64{1, 3, 2 - 255, 4 - 255}},

			{"kernels are not mirrored", op.Conv2D{}, []op.Tensor{f(shape{1, 1, 1, 3}, 1, 2, 3),
				f(shape{1, 1, 1, 2}, 10, 1)}, []float64{12, 23}},
			{"groups", op.Conv2D{Groups: 2}, []op.Tensor{f(shape{1, 2, 1, 1}, 1, 2), f(shape{4, 1, 1, 1}, 1, 2, 3, 4),
				f(shape{4}, 0, 0, 0, 10)}, []float64{1, 2, 6, 18}},

			{"rectified", op.ReLU{}, []op.Tensor{f(shape{6}, -1, minusZero, 0, 2, nan, inf)},
				[]float64{0, 0, 0, 2, nan, inf}},
			{"gradient at 0", op.ReLUGrad{}, []op.Tensor{f(shape{5}, 0, minusZero, 1e-30, nan, -1),
				f(shape{5}, 1, 2, 3, 4, 5)}, []float64{0, 0, 3, 4, 0}},
			{"sum", op.Add{}, []op.Tensor{f(shape{2}, 1, 2), f(shape{2}, 10, 20)}, []float64{11, 22}},

			{"padding is below all", pad, []op.Tensor{f(shape{1, 1, 2, 2}, -1, -2, -3, -4)}, []float64{-1, -2, -3, -4}},
			{"NaN is above all", op.MaxPool{Kernel: pool}, []op.Tensor{f(shape{1, 1, 2, 2}, 1, nan, inf, 2)},
				[]float64{nan}},
			{"first of equals", op.MaxPoolGrad{MaxPool: op.MaxPool{Kernel: pool}},
				[]op.Tensor{f(shape{1, 1, 2, 2}, 1, 3, 3, 3), f(shape{1, 1, 1, 1}, 5)}, []float64{0, 5, 0, 0}},
			{"overlapping windows add up", op.MaxPoolGrad{MaxPool: op.MaxPool{Kernel: [2]int{1, 2},
				Stride: [2]int{1, 1}}},
				[]op.Tensor{f(shape{1, 1, 1, 3}, 1, 3, 2), f(shape{1, 1, 1, 2}, 5, 7)}, []float64{0, 12, 0}},
			{"padding counts", op.AvgPool{Kernel: pool, Stride: pool, Pad: [2]int{1, 1}},
				[]op.Tensor{f(shape{1, 1, 2, 2}, 4, 8, 12, 16)}, []float64{1, 2, 3, 4}},

			{"zeros on both sides", op.Shortcut{Stride: 2, Channels: 5},
				[]op.Tensor{f(shape{1, 2, 1, 3}, 1, 2, 3, 4, 5, 6)},
				[]float64{0, 0, 1, 3, 4, 6, 0, 0, 0, 0}},
			{"row", op.Row{Index: 1}, []op.Tensor{f(shape{2, 2}, 1, 2, 3, 4)}, []float64{3, 4}},

			{"unbiased", op.BatchNormUpdate{Count: 5}, []op.Tensor{f(shape{2, 1}, 1, 2), f(shape{2, 1}, 3, 4),
				f(shape{1}, .25)}, []float64{1.5, 2.75}},
			{"momentum 1", op.BatchNormUpdate{Count: 2}, []op.Tensor{f(shape{2, 1}, inf, nan), f(shape{2, 1}, 3, 4),
				f(shape{1}, 1)}, []float64{nan, nan}},
			{"a mean far from 0", op.BatchNormStats{},
				[]op.Tensor{f(shape{1, 1, 2, 2}, 1<<23, 1<<23+1, 1<<23+2, 1<<23+1)}, []float64{1<<23 + 1, .5}},
			{"one value", op.BatchNormStats{}, []op.Tensor{f(shape{1, 2, 1, 1}, 3, 4)}, []float64{3, 4, 0, 0}},

			{"ignored labels", op.SoftmaxCrossEntropy{},
				[]op.Tensor{f(shape{3, 2}, 0, 0, 9, 9, 5, 1), whole(shape{3}, 1, 2, -1)}, []float64{math.Ln2}},
			{"all labels ignored", op.SoftmaxCrossEntropy{Smoothing: .1},
				[]op.Tensor{f(shape{2, 2}, 1, 2, 3, 4), whole(shape{2}, 2, -100)}, []float64{0}},
			{"no gradient where ignored", op.SoftmaxCrossEntropyGrad{}, []op.Tensor{f(shape{2, 2}, 3, 3, nan, 4),
				whole(shape{2}, 1, 2), f(shape{}, 4)}, []float64{2, -2, 0, 0}},
			{"cross_entropy with probabilities", op.TargetLoss{}, []op.Tensor{f(shape{2, 3}, 1, 2, -1, .5, 0, 3),
				f(shape{2, 3}, .7, .3, 0, .1, .1, .8)}, []float64{0.8614425875687768}},
			{"binary_cross_entropy_with_logits", op.TargetLoss{Binary: true},
				[]op.Tensor{f(shape{2, 3}, 1, 2, -1, .5, 0, 3), f(shape{2, 3}, .7, .3, 0, .1, .1, .8)},
				[]float64{0.7865438170655352}},
			{"far apart", op.SoftmaxCrossEntropy{}, []op.Tensor{f(shape{1, 2}, 1e4, -1e4), whole(shape{1}, 1)},
				[]float64{2e4}},
			{"one class", op.SoftmaxCrossEntropy{Smoothing: .5}, []op.Tensor{f(shape{1, 1}, 7), whole(shape{1}, 0)},
				[]float64{0}},

			{"equal logits: the first is right", op.Score{}, []op.Tensor{f(shape{3, 2}, 0), whole(shape{3}, 0, 1, 2)},
				[]float64{2 * math.Ln2, 1, 2}},
			{"top 5", op.Score{}, []op.Tensor{f(shape{2, 7}, 7, 6, 5, 4, 3, 2, 1), whole(shape{2}, 4, 5)},
				[]float64{2*math.Log(math.Exp(7)+math.Exp(6)+math.Exp(5)+math.Exp(4)+math.Exp(3)+math.Exp(2)+math.Exp(1)) -
					3 - 2, 0, 1}},
			{"NaN is wrong", op.Score{}, []op.Tensor{f(shape{1, 2}, 1, nan), whole(shape{1}, 0)}, []float64{nan, 0, 0}},
			{"nobody counts", op.Score{}, []op.Tensor{f(shape{1, 2}, nan), whole(shape{1}, 7)}, []float64{0, 0, 0}},
		} {
			got := golden.Floats(compute(t, c.op, c.in...))
			if len(got) != len(c.want) {
				t.Errorf("%s, %v: got %v, want %v", c.name, d, got, c.want)
				continue
			}
			for i, w := range c.want {
				e := math.Abs(got[i] - w)
				if !(e <= 1e-6*max(1, math.Abs(w))) && got[i] != w && !(math.IsNaN(got[i]) && math.IsNaN(w)) {
					t.Errorf("%s, %v: got %v, want %v", c.name, d, got, c.want)
					break
				}
			}
		}
	}
}

// The convolution is the sum that its documentation says.
func TestConvolutionIsItsSum(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 4))
	for _, s := range slopes(r) {
		o, ok := s.op.(op.Conv2D)
		if !ok {
			continue
		}
		in := make([]op.Tensor, len(s.in))
		for i, typ := range s.in {
			in[i] = filled(op.Float64, typ.Shape, distinct(r, typ.Shape.Size())...)
		}
		y := compute(t, o, in...)
		want := op.New(y.Type())
		x, w, xs, ws := golden.Floats(in[0]), golden.Floats(in[1]), in[0].Shape, in[1].Shape
		at := 0
		for n := range y.Shape[0] {
			for k := range y.Shape[1] {
				for i := range y.Shape[2] {
					for j := range y.Shape[3] {
						sum := 0.0
						if len(in) == 3 {
							sum = golden.Floats(in[2])[k]
						}
						for c := range ws[1] {
							for p := range ws[2] {
								for q := range ws[3] {
									row := i*o.Stride[0] - o.Pad[0] + p*o.Dilation[0]
									col := j*o.Stride[1] - o.Pad[1] + q*o.Dilation[1]
									if row < 0 || row >= xs[2] || col < 0 || col >= xs[3] {
										continue
									}
									channel := k/(ws[0]/o.Groups)*ws[1] + c
									sum += w[((k*ws[1]+c)*ws[2]+p)*ws[3]+q] * x[((n*xs[1]+channel)*xs[2]+row)*xs[3]+col]
								}
							}
						}
						want.Data.([]float64)[at] = sum
						at++
					}
				}
			}
		}
		near(t, o.String(), y, want, 1e-14)
	}
}
