package devicetest

import (
	"math"
	"math/rand/v2"

	"onlinerna/nn/op"
)

func imagesCases(d op.DType) []opCase {
	var all []opCase
	for _, c := range []struct{ n, h, w, c, height, width, lo, hi int }{
		{2, 8, 10, 3, 8, 10, 0, 0},
		{3, 9, 7, 3, 5, 4, 0, 3},
		{4, 8, 8, 3, 8, 8, -4, 4}, // CIFAR's padded crop
		{1, 12, 5, 1, 9, 9, -3, 3},
		{2, 3, 3, 4, 2, 3, 5, 9}, // nothing of the image is left
		{5, 20, 33, 3, 17, 16, 0, 16},
	} {
		mean, std := make([]float64, c.c), make([]float64, c.c)
		for i := range mean {
			mean[i], std[i] = .4+.03*float64(i), .2+.01*float64(i)
		}
		crops := func(r *rand.Rand, x []float64) {
			integers(c.lo, c.hi)(r, x)
			for i := 2; i < len(x); i += 3 {
				x[i] = float64(i / 3 % 2)
			}
		}
		all = append(all, opCase{
			op: op.Images{DType: d, Height: c.height, Width: c.width, Mean: mean, Std: std},
			in: []operand{whole(op.Uint8, integers(0, 255), c.n, c.h, c.w, c.c), whole(op.Int32, crops, c.n, 3)},
		})
	}
	return all
}

// activations are shapes of activations, around multiples of vector registers and cache lines.
var activations = []op.Shape{
	{1, 1, 1, 1}, {2, 3, 7, 7}, {3, 4, 5, 5}, {4, 16, 2, 2}, {3, 5, 1, 1}, {2, 8, 8, 5}, {1, 17, 7, 7}, {2, 33, 3, 1},
	{1, 64, 1, 1}, {2, 64, 7, 7}, {1, 65, 2, 3}, {7, 15, 1, 3}, {2, 3, 32, 32}, {3, 10}, {1, 1}, {5, 33}, {16, 1000},
	{8, 32, 28, 28}, // more than one piece of work for each of several workers
}

func elementCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for _, s := range activations {
		dy := data(one, s...)
		all = append(all,
			opCase{op: op.ReLU{}, in: []operand{data(one, s...)}},
			opCase{op: op.ReLUGrad{}, in: []operand{data(listed(0, .5, 0, 2, 1e-30, 0, 0, 1), s...), dy}},
			opCase{op: op.ReLUGrad{}, in: []operand{data(listed(math.Copysign(0, -1), 1, -1), s...), dy}},
			opCase{op: op.Add{}, in: []operand{data(one, s...), data(one, s...)}},
			opCase{op: op.ChannelSum{}, in: []operand{dy}, weight: true},
		)
	}
	zero := math.Copysign(0, -1)
	return append(all,
		opCase{op: op.ReLU{}, in: []operand{data(listed(3e38, -3e38, 0, zero), 2, 3, 5, 5)}},
		opCase{op: op.ReLU{}, in: []operand{data(listed(1e-42, -1e-42, zero, 0, 1e-38), 3, 3, 5, 5)}},
		opCase{op: op.Add{}, in: []operand{weight(one, 6, 5, 3, 3), weight(one, 6, 5, 3, 3)}, weight: true},
		opCase{op: op.Add{}, in: []operand{weight(one, 17), weight(one, 17)}, weight: true},
		opCase{op: op.ChannelSum{}, in: []operand{data(uniform(0, 1), 40, 3, 30, 30)}, weight: true},
	)
}

