package onnx

import (
	"math"
	"slices"
	"testing"

	"onlinerna/nn/op"
)

// run computes the graph as the standard of ONNX says.
func (m onnxFile) run(t *testing.T, x ...op.Tensor) op.Tensor {
	t.Helper()
	values := map[string]op.Tensor{}
	for i, in := range m.inputs {
		values[in.name] = x[i]
	}
	for name, v := range m.tensors {
		values[name] = v
	}
	for _, n := range m.nodes {
		var in []op.Tensor
		var ints [][]int // operands that are integers
		for _, name := range n.in {
			v, ok := values[name]
			i, isInt := m.integers[name]
			if !ok && !isInt {
				t.Fatalf("%s reads %s, which is not there yet", n.name, name)
			}
			if isInt {
				ints = append(ints, i)
			} else {
				in = append(in, v)
			}
		}
		if _, ok := values[n.out]; ok {
			t.Fatalf("%s is written twice", n.out)
		}
		switch {
		case n.kind == "Shape":
			m.integers[n.out] = in[0].Shape
		case len(in) == 0 && n.kind == "Slice":
			m.integers[n.out] = ints[0][ints[1][0]:ints[2][0]]
		case len(in) == 0 && n.kind == "Concat":
			m.integers[n.out] = slices.Concat(ints...)
		default:
			values[n.out] = n.run(t, in, ints)
		}
	}
	return values[m.output.name]
}

func (n node) attribute(name string) any {
	for _, a := range n.attributes {
		if a.name == name {
			return a.value
		}
	}
	return nil
}

func (n node) run(t *testing.T, in []op.Tensor, ints [][]int) op.Tensor {
	two := func(name string) [2]int { return [2]int(n.attribute(name).([]int)[:2]) }
	pads := func() [2]int {
		p := n.attribute("pads").([]int)
		if p[0] != p[2] || p[1] != p[3] {
			t.Fatalf("%s: pads %v", n.name, p)
		}
		return [2]int(p[:2])
	}
	apply := func(o op.Op, in ...op.Tensor) op.Tensor {
		types := make([]op.Type, len(in))
		for i := range in {
			types[i] = in[i].Type()
		}
		typ, err := o.Infer(types...)
		if err != nil {
			t.Fatal(n.name, err)
		}
		y := op.New(typ)
		if err := o.Run(y, in...); err != nil {
			t.Fatal(n.name, err)
		}
		return y
	}
	shaped := func(shape ...int) op.Tensor {
		s := slices.Clone(op.Shape(shape))
		for i, d := range s {
			if d == 0 {
				s[i] = in[0].Shape[i]
			}
		}
		if i := slices.Index(s, -1); i >= 0 {
			s[i] = 1
			s[i] = in[0].Shape.Size() / s.Size()
		}
		if s.Size() != in[0].Shape.Size() {
			t.Fatalf("%s: %v cannot become %v", n.name, in[0].Shape, s)
		}
		return op.Tensor{Shape: s, Data: in[0].Data}
	}
	switch n.kind {
	case "Conv":
		if k := n.attribute("kernel_shape").([]int); !slices.Equal(k, in[1].Shape[2:]) {
			t.Fatalf("%s: kernel %v, weights %v", n.name, k, in[1].Shape)
		}
		return apply(op.Conv2D{Stride: two("strides"), Pad: pads(), Dilation: two("dilations"),
			Groups: n.attribute("group").(int)}, in...)
	case "Gemm":
		if n.attribute("transB") != 1 {
			t.Fatalf("%s: transB is %v", n.name, n.attribute("transB"))
		}
		return apply(op.Linear{}, in...)
	case "BatchNormalization":
		stats := op.Tensor{Shape: op.Shape{2, in[3].Shape[0]},
			Data: slices.Concat(in[3].Data.([]float32), in[4].Data.([]float32))}
		return apply(op.BatchNorm{Eps: float64(n.attribute("epsilon").(float32)), Fixed: true}, in[0], stats,
			in[1], in[2])
	case "MaxPool":
		return apply(op.MaxPool{Kernel: two("kernel_shape"), Stride: two("strides"), Pad: pads()}, in...)
	case "AveragePool":
		if n.attribute("count_include_pad") != 1 {
			t.Fatalf("%s: zeros around are not counted", n.name)
		}
		return apply(op.AvgPool{Kernel: two("kernel_shape"), Stride: two("strides"), Pad: pads()}, in...)
	case "GlobalAveragePool":
		y := apply(op.GlobalAvgPool{}, in...)
		y.Shape = append(y.Shape, 1, 1)
		return y
	case "Flatten":
		return shaped(0, in[0].Shape[1:].Size())
	case "Reshape":
		return shaped(ints[0]...)
	case "LayerNormalization":
		return apply(op.LayerNorm{Eps: float64(n.attribute("epsilon").(float32))}, in...)
	case "Softmax":
		return apply(op.Softmax{}, in...)
	case "Transpose":
		return apply(op.Permute{Axes: n.attribute("perm").([]int)}, in...)
	case "Concat":
		return apply(op.Concat{Axis: n.attribute("axis").(int)}, in...)
	case "Gather":
		index := op.Tensor{Shape: op.Shape{len(ints[0])}, Data: make([]int32, len(ints[0]))}
		for i, k := range ints[0] {
			index.Data.([]int32)[i] = int32(k)
		}
		return apply(op.Gather{Axis: n.attribute("axis").(int)}, in[0], index)
	case "MatMul":
		return apply(op.MatMul{}, in...)
	case "ReduceMean":
		return apply(op.Reduce{By: op.Mean, Axes: n.attribute("axes").([]int)}, in...)
	case "ReduceMax":
		return apply(op.Reduce{By: op.Max, Axes: n.attribute("axes").([]int)}, in...)
	case "ReduceSum":
		return apply(op.Reduce{By: op.Sum, Axes: ints[0]}, in...)
	case "Expand":
		for i, n := range ints[0] {
			if n == 1 {
				ints[0][i] = in[0].Shape[i]
			}
		}
		return apply(op.Expand{Shape: ints[0]}, in...)
	case "Slice":
		if len(ints) == 3 {
			o := op.Slice{From: make([]int, len(in[0].Shape)), To: slices.Clone(in[0].Shape)}
			for i, a := range ints[2] {
				o.From[a], o.To[a] = ints[0][i], ints[1][i]
			}
			return apply(o, in...)
		}
		starts, ends, axes, steps := ints[0], ints[1], ints[2], ints[3]
		s, step := slices.Clone(in[0].Shape), []int{1, 1, 1, 1}
		for i, a := range axes {
			if starts[i] != 0 || ends[i] != s[a] {
				t.Fatalf("%s: from %d to %d of %d", n.name, starts[i], ends[i], s[a])
			}
			s[a], step[a] = (s[a]+steps[i]-1)/steps[i], steps[i]
		}
		return gather(s, in[0], func(i, axis int) int { return i * step[axis] })
	case "Pad":
		s := slices.Clone(in[0].Shape)
		for i := range s {
			s[i] += ints[0][i] + ints[0][len(s)+i]
		}
		return gather(s, in[0], func(i, axis int) int { return i - ints[0][axis] })
	}
	f, ok := functions[n.kind]
	if !ok {
		t.Fatalf("%s: no operator %s", n.name, n.kind)
	}
	return broadcast(t, n, f, in)
}

