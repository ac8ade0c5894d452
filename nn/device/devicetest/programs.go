package devicetest

import (
	"math/rand/v2"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// net is a program with the means to write layers down.
type net struct {
	*program
	r      *rand.Rand
	dtype  op.DType
	moving []int // operands with a gradient
}

func newNet(d op.DType, name string) *net {
	return &net{program: newProgram(), r: newRand(name), dtype: d}
}

// outside adds a value from outside.
func (n *net) outside(name string, d op.DType, role device.Role, f fill, shape ...int) int {
	t := op.Type{DType: d, Shape: shape}
	x := make([]float64, t.Shape.Size())
	f(n.r, x)
	return n.input(name, role, tensor(t, x))
}

// data adds an activation that has a gradient.
func (n *net) data(f fill, shape ...int) int {
	v := n.outside("x", n.dtype, device.Data, f, shape...)
	n.moving = append(n.moving, v)
	return v
}

// weight adds a parameter.
func (n *net) weight(f fill, shape ...int) int {
	v := n.outside("w", n.dtype, device.Weight, f, shape...)
	n.moving = append(n.moving, v)
	return v
}

// constant adds a state without gradient.
func (n *net) constant(f fill, shape ...int) int {
	return n.outside("state", n.dtype, device.Weight, f, shape...)
}

func (n *net) labels(f fill, count int) int {
	return n.outside("labels", op.Int32, device.Data, f, count)
}

// counter adds a counter of random numbers.
func (n *net) counter() int { return n.outside("counter", op.Int32, device.Data, listed(3, 17), 2) }

// images adds pixels with crops, padded and flipped, as normalised activations of the given size.
func (n *net) images(count, channels, size int) int {
	mean, std := []float64{.49, .48, .45}[:channels], []float64{.25, .24, .26}[:channels]
	pixels := n.outside("pixels", op.Uint8, device.Data, integers(0, 255), count, size, size, channels)
	crops := n.outside("crops", op.Int32, device.Data, integers(0, 1), count, 3)
	return n.apply(op.Images{DType: n.dtype, Height: size, Width: size, Mean: mean, Std: std}, pixels, crops)
}

// conv adds a convolution without bias.
func (n *net) conv(x, out, kernel, stride int) int {
	in := n.Values[x].Type.Shape[1]
	o := op.Conv2D{Stride: [2]int{stride, stride}, Pad: [2]int{kernel / 2, kernel / 2},
		Dilation: [2]int{1, 1}, Groups: 1}
	return n.apply(o, x, n.weight(uniform(-.3, .3), out, in, kernel, kernel))
}

// norm adds a batch normalisation of a batch, and the update of its statistics, which is kept.
func (n *net) norm(x int) int {
	s := n.Values[x].Type.Shape
	stats := n.apply(op.BatchNormStats{}, x)
	running, momentum := n.constant(uniform(.5, 1), 2, s[1]),
		n.outside("momentum", n.dtype, device.Data, constant(.1), 1)
	n.keep(n.apply(op.BatchNormUpdate{Count: s.Size() / s[1]}, running, stats, momentum))
	return n.apply(op.BatchNorm{Eps: 1e-5}, x, stats, n.weight(uniform(.5, 1.5), s[1]),
		n.weight(uniform(-.5, .5), s[1]))
}

// fixedNorm adds a batch normalisation by running statistics.
func (n *net) fixedNorm(x int) int {
	c := n.Values[x].Type.Shape[1]
	return n.apply(op.BatchNorm{Eps: 1e-5, Fixed: true}, x, n.constant(uniform(.5, 1), 2, c),
		n.weight(uniform(.5, 1.5), c), n.weight(uniform(-.5, .5), c))
}

func (n *net) relu(x int) int { return n.apply(op.ReLU{}, x) }

// perceptron trains linear layers with activations in between.
func (n *net) perceptron(rows, in, first, second int) {
	x := n.apply(op.Map{Expr: gelu}, n.linear(n.data(uniform(-1, 1), rows, in), first))
	x = n.apply(op.Map{Expr: silu}, n.linear(x, second))
	y := n.apply(op.Map{Expr: x0.Mul(x1)}, x, n.linear(x, second))
	n.train(n.linear(n.apply(op.Add{}, x, y), 10))
}

func (n *net) linear(x, out int) int {
	return n.apply(op.Linear{}, x, n.weight(uniform(-.2, .2), out, n.Values[x].Type.Shape[1]),
		n.weight(uniform(-.1, .1), out))
}

// layerNorm adds a normalisation of rows.
func (n *net) layerNorm(x int) int {
	s := n.Values[x].Type.Shape
	c := s[len(s)-1]
	return n.apply(op.LayerNorm{Eps: 1e-5}, x, n.weight(uniform(.5, 1.5), c), n.weight(uniform(-.5, .5), c))
}

// rows makes x [...,C] a matrix.
func (n *net) rows(x int) int {
	s := n.Values[x].Type.Shape
	c := s[len(s)-1]
	return n.apply(op.Reshape{Shape: op.Shape{s.Size() / c, c}}, x)
}

// attention adds self-attention of x [N,T,C] with the given number of heads, by one layer for queries, keys and values.
func (n *net) attention(x, heads int) int {
	s := n.Values[x].Type.Shape
	y := n.apply(op.SelfAttention{Tokens: s[1], Heads: heads, Scale: .5}, n.linear(n.rows(x), 3*s[2]),
		n.weight(uniform(-1, 1), heads, s[1], s[1]))
	y = n.linear(y, s[2])
	return n.apply(op.Reshape{Shape: s}, y)
}

// loss adds the loss and the score of logits with random labels.
func (n *net) loss(logits int, smoothing float64) int {
	s := n.Values[logits].Type.Shape
	labels := n.labels(integers(0, s[1]-1), s[0])
	n.keep(n.apply(op.Score{}, logits, labels))
	return n.apply(op.SoftmaxCrossEntropy{Smoothing: smoothing}, logits, labels)
}

// train keeps y, and adds and keeps the gradients of all trained operands.
func (n *net) train(y int) {
	wrt := n.moving
	n.keep(y)
	dy := n.outside("dy", n.dtype, device.Data, uniform(.5, 1), n.Values[y].Type.Shape...)
	n.keep(n.backward(y, dy, wrt...)...)
}

// nets are pieces of real nets with the steps that devices group.
var nets = []struct {
	name  string
	build func(n *net)
}{
	{"frozen normalisation", func(n *net) { // only the gradient reads the sums, and only their update the statistics
		x := n.data(uniform(0, 1), 3, 8, 5, 5)
		w := n.moving
		y := n.relu(n.norm(n.conv(x, 8, 3, 1)))
		n.moving = w
		n.train(n.conv(y, 8, 1, 1))
		z := n.outside("z", n.dtype, device.Data, uniform(-1, 1), 3, 8, 5, 5)
		n.norm(z)
	}},
	{"residual block", func(n *net) {
		x := n.data(uniform(0, 1), 3, 16, 7, 7)
		y := n.relu(n.norm(n.conv(x, 16, 3, 1)))
		y = n.norm(n.conv(y, 16, 3, 1))
		n.train(n.relu(n.apply(op.Add{}, y, x)))
	}},
	{"bottleneck with projection", func(n *net) {
		x := n.data(uniform(0, 1), 2, 16, 9, 9)
		y := n.relu(n.norm(n.conv(x, 8, 1, 1)))
		y = n.relu(n.norm(n.conv(y, 8, 3, 2)))
		y = n.norm(n.conv(y, 33, 1, 1))
		y = n.relu(n.apply(op.Add{}, y, n.norm(n.conv(x, 33, 1, 2))))
		n.train(y)
	}},
	{"two blocks, the first kept", func(n *net) {
		x := n.relu(n.norm(n.conv(n.data(uniform(0, 1), 2, 5, 6, 6), 17, 3, 1)))
		n.keep(x)
		y := n.norm(n.conv(x, 17, 3, 1))
		y = n.relu(n.apply(op.Add{}, x, y))
		n.train(n.apply(op.GlobalAvgPool{}, y))
	}},
	{"option A shortcut", func(n *net) {
		x := n.data(uniform(0, 1), 2, 5, 8, 8)
		y := n.relu(n.norm(n.conv(x, 10, 3, 2)))
		y = n.norm(n.conv(y, 10, 3, 1))
		n.train(n.relu(n.apply(op.Add{}, y, n.apply(op.Shortcut{Stride: 2, Channels: 10}, x))))
	}},
	{"image net", func(n *net) {
		x := n.relu(n.norm(n.conv(n.images(4, 3, 18), 16, 7, 2)))
		x = n.apply(op.MaxPool{Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}, x)
		y := n.norm(n.conv(n.relu(n.norm(n.conv(x, 16, 3, 1))), 16, 3, 1))
		x = n.relu(n.apply(op.Add{}, y, x))
		n.train(n.loss(n.linear(n.apply(op.GlobalAvgPool{}, x), 10), .1))
	}},
	{"LeNet", func(n *net) {
		half := op.AvgPool{Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}}
		bias := func(x, out int) int {
			o := op.Conv2D{Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
			c := n.Values[x].Type.Shape[1]
			return n.apply(o, x, n.weight(uniform(-.2, .2), out, c, 5, 5), n.weight(uniform(-.1, .1), out))
		}
		x := n.apply(half, n.relu(bias(n.images(3, 1, 28), 6)))
		x = n.apply(op.MaxPool{Kernel: half.Kernel, Stride: half.Stride}, n.relu(bias(x, 16)))
		x = n.relu(n.linear(n.apply(op.Flatten{}, x), 33))
		n.train(n.loss(n.linear(x, 10), 0))
	}},
	{"evaluation", func(n *net) {
		x := n.relu(n.fixedNorm(n.conv(n.images(2, 3, 12), 16, 3, 2)))
		y := n.fixedNorm(n.conv(n.relu(n.fixedNorm(n.conv(x, 16, 3, 1))), 16, 1, 1))
		x = n.relu(n.apply(op.Add{}, x, y))
		n.keep(n.loss(n.linear(n.apply(op.GlobalAvgPool{}, x), 10), 0))
	}},
	{"evaluation in groups", func(n *net) { // lines of 10 pixels, which runs of 7 or 4 share
		x := n.data(uniform(-1, 1), 2, 16, 5, 10)
		o := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 2}
		y := n.fixedNorm(n.apply(o, x, n.weight(uniform(-.2, .2), 16, 8, 3, 3)))
		n.keep(n.relu(n.apply(op.Add{}, y, n.data(uniform(-1, 1), 2, 16, 5, 10))))
	}},
	{"squeeze and excite", func(n *net) {
		x := n.apply(op.Map{Expr: hardswish}, n.norm(n.conv(n.data(uniform(0, 1), 3, 5, 7, 7), 16, 3, 1)))
		s := n.apply(op.Map{Expr: silu}, n.linear(n.apply(op.GlobalAvgPool{}, x), 8))
		x = n.apply(op.Map{Expr: excited}, x, n.linear(s, 16))
		n.train(n.norm(n.conv(x, 9, 1, 1)))
	}},
	{"dropout and stochastic depth", func(n *net) {
		x := n.data(uniform(0, 1), 6, 9, 5, 5)
		y, c := n.norm(n.conv(x, 9, 3, 1)), n.counter()
		x = n.apply(op.Add{}, x, n.apply(op.Map{Expr: dropped(.5, true)}, y, c))
		n.train(n.linear(n.apply(op.Map{Expr: dropped(.25, false)}, n.apply(op.GlobalAvgPool{}, x), c), 10))
	}},
	{"expressions of expressions", func(n *net) {
		x := n.conv(n.data(uniform(0, 1), 2, 5, 6, 6), 9, 3, 1)
		y := n.apply(op.Map{Expr: x0.Mul(x1).Add(x2)}, x, n.weight(uniform(.5, 1), 9), n.weight(uniform(-1, 1), 9))
		z := n.apply(op.Map{Expr: gelu}, n.apply(op.Map{Expr: x0.Scale(.5).Tanh()}, y))
		n.train(n.apply(op.GlobalAvgPool{}, n.apply(op.Map{Expr: x0.Add(x1).Max(expr.Const(0))}, z, y)))
	}},
	{"fine-tuning by fixed statistics", func(n *net) {
		x := n.data(uniform(0, 1), 2, 5, 6, 6)
		n.train(n.relu(n.fixedNorm(n.conv(x, 9, 3, 1))))
	}},
	{"transformer block", func(n *net) {
		x := n.apply(op.Tokens{}, n.conv(n.images(2, 3, 8), 12, 2, 2))
		class := n.apply(op.Expand{Shape: op.Shape{2, 1, 12}}, n.weight(uniform(-1, 1), 1, 1, 12))
		x = n.apply(op.Concat{Axis: 1}, class, x)
		s := n.Values[x].Type.Shape
		x = n.apply(op.Map{Expr: x0.Add(x1)}, x, n.weight(uniform(-1, 1), 1, s[1], s[2]))
		x = n.apply(op.Add{}, x, n.attention(n.layerNorm(x), 3))
		y := n.apply(op.Map{Expr: gelu}, n.linear(n.rows(n.layerNorm(x)), 24))
		x = n.apply(op.Add{}, x, n.apply(op.Reshape{Shape: s}, n.linear(y, 12)))
		x = n.apply(op.SliceAxis(s, 1, 0, 1), n.layerNorm(x))
		n.train(n.loss(n.linear(n.rows(x), 10), .1))
	}},
	{"wide perceptron", func(n *net) { n.perceptron(30, 17, 100, 300) }},
	{"perceptron of many rows", func(n *net) { n.perceptron(1200, 9, 40, 24) }},
	{"evaluation of scaled branches", func(n *net) {
		x := n.data(uniform(0, 1), 2, 18, 6, 4)
		y := n.apply(op.Map{Expr: gelu}, n.linear(n.rows(n.layerNorm(n.apply(op.Tokens{}, x))), 40))
		y = n.apply(op.Reshape{Shape: op.Shape{2, 24, 18}}, n.linear(y, 18))
		y = n.apply(op.Map{Expr: x0.Mul(x1)}, n.apply(op.Planes{Height: 6, Width: 4}, y), n.weight(uniform(.5, 1), 18, 1, 1))
		x = n.apply(op.Add{}, y, x)
		y = n.apply(op.Map{Expr: x0.Mul(x1)}, n.weight(uniform(-1, 1), 18), n.conv(x, 18, 3, 1))
		x = n.relu(n.apply(op.Add{}, x, y))
		z := n.apply(op.GlobalAvgPool{}, x)
		z = n.apply(op.Add{}, z, n.apply(op.Map{Expr: x0.Mul(x1)}, n.linear(z, 18), n.weight(uniform(.5, 1), 18)))
		for _, other := range [][2]op.Shape{{{2, 12, 18}, {12}}, {{2, 12, 18}, {1, 12, 1}}, {{8, 54}, {54}}} {
			y := n.apply(op.Reshape{Shape: other[0]}, n.linear(n.data(uniform(0, 1), 24, 7), 18))
			n.keep(n.apply(op.Map{Expr: x0.Mul(x1)}, y, n.weight(uniform(.5, 1), other[1]...)))
		}
		gate := n.weight(uniform(.5, 1), 2, 1)
		n.keep(n.apply(op.Add{}, z, n.apply(op.Map{Expr: x0.Mul(x1)}, n.linear(z, 18), gate)))
	}},
	{"standardised weights", func(n *net) {
		x := n.data(uniform(0, 1), 2, 6, 7, 5)
		for _, c := range []struct{ filters, in, kernel, groups int }{{8, 6, 3, 1}, {12, 8, 1, 1}, {12, 4, 3, 3}} {
			w := n.apply(op.Taps{}, n.weight(uniform(-1, 1), c.filters, c.in, c.kernel, c.kernel))
			w = n.apply(op.GroupNorm{Groups: c.filters, Eps: 1e-3}, w, n.weight(uniform(.5, 1), c.filters),
				n.weight(uniform(-1, 1), c.filters))
			x = n.relu(n.apply(op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{c.kernel / 2, c.kernel / 2}, Dilation: [2]int{1, 1},
				Groups: c.groups}, x, n.apply(op.Filters{Height: c.kernel, Width: c.kernel}, w)))
		}
		n.train(x)
	}},
	{"convolution between rows", func(n *net) {
		x := n.norm(n.conv(n.data(uniform(0, 1), 2, 5, 6, 4), 9, 3, 1))
		y := n.layerNorm(n.apply(op.Tokens{}, x))
		y = n.apply(op.Map{Expr: gelu}, n.linear(n.rows(y), 9))
		y = n.apply(op.Planes{Height: 6, Width: 4}, n.apply(op.Reshape{Shape: op.Shape{2, 24, 9}}, y))
		n.train(n.apply(op.GroupNorm{Groups: 3, Eps: 1e-3}, n.apply(op.Add{}, x, y), n.weight(uniform(.5, 1), 9),
			n.weight(uniform(-1, 1), 9)))
	}},
}

// programs runs pieces of real nets, single and grouped, with only the results of training kept, and with all results
// kept, which a group then has to write.
func (s *suite) programs(t tester) {
	for _, c := range nets {
		for _, all := range []bool{false, true} {
			n := newNet(s.dtype, c.name)
			c.build(n)
			name := c.name
			if all {
				name += ", all results kept"
				for _, step := range n.Steps {
					n.keep(step.Out)
				}
			}
			n.decompose(s.dev)
			groupings, err := s.groupings(n.program)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, g := range groupings {
				check := func() error { return s.conform(g.program, g.groups, 5*s.tolerance) }
				if s.round != nil {
					check = func() error { return s.stepwise(s.roundedProgram(g.program), g.groups) }
				}
				if err := check(); err != nil {
					t.Errorf("%s, %s: %v", name, g.name, err)
				}
			}
		}
	}
}