func poolCases() []opCase {
	one := uniform(-1, 1)
	relu := func(r *rand.Rand, x []float64) {
		one(r, x)
		for i := range x {
			x[i] = max(x[i], 0)
		}
	}
	pair := func(a int) [2]int { return [2]int{a, a} }
	var all []opCase
	for _, c := range []struct {
		shape               op.Shape
		kernel, stride, pad [2]int
		fill                fill
	}{
		{op.Shape{2, 3, 8, 8}, pair(3), pair(2), pair(1), one},
		{op.Shape{2, 3, 9, 7}, pair(3), pair(2), pair(1), one},
		{op.Shape{2, 3, 8, 8}, pair(3), pair(2), pair(1), integers(-2, 2)}, // ties
		{op.Shape{2, 4, 9, 9}, pair(3), pair(2), pair(1), relu},
		{op.Shape{2, 64, 14, 14}, pair(3), pair(2), pair(1), relu},
		{op.Shape{1, 2, 8, 8}, pair(3), pair(2), pair(1), uniform(-2, -1)}, // padding is not 0
		{op.Shape{2, 3, 8, 8}, pair(2), pair(2), pair(0), integers(-2, 2)},
		{op.Shape{2, 3, 7, 7}, pair(2), pair(2), pair(0), one},
		{op.Shape{1, 2, 6, 6}, pair(3), pair(2), pair(1), constant(.25)},
		{op.Shape{1, 17, 7, 7}, pair(7), pair(1), pair(0), one},
		{op.Shape{3, 5, 1, 1}, pair(1), pair(1), pair(0), one},
		{op.Shape{2, 33, 5, 9}, [2]int{2, 3}, [2]int{1, 2}, [2]int{1, 0}, one},
		{op.Shape{2, 16, 6, 11}, [2]int{3, 2}, [2]int{2, 3}, [2]int{0, 1}, integers(0, 1)},
		{op.Shape{1, 1, 5, 5}, pair(2), pair(3), pair(0), one},                // pixels between the windows
		{op.Shape{1, 2, 20, 19}, pair(17), pair(2), pair(3), integers(-9, 9)}, // more elements than a byte counts
	} {
		x := data(c.fill, c.shape...)
		out := func(d int) int { return (c.shape[2+d]+2*c.pad[d]-c.kernel[d])/c.stride[d] + 1 }
		dy := data(one, c.shape[0], c.shape[1], out(0), out(1))
		m := op.MaxPool{Kernel: c.kernel, Stride: c.stride, Pad: c.pad}
		a := op.AvgPool{Kernel: c.kernel, Stride: c.stride, Pad: c.pad}
		all = append(all,
			opCase{op: m, in: []operand{x}},
			opCase{op: op.MaxPoolGrad{MaxPool: m}, in: []operand{x, dy}},
			opCase{op: a, in: []operand{x}},
			opCase{op: op.AvgPoolGrad{AvgPool: a, Input: c.shape}, in: []operand{dy}},
		)
	}
	for _, s := range activations {
		if len(s) == 4 {
			all = append(all,
				opCase{op: op.GlobalAvgPool{}, in: []operand{data(one, s...)}},
				opCase{op: op.GlobalAvgPoolGrad{Input: s}, in: []operand{data(one, s[:2]...)}})
		}
	}
	return all
}

func viewCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for _, c := range []int{1, 3, 16, 17, 64} {
		for row := range 2 {
			all = append(all, opCase{op: op.Row{Index: row}, in: []operand{data(one, 2, c)}, weight: true})
		}
	}
	for _, s := range activations {
		if len(s) == 4 {
			flat := op.Shape{s[0], s[1] * s[2] * s[3]}
			all = append(all,
				opCase{op: op.Flatten{}, in: []operand{data(one, s...)}},
				opCase{op: op.Reshape{Shape: s}, in: []operand{data(one, flat...)}},
				opCase{op: op.Reshape{Shape: s}, in: []operand{data(one, s...)}},
				opCase{op: op.Reshape{Shape: op.Shape{s[1], s[0], s[3], s[2]}}, in: []operand{data(one, s...)}})
		}
	}
	for _, c := range []struct {
		shape            op.Shape
		stride, channels int
	}{
		{op.Shape{2, 16, 8, 8}, 2, 32}, {op.Shape{1, 3, 7, 5}, 2, 8}, {op.Shape{2, 5, 3, 3}, 1, 5},
		{op.Shape{3, 4, 6, 6}, 1, 7}, {op.Shape{2, 17, 1, 1}, 2, 34}, {op.Shape{1, 2, 9, 8}, 3, 33},
	} {
		o := op.Shortcut{Stride: c.stride, Channels: c.channels}
		size := func(d int) int { return (c.shape[2+d] + c.stride - 1) / c.stride }
		all = append(all,
			opCase{op: o, in: []operand{data(one, c.shape...)}},
			opCase{op: op.ShortcutGrad{Shortcut: o, Input: c.shape},
				in: []operand{data(one, c.shape[0], c.channels, size(0), size(1))}})
	}
	return all
}

func linearCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for i, c := range []struct{ n, in, out int }{
		{4, 10, 7}, {16, 33, 17}, {1, 64, 10}, {2, 400, 120}, {3, 2, 1}, {1, 1, 1}, {5, 17, 33}, {64, 16, 16},
		{7, 513, 10}, {33, 65, 100}, {8, 8, 2}, {601, 70, 262},
	} {
		x, dy := data(one, c.n, c.in), data(one, c.n, c.out)
		w := weight(uniform(-.3, .3), c.out, c.in)
		forward := opCase{op: op.Linear{}, in: []operand{x, w}}
		if i%2 == 0 {
			forward.in = append(forward.in, weight(one, c.out))
		}
		all = append(all, forward,
			opCase{op: op.LinearGradInput{}, in: []operand{w, dy}},
			opCase{op: op.LinearGradWeight{}, in: []operand{x, dy}, weight: true})
	}
	return all
}

func lossCases() []opCase {
	var all []opCase
	for _, c := range []struct {
		n, k      int
		smoothing float64
		logits    fill
		labels    fill
	}{
		{4, 10, 0, uniform(-3, 3), integers(0, 9)},
		{4, 10, .1, uniform(-3, 3), integers(0, 9)},
		{8, 1000, 0, uniform(-2, 2), integers(0, 999)},
		{8, 1000, .1, uniform(-2, 2), integers(0, 999)},
		{3, 5, 0, uniform(-1e4, 1e4), integers(0, 4)}, // the exponentials overflow
		{3, 5, .1, uniform(-1e4, 1e4), integers(0, 4)},
		{1, 2, 0, uniform(-1, 1), integers(0, 1)},
		{5, 10, .1, constant(0), integers(0, 9)},
		{33, 17, .2, uniform(-3, 3), integers(-1, 17)}, // labels outside are ignored
		{9, 3, 0, uniform(-3, 3), listed(-100, 2, 0)},
		{4, 6, .1, uniform(-3, 3), constant(-1)}, // all of them
		{7, 1, 0, uniform(-3, 3), constant(0)},
		{40, 9, 0, integers(-1, 1), integers(0, 8)}, // ties
	} {
		logits, labels := data(c.logits, c.n, c.k), whole(op.Int32, c.labels, c.n)
		all = append(all,
			opCase{op: op.SoftmaxCrossEntropy{Smoothing: c.smoothing}, in: []operand{logits, labels}},
			opCase{op: op.SoftmaxCrossEntropyGrad{Smoothing: c.smoothing},
				in: []operand{logits, labels, data(constant(.75))}},
			opCase{op: op.Score{}, in: []operand{logits, labels}})
		for _, gamma := range []float64{.5, 2} {
			all = append(all, opCase{op: op.FocalLoss{Gamma: gamma}, in: []operand{logits, data(uniform(0, 1), c.n, c.k)}})
		}
		for _, o := range []op.Op{op.AsymmetricLoss{}, op.AsymmetricLoss{Positive: 1, Negative: 4, Margin: .05}} {
			all = append(all, opCase{op: o, in: []operand{logits, data(uniform(0, 1), c.n, c.k)}})
		}
		for _, temperature := range []float64{1, 4} {
			all = append(all, opCase{op: op.DistillLoss{Temperature: temperature},
				in: []operand{logits, data(uniform(-3, 3), c.n, c.k)}})
		}
		for _, delta := range []float64{0, .5} {
			all = append(all,
				opCase{op: op.RegressionLoss{Delta: delta}, in: []operand{logits, data(uniform(-2, 2), c.n, c.k)}})
		}
		for _, binary := range []bool{false, true} {
			targets := data(uniform(0, 1), c.n, c.k)
			all = append(all,
				opCase{op: op.TargetLoss{Binary: binary}, in: []operand{logits, targets}},
				opCase{op: op.TargetLossGrad{Binary: binary}, in: []operand{logits, targets, data(constant(.75))}})
		}
	}
	sick := func(r *rand.Rand, x []float64) {
		uniform(-3, 3)(r, x)
		x[12], x[27] = math.NaN(), math.NaN()
	}
	return append(all, opCase{op: op.Score{}, in: []operand{data(sick, 6, 10), whole(op.Int32, integers(0, 9), 6)}})
}
