package op_test

import (
	"math"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
)

// torchCase runs one case of PyTorch's results in type d. Tolerances are relative to a tensor's largest element.
type torchCase func(t *testing.T, c golden.Case, d op.DType, tolerance float64)

// PyTorch computed in float64 and rounded to float32: the reference has to agree as well as its own type allows.
func TestAgainstPyTorch(t *testing.T) {
	for _, c := range []struct {
		name  string
		count int     // of cases in testdata
		loose float64 // tolerance in float32
		run   torchCase
	}{
		{"conv2d", 17, 1e-5, torchConv},
		{"linear", 4, 1e-5, torchLinear},
		{"batchnorm", 12, 5e-5, torchBatchNorm},
		{"relu", 1, 0, torchReLU},
		{"maxpool", 9, 1e-5, torchMaxPool},
		{"gap", 4, 1e-5, torchGlobalAvgPool},
		{"softmax_ce", 8, 1e-5, torchCrossEntropy},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n := torchCases(t, "testdata", c.name, c.loose, c.run); n != c.count {
				t.Errorf("%d cases, want %d", n, c.count)
			}
		})
	}
}

// The cases that are too large for testdata.
func TestAgainstPyTorchLarge(t *testing.T) {
	dir := golden.Torch(t, "")
	torchCases(t, dir, "conv2d", 1e-5, torchConv)
	torchCases(t, dir, "linear", 1e-5, torchLinear)
}

func torchCases(t *testing.T, dir, name string, loose float64, run torchCase) int {
	t.Helper()
	cases, err := golden.Cases(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name+"/float32", func(t *testing.T) { run(t, c, op.Float32, loose) })
		t.Run(c.Name+"/float64", func(t *testing.T) { run(t, c, op.Float64, 1e-6) })
	}
	return len(cases)
}

func torchConv(t *testing.T, c golden.Case, d op.DType, tolerance float64) {
	o := op.Conv2D{Stride: c.Stride, Pad: c.Pad, Dilation: c.Dilation, Groups: c.Groups}
	forwardAndBack(t, c, d, tolerance, o, c.Bias)
}

func torchLinear(t *testing.T, c golden.Case, d op.DType, tolerance float64) {
	forwardAndBack(t, c, d, tolerance, op.Linear{}, c.Bias)
}

// forwardAndBack is for operands x, w and perhaps b.
func forwardAndBack(t *testing.T, c golden.Case, d op.DType, tolerance float64, o op.Differentiable, bias bool) {
	operands, grads := []string{"x", "w"}, []string{"gx", "gw"}
	if bias {
		operands, grads = append(operands, "b"), append(grads, "gb")
	}
	in := c.In(d, operands...)
	y := compute(t, o, in...)
	near(t, "y", y, c.Tensors["y"], tolerance)
	for i, g := range gradients(t, o, in, y, c.In(d, "gy")[0]) {
		near(t, grads[i], g, c.Tensors[grads[i]], tolerance)
	}
}

func torchBatchNorm(t *testing.T, c golden.Case, d op.DType, tolerance float64) {
	x, gy := c.In(d, "x")[0], c.In(d, "gy")[0]
	running := rows(t, c.In(d, "running_mean", "running_var"))
	stats := running
	if c.Train {
		stats = compute(t, op.BatchNormStats{}, x)
		m := op.New(op.T(d, 1))
		set(m, c.Momentum)
		n := x.Shape.Size() / x.Shape[1]
		running = compute(t, op.BatchNormUpdate{Count: n}, running, stats, m)
	}
	near(t, "new running mean", compute(t, op.Row{Index: 0}, running), c.Tensors["new_running_mean"], tolerance)
	near(t, "new running variance", compute(t, op.Row{Index: 1}, running), c.Tensors["new_running_var"], tolerance)

	o := op.BatchNorm{Eps: c.Eps, Fixed: !c.Train}
	in := append([]op.Tensor{x, stats}, c.In(d, "w", "b")...)
	y := compute(t, o, in...)
	near(t, "y", y, c.Tensors["y"], tolerance)
	g := gradients(t, o, in, y, gy)
	if g[1].Data != nil {
		t.Error("the statistics have a gradient")
	}
	near(t, "gx", g[0], c.Tensors["gx"], tolerance)
	near(t, "gw", g[2], c.Tensors["gw"], tolerance)
	near(t, "gb", g[3], c.Tensors["gb"], tolerance)
}

func torchReLU(t *testing.T, c golden.Case, d op.DType, tolerance float64) {
	// The largest element is near overflow, so only equality is meaningful.
	unary(t, c, d, 0, op.ReLU{})
}

