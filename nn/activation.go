package nn

import (
	"math"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Activation adds an elementwise layer: (*Builder).ReLU, (*Builder).SiLU, ….
type Activation func(b *Builder, name string, x *G.Node) *G.Node

// The functions of activations. Their derivatives follow from them: see expr.Expr.Gradient.
var (
	x0, x1   = expr.Arg(0), expr.Arg(1)
	silu     = x0.Mul(x0.Sigmoid())
	gelu     = x0.Mul(x0.Scale(math.Sqrt2 / 2).Erf().Shift(1)).Scale(.5)
	geluTanh = x0.Mul(x0.Add(x0.Square().Mul(x0).Scale(.044715)).Scale(math.Sqrt2 / math.SqrtPi).
			Tanh().Shift(1)).Scale(.5)
	hardswish   = x0.Mul(x0.Shift(3).Clamp(0, 6)).Scale(1. / 6)
	hardSigmoid = x0.Shift(3).Clamp(0, 6).Scale(1. / 6)
)

// Map adds an elementwise expression of the operands. They are repeated as op.Map says; and those of as many dimensions
// as the result, along any axis where their extent is 1, by an op.Expand where op.Map does not repeat them itself.
func (b *Builder) Map(name string, e expr.Expr, in ...*G.Node) *G.Node {
	if !b.claim(name) {
		return nil
	}
	return b.apply(name, op.Map{Expr: e}, b.broadcast(name, in)...)
}

// broadcast expands the operands of a Map that it does not repeat itself, and the largest to the result's shape.
func (b *Builder) broadcast(name string, in []*G.Node) []*G.Node {
	var y op.Shape
	largest := -1
	for i, x := range in {
		if x == nil {
			return in // an error of Apply
		}
		switch s := x.Shape(); {
		case len(s) > len(y):
			y, largest = slices.Clone(op.Shape(s)), i
		case len(s) == len(y):
			if largest >= 0 && s.TotalSize() > in[largest].Shape().TotalSize() {
				largest = i
			}
			for k := range y {
				y[k] = max(y[k], s[k])
			}
		}
	}
	in = slices.Clone(in)
	for i, x := range in {
		s := op.Shape(x.Shape())
		_, ok := op.Along(s, y)
		if ok && (i != largest || s.Equal(y)) || !repeats(s, y) {
			continue
		}
		in[i] = b.apply(name, op.Expand{Shape: y}, x)
	}
	return in
}

// repeats reports whether a tensor of shape s can be repeated to y along axes of extent 1.
func repeats(s, y op.Shape) bool {
	if len(s) != len(y) {
		return false
	}
	for k, d := range s {
		if d != 1 && d != y[k] {
			return false
		}
	}
	return true
}

// SiLU adds x·sigmoid(x), also called swish.
func (b *Builder) SiLU(name string, x *G.Node) *G.Node { return b.Map(name, silu, x) }

// Hardswish adds x·min(max(x+3, 0), 6)/6 (Howard et al. 2019).
func (b *Builder) Hardswish(name string, x *G.Node) *G.Node { return b.Map(name, hardswish, x) }

// GELU adds x·Φ(x) = ½·x·(1 + erf(x/√2)).
func (b *Builder) GELU(name string, x *G.Node) *G.Node { return b.Map(name, gelu, x) }

// GELUTanh adds the approximation ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) of GELU.
func (b *Builder) GELUTanh(name string, x *G.Node) *G.Node { return b.Map(name, geluTanh, x) }

// Sigmoid adds 1/(1 + e⁻ˣ).
func (b *Builder) Sigmoid(name string, x *G.Node) *G.Node { return b.Map(name, x0.Sigmoid(), x) }

// HardSigmoid adds min(max(x+3, 0), 6)/6.
func (b *Builder) HardSigmoid(name string, x *G.Node) *G.Node { return b.Map(name, hardSigmoid, x) }

// Scale adds x·s: s has x's shape, or a shape that op.Map repeats, such as [N,C] or [N,C,1,1] for x [N,C,H,W].
func (b *Builder) Scale(name string, x, s *G.Node) *G.Node { return b.Map(name, x0.Mul(x1), x, s) }

// SqueezeExcite scales the channels of x [N,C,H,W] (Hu, Shen, Sun 2018): by gate(fc2(act(fc1(mean over H and W)))),
// where fc1 has the given number of outputs and fc2 has C. Both are convolutions with 1×1 kernels and biases, name.fc1
// and name.fc2, as torchvision's.
func (b *Builder) SqueezeExcite(name string, x *G.Node, outputs int, act, gate Activation) *G.Node {
	s, ok := b.shape(name, x, 4)
	if !ok || !b.claim(name) {
		return nil
	}
	m := b.GlobalAvgPool(name+".avgpool", x)
	m = b.Apply(name+".reshape", op.Reshape{Shape: op.Shape{s[0], s[1], 1, 1}}, m)
	m = act(b, name+".activation", b.Conv(name+".fc1", m, Conv{Filters: outputs, Kernel: 1, Bias: true}))
	m = gate(b, name+".scale_activation", b.Conv(name+".fc2", m, Conv{Filters: s[1], Kernel: 1, Bias: true}))
	return b.Scale(name+".scale", x, m)
}

// ECA scales the channels of x [N,C,H,W] by the sigmoid of a convolution over the means of neighbouring channels, with
// the parameter name.conv.weight [1,1,K] (Wang et al., ECA-Net, 2020). K is odd, at least 3 and about ½·log₂ 2C.
func (b *Builder) ECA(name string, x *G.Node) *G.Node {
	s, ok := b.shape(name, x, 4)
	if !ok {
		return nil
	}
	return b.eca(name, x, s[1])
}

// eca is ECA with the kernel for a number of channels.
func (b *Builder) eca(name string, x *G.Node, channels int) *G.Node {
	s, ok := b.shape(name, x, 4)
	if !ok || !b.claim(name) {
		return nil
	}
	k := int(math.Log2(float64(channels))+1) / 2
	k = max(3, k+1-k%2)
	w := b.param(Param{Name: name + ".conv.weight", Shape: op.Shape{1, 1, k}, Init: FanInUniform(k)})
	w = b.Apply(name+".taps", op.Reshape{Shape: op.Shape{1, 1, k, 1}}, w)
	w = b.Apply(name+".kernel", op.Filters{Height: 1, Width: k}, w)
	m := b.Apply(name+".row", op.Reshape{Shape: op.Shape{s[0], 1, 1, s[1]}}, b.GlobalAvgPool(name+".avgpool", x))
	o := op.Conv2D{Stride: square(1), Pad: [2]int{0, (k - 1) / 2}, Dilation: square(1), Groups: 1}
	m = b.Apply(name+".gates", op.Reshape{Shape: op.Shape{s[0], s[1]}}, b.Apply(name+".conv", o, m, w))
	return b.Scale(name+".scale", x, b.Sigmoid(name+".sigmoid", m))
}