// gather takes elements of x by index, with zeros for negative indices.
func gather(shape op.Shape, x op.Tensor, place func(i, axis int) int) op.Tensor {
	y, from := make([]float32, shape.Size()), x.Data.([]float32)
	for i := range y {
		at, stride, rest := 0, 1, i
		for a := len(shape) - 1; a >= 0 && at >= 0; a-- {
			p := place(rest%shape[a], a)
			rest /= shape[a]
			if p < 0 || p >= x.Shape[a] {
				at = -1
				break
			}
			at += p * stride
			stride *= x.Shape[a]
		}
		if at >= 0 {
			y[i] = from[at]
		}
	}
	return op.Tensor{Shape: shape, Data: y}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var functions = map[string]func(a ...float64) float64{
	"Identity": func(a ...float64) float64 { return a[0] },
	"Relu":     func(a ...float64) float64 { return max(a[0], 0) },
	"Neg":      func(a ...float64) float64 { return -a[0] },
	"Add":      func(a ...float64) float64 { return a[0] + a[1] },
	"Sub":      func(a ...float64) float64 { return a[0] - a[1] },
	"Mul":      func(a ...float64) float64 { return a[0] * a[1] },
	"Div":      func(a ...float64) float64 { return a[0] / a[1] },
	"Min":      func(a ...float64) float64 { return min(a[0], a[1]) },
	"Max":      func(a ...float64) float64 { return max(a[0], a[1]) },
	"Exp":      func(a ...float64) float64 { return math.Exp(a[0]) },
	"Log":      func(a ...float64) float64 { return math.Log(a[0]) },
	"Sqrt":     func(a ...float64) float64 { return math.Sqrt(a[0]) },
	"Tanh":     func(a ...float64) float64 { return math.Tanh(a[0]) },
	"Erf":      func(a ...float64) float64 { return math.Erf(a[0]) },
	"Sigmoid":  func(a ...float64) float64 { return 1 / (1 + math.Exp(-a[0])) },
	"Less":     func(a ...float64) float64 { return truth(a[0] < a[1]) },

	"LessOrEqual": func(a ...float64) float64 { return truth(a[0] <= a[1]) },
	"Equal":       func(a ...float64) float64 { return truth(a[0] == a[1]) },
	"Where": func(a ...float64) float64 {
		if a[0] != 0 {
			return a[1]
		}
		return a[2]
	},
}

// broadcast applies a function to elements, repeated as numpy does: shapes are aligned at their ends.
func broadcast(t *testing.T, n node, f func(...float64) float64, in []op.Tensor) op.Tensor {
	rank := 0
	for _, x := range in {
		rank = max(rank, len(x.Shape))
	}
	shape := op.Shape(slices.Repeat([]int{1}, rank))
	wide := make([]op.Shape, len(in))
	for i, x := range in {
		wide[i] = append(slices.Repeat(op.Shape{1}, rank-len(x.Shape)), x.Shape...)
		for a, d := range wide[i] {
			if d != 1 && shape[a] != 1 && d != shape[a] {
				t.Fatalf("%s: %v does not fit %v", n.name, x.Shape, shape)
			}
			shape[a] = max(shape[a], d)
		}
	}
	y := make([]float32, shape.Size())
	args := make([]float64, len(in))
	for e := range y {
		for i, x := range in {
			at, stride, rest := 0, 1, e
			for a := rank - 1; a >= 0; a-- {
				at += rest % shape[a] % wide[i][a] * stride
				rest /= shape[a]
				stride *= wide[i][a]
			}
			args[i] = float64(x.Data.([]float32)[at])
		}
		y[e] = float32(f(args...))
	}
	return op.Tensor{Shape: shape, Data: y}
}