func torchMaxPool(t *testing.T, c golden.Case, d op.DType, tolerance float64) {
	o := op.MaxPool{Kernel: c.Kernel, Stride: c.Stride, Pad: c.Pad}
	unary(t, c, d, tolerance, o)

	// The gradient of each result goes to the element of the plane that PyTorch took, and nowhere else.
	in := c.In(d, "x")
	y := compute(t, o, in...)
	plane, window := in[0].Shape[2:].Size(), y.Shape[2:].Size()
	for i, at := range c.Tensors["idx"].Data.([]int32) {
		dy := op.New(y.Type())
		one := make([]float64, y.Shape.Size())
		one[i] = 1
		set(dy, one...)
		for j, g := range golden.Floats(gradients(t, o, in, y, dy)[0]) {
			if taken := j == i/window*plane+int(at); (g == 1) != taken || (g == 0) == taken {
				t.Errorf("result %d gives element %d the gradient %v, PyTorch takes element %d of the plane", i, j, g,
					at)
			}
		}
	}
}

func torchGlobalAvgPool(t *testing.T, c golden.Case, d op.DType, tolerance float64) {
	// PyTorch's result is [N,C,1,1].
	for _, name := range []string{"y", "gy"} {
		x := c.Tensors[name]
		x.Shape = x.Shape[:2]
		c.Tensors[name] = x
	}
	unary(t, c, d, tolerance, op.GlobalAvgPool{})
}

// unary is for the operand x.
func unary(t *testing.T, c golden.Case, d op.DType, tolerance float64, o op.Differentiable) {
	in := c.In(d, "x")
	y := compute(t, o, in...)
	near(t, "y", y, c.Tensors["y"], tolerance)
	near(t, "gx", gradients(t, o, in, y, c.In(d, "gy")[0])[0], c.Tensors["gx"], tolerance)
}

func torchCrossEntropy(t *testing.T, c golden.Case, d op.DType, tolerance float64) {
	o := op.SoftmaxCrossEntropy{Smoothing: c.Smoothing}
	in := c.In(d, "x", "labels")
	loss, one := compute(t, o, in...), op.New(op.T(d))
	set(one, 1)
	want := c.Tensors["loss64"]
	want.Shape = nil
	if d == op.Float64 {
		near(t, "loss", loss, want, 1e-14)
	} else {
		near(t, "loss", loss, want, tolerance)
	}
	g := gradients(t, o, in, loss, one)
	near(t, "gx", g[0], c.Tensors["gx"], tolerance)
	if g[1].Data != nil {
		t.Error("the labels have a gradient")
	}
}

// rows stacks vectors.
func rows(t *testing.T, vectors []op.Tensor) op.Tensor {
	t.Helper()
	x := op.New(op.T(vectors[0].DType(), len(vectors), vectors[0].Shape[0]))
	var all []float64
	for _, v := range vectors {
		all = append(all, golden.Floats(v)...)
	}
	set(x, all...)
	return x
}

// compute runs o.
func compute(t *testing.T, o op.Op, in ...op.Tensor) op.Tensor {
	t.Helper()
	types := make([]op.Type, len(in))
	for i, x := range in {
		types[i] = x.Type()
	}
	want, err := o.Infer(types...)
	if err != nil {
		t.Fatal(err)
	}
	y := op.New(want)
	if err := o.Run(y, in...); err != nil {
		t.Fatal(err)
	}
	return y
}

// set fills x with numbers, over and over.
func set(x op.Tensor, numbers ...float64) {
	for i := range x.Shape.Size() {
		v := numbers[i%len(numbers)]
		switch d := x.Data.(type) {
		case []float32:
			d[i] = float32(v)
		case []float64:
			d[i] = v
		case []int32:
			d[i] = int32(v)
		case []uint8:
			d[i] = uint8(v)
		}
	}
}

// near compares x with want: shapes, and elements within tolerance times the largest of want.
func near(t *testing.T, what string, x, want op.Tensor, tolerance float64) {
	t.Helper()
	if !x.Shape.Equal(want.Shape) {
		t.Errorf("%s has shape %v, want %v", what, x.Shape, want.Shape)
		return
	}
	a, b, largest := golden.Floats(x), golden.Floats(want), 0.0
	for _, v := range b {
		largest = max(largest, math.Abs(v))
	}
	for i := range b {
		if !(math.Abs(a[i]-b[i]) <= tolerance*largest) && a[i] != b[i] {
			t.Errorf("%s: element %d is %v, want %v within %.1g", what, i, a[i], b[i], tolerance*largest)
			return
		}
	}
}
