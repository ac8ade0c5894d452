package devicetest

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// gradients compares the gradient ops with finite differences of the device's own forward ops.
func (s *suite) gradients(t tester) {
	for _, c := range differentiable {
		if err := s.gradient(c.build); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// differentiable are small programs, each with one kind of op to differentiate. They give their result.
var differentiable = []struct {
	name  string
	build func(n *net) int
}{
	{"conv2d", func(n *net) int {
		o := op.Conv2D{Stride: [2]int{2, 1}, Pad: [2]int{1, 2}, Dilation: [2]int{1, 2}, Groups: 2}
		return n.apply(o, n.data(distinct, 2, 4, 6, 5), n.weight(distinct, 6, 2, 3, 2), n.weight(distinct, 6))
	}},
	{"batch norm", func(n *net) int {
		x := n.data(distinct, 3, 4, 2, 3)
		stats := n.apply(op.BatchNormStats{}, x)
		return n.apply(op.BatchNorm{Eps: 1e-3}, x, stats, n.weight(distinct, 4), n.weight(distinct, 4))
	}},
	{"batch norm, fixed", func(n *net) int {
		x, stats := n.data(distinct, 3, 4, 2, 3), n.constant(uniform(.5, 1), 2, 4)
		return n.apply(op.BatchNorm{Eps: 1e-3, Fixed: true}, x, stats, n.weight(distinct, 4), n.weight(distinct, 4))
	}},
	{"relu", func(n *net) int { return n.apply(op.ReLU{}, n.data(distinct, 2, 3, 4, 4)) }},
	{"add", func(n *net) int { return n.apply(op.Add{}, n.data(distinct, 2, 3, 2, 4), n.data(distinct, 2, 3, 2, 4)) }},
	{"map", func(n *net) int {
		return n.apply(op.Map{Expr: silu.Mul(x1.Tanh()).Add(x2.Exp())}, n.data(distinct, 2, 3, 2, 4),
			n.data(distinct, 2, 3), n.weight(distinct, 3))
	}},
	{"map, samples and pixels", func(n *net) int {
		return n.apply(op.Map{Expr: x0.Mul(x1).Div(x2.Square().Shift(1))}, n.data(distinct, 2, 3, 2, 4),
			n.data(distinct, 2, 1, 1, 1), n.data(distinct, 1, 1, 2, 4))
	}},
	{"map, channels", func(n *net) int {
		return n.apply(op.Map{Expr: x0.Mul(x1).Add(x2)}, n.data(distinct, 2, 3, 2, 4), n.weight(distinct, 3, 1, 1),
			n.data(distinct, 1, 3, 1, 1))
	}},
	{"map, dropout", func(n *net) int {
		return n.apply(op.Map{Expr: dropped(.5, false)}, n.data(distinct, 2, 3, 2, 4), n.counter())
	}},
	{"map, extremes", func(n *net) int {
		return n.apply(op.Map{Expr: x0.Max(x1.Scale(.5)).Min(expr.Const(.3))}, n.data(distinct, 2, 3, 2, 4),
			n.data(distinct, 2, 3, 2, 4))
	}},
	{"an operand used twice", func(n *net) int {
		x := n.data(distinct, 2, 3, 2, 4)
		return n.apply(op.Add{}, x, n.apply(op.ReLU{}, x))
	}},
	{"max pool", func(n *net) int {
		o := op.MaxPool{Kernel: [2]int{3, 2}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}
		return n.apply(o, n.data(distinct, 2, 2, 5, 4))
	}},
	{"avg pool", func(n *net) int {
		o := op.AvgPool{Kernel: [2]int{3, 2}, Stride: [2]int{2, 2}, Pad: [2]int{1, 0}}
		return n.apply(o, n.data(distinct, 2, 3, 5, 6))
	}},
	{"global avg pool", func(n *net) int { return n.apply(op.GlobalAvgPool{}, n.data(distinct, 2, 3, 5, 4)) }},
	{"shortcut", func(n *net) int {
		return n.apply(op.Shortcut{Stride: 2, Channels: 7},
			n.data(distinct, 2, 3, 5, 4))
	}},
	{"flatten", func(n *net) int { return n.apply(op.Flatten{}, n.data(distinct, 2, 3, 5, 4)) }},
	{"reshape", func(n *net) int { return n.apply(op.Reshape{Shape: op.Shape{2, 3, 5, 4}}, n.data(distinct, 6, 20)) }},
	{"linear", func(n *net) int {
		return n.apply(op.Linear{}, n.data(distinct, 3, 7), n.weight(distinct, 5, 7), n.weight(distinct, 5))
	}},
	{"reduce, sum", func(n *net) int {
		return n.apply(op.Reduce{By: op.Sum, Axes: []int{0, 2}}, n.data(distinct, 2, 3, 4, 2))
	}},
	{"reduce, mean", func(n *net) int {
		return n.apply(op.Reduce{By: op.Mean, Axes: []int{1, 2}}, n.data(distinct, 3, 4, 5))
	}},
	{"reduce, max", func(n *net) int { return n.apply(op.Reduce{By: op.Max, Axes: []int{1}}, n.data(distinct, 7, 5)) }},
	{"matmul", func(n *net) int { return n.apply(op.MatMul{}, n.data(distinct, 2, 3, 4), n.data(distinct, 2, 4, 5)) }},
	{"matmul, transposed", func(n *net) int {
		y := n.apply(op.MatMul{TransB: true}, n.data(distinct, 2, 3, 4), n.data(distinct, 2, 5, 4))
		return n.apply(op.MatMul{TransA: true, TransB: true}, y, n.data(distinct, 2, 6, 3))
	}},
	{"permute", func(n *net) int { return n.apply(op.Permute{Axes: []int{2, 0, 3, 1}}, n.data(distinct, 2, 3, 4, 5)) }},
	{"slice", func(n *net) int {
		return n.apply(op.Slice{From: []int{0, 1, 2}, To: []int{1, 3, 5}}, n.data(distinct, 2, 3, 5))
	}},
	{"pad", func(n *net) int {
		return n.apply(op.Pad{Before: []int{0, 1, 0, 2}, After: []int{0, 0, 3, 1}}, n.data(distinct, 2, 3, 4, 5))
	}},
	{"concat", func(n *net) int {
		return n.apply(op.Concat{Axis: 1}, n.data(distinct, 2, 3, 4, 5), n.data(distinct, 2, 1, 4, 5))
	}},
	{"expand", func(n *net) int {
		return n.apply(op.Expand{Shape: op.Shape{3, 2, 4, 2}}, n.data(distinct, 1, 2, 1, 2))
	}},
	{"roll", func(n *net) int { return n.apply(op.Roll{By: []int{0, 1, -2}}, n.data(distinct, 2, 3, 5)) }},
	{"gather", func(n *net) int {
		return n.apply(op.Gather{Axis: 1}, n.data(distinct, 2, 3, 4), n.labels(listed(2, 0, 2, 1, 2), 5))
	}},
	{"layer norm", func(n *net) int {
		return n.apply(op.LayerNorm{Eps: 1e-3}, n.data(distinct, 2, 3, 6), n.weight(distinct, 6), n.weight(distinct, 6))
	}},
	{"rms norm", func(n *net) int {
		return n.apply(op.RMSNorm{Eps: 1e-3}, n.data(distinct, 2, 3, 6), n.weight(distinct, 6))
	}},
	{"group norm", func(n *net) int {
		return n.apply(op.GroupNorm{Groups: 3, Eps: 1e-3}, n.data(distinct, 2, 6, 3, 2), n.weight(distinct, 6),
			n.weight(distinct, 6))
	}},
	{"softmax", func(n *net) int { return n.apply(op.Softmax{}, n.data(distinct, 2, 3, 6)) }},
	{"attention", func(n *net) int {
		return n.apply(op.Attention{Scale: .7}, n.data(distinct, 4, 3, 5), n.data(distinct, 4, 6, 5),
			n.data(distinct, 4, 6, 2), n.weight(distinct, 2, 3, 6))
	}},
	{"self-attention", func(n *net) int {
		return n.apply(op.SelfAttention{Tokens: 3, Heads: 2, Scale: .7}, n.data(distinct, 6, 12), n.weight(distinct, 2, 3, 3))
	}},
	{"tokens", func(n *net) int { return n.apply(op.Tokens{}, n.data(distinct, 2, 3, 4, 5)) }},
	{"planes", func(n *net) int { return n.apply(op.Planes{Height: 4, Width: 5}, n.data(distinct, 2, 20, 3)) }},
	{"taps", func(n *net) int { return n.apply(op.Taps{}, n.weight(distinct, 4, 3, 2, 5)) }},
	{"filters", func(n *net) int { return n.apply(op.Filters{Height: 2, Width: 5}, n.data(distinct, 1, 4, 10, 3)) }},
	{"softmax cross-entropy", func(n *net) int {
		return n.apply(op.SoftmaxCrossEntropy{Smoothing: .1}, n.data(distinct, 6, 5), n.labels(integers(-1, 4), 6))
	}},
	{"cross-entropy by targets", func(n *net) int {
		return n.apply(op.TargetLoss{}, n.data(distinct, 6, 5), n.constant(uniform(0, 1), 6, 5))
	}},
	{"focal loss", func(n *net) int {
		return n.apply(op.FocalLoss{Gamma: 1.5}, n.data(distinct, 6, 5), n.constant(uniform(0, 1), 6, 5))
	}},
	{"asymmetric loss", func(n *net) int {
		return n.apply(op.AsymmetricLoss{Positive: 1, Negative: 3, Margin: .05}, n.data(distinct, 6, 5),
			n.constant(uniform(0, 1), 6, 5))
	}},
	{"distillation", func(n *net) int {
		return n.apply(op.DistillLoss{Temperature: 3}, n.data(distinct, 6, 5), n.constant(uniform(-3, 3), 6, 5))
	}},
	{"squared error", func(n *net) int {
		return n.apply(op.RegressionLoss{}, n.data(distinct, 6, 5), n.constant(uniform(-1, 1), 6, 5))
	}},
	{"Huber loss", func(n *net) int {
		return n.apply(op.RegressionLoss{Delta: 1}, n.data(distinct, 6, 5), n.constant(uniform(-1, 1), 6, 5))
	}},
	{"binary cross-entropy by targets", func(n *net) int {
		return n.apply(op.TargetLoss{Binary: true}, n.data(distinct, 6, 5), n.constant(uniform(0, 1), 6, 5))
	}},
}

// gradient compares the gradients of the sum of dy*y with finite differences along random directions.
func (s *suite) gradient(build func(n *net) int) error {
	h, tolerance := 1e-5, 1e-7
	if s.dtype == op.Float32 {
		h, tolerance = 2e-3, max(5e-3, 100*s.tolerance)
	}
	forward := newNet(s.dtype, "gradient")
	y := build(forward)
	forward.keep(y)
	forward.decompose(s.dev)

	full := newNet(s.dtype, "gradient")
	build(full)
	dy := full.outside("dy", s.dtype, device.Data, uniform(-1, 1), full.Values[y].Type.Shape...)
	grads := full.backward(y, dy, full.moving...)
	for i, g := range grads {
		if g < 0 {
			return fmt.Errorf("no gradient with respect to operand %d", i)
		}
	}
	full.decompose(s.dev)
	full.Keep = grads // one for each operand, also where two are the same
	analytic, err := s.once(full.program, full.alone())
	if err != nil {
		return err
	}
	cotangent := floats(full.given[dy])

	for i, v := range forward.moving {
		x := forward.given[v]
		at, up, down := floats(x), floats(x), floats(x)
		direction := make([]float64, len(at))
		uniform(-1, 1)(forward.r, direction)
		for k, d := range direction {
			up[k] += h * d
			down[k] -= h * d
		}
		var results [2][]float64
		for side, moved := range [][]float64{up, down} {
			forward.given[v] = tensor(x.Type(), moved)
			copy(moved, floats(forward.given[v])) // as rounded
			r, err := s.once(forward.program, forward.alone())
			if err != nil {
				return err
			}
			results[side] = floats(r[0])
		}
		forward.given[v] = x

		var numeric, sum, size float64
		for k, c := range cotangent {
			numeric += c * (results[0][k] - results[1][k]) / 2
		}
		for k, g := range floats(analytic[i]) {
			part := g * (up[k] - down[k]) / 2
			sum += part
			size += math.Abs(part)
		}
		if d := math.Abs(sum - numeric); !(d <= tolerance*size) {
			return fmt.Errorf("with respect to operand %d, %v: the gradient's derivative along a direction is %v, "+
				"finite differences give %v",
				i, x.Type(), sum/h, numeric/h)
		}
	}
	return nil
}

// once runs p and gives the kept values.
func (s *suite) once(p *program, groups [][]int) ([]op.Tensor, error) {
	j, err := describe(s.dev, p, groups)
	if err != nil {
		return nil, err
	}
	b, err := j.bind(placement{})
	if err != nil {
		return nil, err
	}
	defer b.memory.Free()
	if err := b.fill(); err != nil {
		return nil, err
	}
	return b.run()
}

// grouping is a way to run a program: as the device rewrote it, perhaps.
type grouping struct {
	name    string
	program *program
	groups  [][]int
}

// groupings are the ways to run p on the device: every step alone, and as the device likes it.
func (s *suite) groupings(p *program) ([]grouping, error) {
	all := []grouping{{"one by one", p, p.alone()}}
	g, ok := device.As[device.Grouper](s.dev)
	if !ok {
		return all, nil
	}
	if r, ok := device.As[device.Rewriter](s.dev); ok {
		q := *p
		q.Values, q.Steps = slices.Clone(p.Values), slices.Clone(p.Steps)
		r.Rewrite(&q.Program)
		p = &q
	}
	groups, err := p.grouped(g.Group(&p.Program))
	return append(all, grouping{"grouped", p, groups}), err
}
