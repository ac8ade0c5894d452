package onnx

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// layer is an op of the graph that is converted.
type layer struct {
	*builder
	name  string
	op    op.Op
	in    []*G.Node // of a layer of the graph
	names []string  // of the operands
	types []op.Type
	out   op.Type
}

// convert adds the nodes that compute the op and gives the name of the result.
func (l *layer) convert() (string, error) {
	if o, ok := l.op.(op.BatchNorm); ok {
		return l.batchNorm(o)
	}
	for _, n := range l.in {
		name, err := l.value(n)
		if err != nil {
			return "", err
		}
		t, err := nn.TypeOf(n)
		if err != nil {
			return "", err
		}
		l.names, l.types = append(l.names, name), append(l.types, t)
	}
	return l.operator()
}

// operator adds the nodes of an op whose operands are known.
func (l *layer) operator() (string, error) {
	in := l.names
	switch o := l.op.(type) {
	case op.Conv2D:
		w := l.types[1].Shape
		return l.apply("Conv", in, attribute{"kernel_shape", []int{w[2], w[3]}},
			attribute{"strides", pair(o.Stride, [2]int{1, 1})}, pads(o.Pad),
			attribute{"dilations", pair(o.Dilation, [2]int{1, 1})}, attribute{"group", max(o.Groups, 1)}), nil
	case op.Linear:
		return l.apply("Gemm", in, attribute{"transB", 1}), nil
	case op.ReLU:
		return l.apply("Relu", in), nil
	case op.Add:
		return l.apply("Add", in), nil
	case op.MaxPool:
		return l.apply("MaxPool", in, attribute{"kernel_shape", o.Kernel[:]},
			attribute{"strides", pair(o.Stride, o.Kernel)}, pads(o.Pad)), nil
	case op.AvgPool:
		return l.apply("AveragePool", in, attribute{"kernel_shape", o.Kernel[:]},
			attribute{"strides", pair(o.Stride, o.Kernel)}, pads(o.Pad),
			attribute{"count_include_pad", 1}), nil
	case op.GlobalAvgPool:
		return l.apply("Flatten", []string{l.apply("GlobalAveragePool", in)}, attribute{"axis", 1}), nil
	case op.Flatten:
		return l.apply("Flatten", in, attribute{"axis", 1}), nil
	case op.Reshape:
		return l.reshape(in[0], o)
	case op.Shortcut:
		return l.shortcut(in[0], o), nil
	case op.Map:
		return l.expression(in, o)
	case op.LayerNorm:
		return l.apply("LayerNormalization", in, attribute{"axis", -1}, attribute{"epsilon", float32(o.Eps)}), nil
	case op.Softmax:
		return l.apply("Softmax", in, attribute{"axis", -1}), nil
	case op.Permute:
		return l.apply("Transpose", in, attribute{"perm", o.Axes}), nil
	case op.Concat:
		return l.apply("Concat", in, attribute{"axis", o.Axis}), nil
	case op.MatMul:
		return l.apply("MatMul", []string{l.turned(0, o.TransA), l.turned(1, o.TransB)}), nil
	case op.Pad:
		return l.apply("Pad", append(in, l.integers(l.name+"/pads", append(slices.Clone(o.Before), o.After...)...))), nil
	case op.Reduce:
		return l.reduce(in[0], o), nil
	case op.Gather:
		return l.gather(in, o)
	case op.Slice:
		return l.slice(in[0], o)
	case op.Expand:
		return l.expand(in[0], o)
	}
	if c, ok := l.op.(op.Composite); ok {
		name, _, err := l.formula(c.Decompose(l.types...), map[*op.Term]string{})
		return name, err
	}
	return "", fmt.Errorf("layer %s: there is no operator of ONNX for %v: only ops of nets in evaluation can be "+
		"exported", l.name, l.op)
}

// apply adds a node of the layer.
func (l *layer) apply(kind string, in []string, attributes ...attribute) string {
	return l.emit(l.name, kind, in, attributes...)
}

// batchNorm has the statistics as two tensors, where nn has one.
func (l *layer) batchNorm(o op.BatchNorm) (string, error) {
	name := ""
	for _, s := range l.model.Stats {
		if s.Node == l.in[1] {
			name = s.Name
		}
	}
	if name == "" || !o.Fixed {
		return "", fmt.Errorf("layer %s: %v takes statistics that are not the running ones of a layer", l.name, o)
	}
	var in []string
	for _, n := range []*G.Node{l.in[0], l.in[2], l.in[3]} {
		v, err := l.value(n)
		if err != nil {
			return "", err
		}
		in = append(in, v)
	}
	in = append(in, l.weight(name+".running_mean"), l.weight(name+".running_var"))
	return l.apply("BatchNormalization", in, attribute{"epsilon", float32(o.Eps)}), nil
}

// formula adds the nodes of a term of the operands.
func (l *layer) formula(t *op.Term, done map[*op.Term]string) (string, op.Type, error) {
	if t.Op == nil {
		return l.names[t.Leaf], l.types[t.Leaf], nil
	}
	part := &layer{builder: l.builder, name: l.name, op: t.Op, out: t.Type(l.types...)}
	if name, ok := done[t]; ok {
		return name, part.out, nil
	}
	for _, a := range t.Args {
		name, typ, err := l.formula(a, done)
		if err != nil {
			return "", typ, err
		}
		part.names, part.types = append(part.names, name), append(part.types, typ)
	}
	name, err := part.operator()
	done[t] = name
	return name, part.out, err
}

// turned is an operand, with its last two dimensions exchanged if it is transposed.
func (l *layer) turned(i int, transposed bool) string {
	if !transposed {
		return l.names[i]
	}
	axes := make([]int, len(l.types[i].Shape))
	for k := range axes {
		axes[k] = k
	}
	slices.Reverse(axes[len(axes)-2:])
	return l.apply("Transpose", l.names[i:i+1], attribute{"perm", axes})
}

// reduce has the axes as an attribute, but for a sum, whose axes are an operand.
func (l *layer) reduce(x string, o op.Reduce) string {
	keep := attribute{"keepdims", 1}
	switch {
	case len(o.Axes) == 0:
		return l.apply("Identity", []string{x})
	case o.By == op.Mean:
		return l.apply("ReduceMean", []string{x}, attribute{"axes", o.Axes}, keep)
	case o.By == op.Max:
		return l.apply("ReduceMax", []string{x}, attribute{"axes", o.Axes}, keep)
	}
	return l.apply("ReduceSum", []string{x, l.integers(l.name+"/axes", o.Axes...)}, keep)
}

// gather picks elements by a constant, whose indices the operand must have.
func (l *layer) gather(in []string, o op.Gather) (string, error) {
	i := slices.IndexFunc(l.tensors, func(t tensor) bool { return t.name == in[1] })
	if i < 0 {
		return "", fmt.Errorf("layer %s: the indices of %v are no constant", l.name, o)
	}
	for _, k := range l.tensors[i].ints {
		if n := l.types[0].Shape[o.Axis]; k < 0 || k >= n {
			return "", fmt.Errorf("layer %s: %v picks element %d of %d, which is 0 here and an error in ONNX", l.name, o, k, n)
		}
	}
	return l.apply("Gather", in, attribute{"axis", o.Axis}), nil
}

// slice cuts along the axes that lose elements.
func (l *layer) slice(x string, o op.Slice) (string, error) {
	var axes, from, to []int
	for i, n := range l.types[0].Shape {
		if o.From[i] == 0 && o.To[i] == n {
			continue
		}
		if l.ofBatch(n) {
			return "", fmt.Errorf("layer %s: %v cuts images of a batch, whose size is open: export it for a batch of "+
				"fixed size", l.name, o)
		}
		axes, from, to = append(axes, i), append(from, o.From[i]), append(to, o.To[i])
	}
	if len(axes) == 0 {
		return l.apply("Identity", []string{x}), nil
	}
	return l.apply("Slice", []string{x, l.integers(l.name+"/starts", from...), l.integers(l.name+"/ends", to...),
		l.integers(l.name+"/axes", axes...)}), nil
}

// ofBatch reports whether an extent counts images of a batch whose size is open.
func (l *layer) ofBatch(n int) bool { return l.open && n%openBatch == 0 }

// reshape leaves an extent that depends on the batch to the runtime.
func (l *layer) reshape(x string, o op.Reshape) (string, error) {
	shape, counts := slices.Clone(o.Shape), 0
	for i, n := range shape {
		if l.ofBatch(n) {
			shape[i] = -1
			counts++
		}
	}
	if len(shape) > 0 && shape[0] == -1 && len(l.types[0].Shape) > 0 && l.types[0].Shape[0] == o.Shape[0] {
		shape[0] = 0 // the operand's
	}
	if counts > 1 {
		return "", fmt.Errorf("layer %s: %v counts images along several axes of a batch whose size is open: export it for "+
			"a batch of fixed size", l.name, o)
	}
	return l.apply("Reshape", []string{x, l.integers(l.name+"/shape", shape...)}), nil
}

// expand takes the number of images from the input where it is open. An extent of 1 keeps the operand's.
func (l *layer) expand(x string, o op.Expand) (string, error) {
	shape := slices.Clone(o.Shape)
	for i, n := range shape {
		if l.ofBatch(n) && l.types[0].Shape[i] == n {
			shape[i] = 1
		}
	}
	if !slices.ContainsFunc(shape, l.ofBatch) {
		return l.apply("Expand", []string{x, l.integers(l.name+"/shape", shape...)}), nil
	}
	var parts []string
	for _, n := range shape {
		switch {
		case !l.ofBatch(n):
			parts = append(parts, l.integers(l.name+"/extent", n))
		case n != openBatch:
			return "", fmt.Errorf("layer %s: %v repeats images of a batch, whose size is open: export it for a batch of "+
				"fixed size", l.name, o)
		default:
			all := l.apply("Shape", []string{input})
			parts = append(parts, l.apply("Slice", []string{all, l.integers(l.name+"/first", 0),
				l.integers(l.name+"/second", 1), l.integers(l.name+"/axis", 0)}))
		}
	}
	return l.apply("Expand", []string{x, l.apply("Concat", parts, attribute{"axis", 0})}), nil
}

// shortcut takes every Stride-th row and column, and adds channels of zeros.
func (l *layer) shortcut(x string, o op.Shortcut) string {
	s := l.types[0].Shape
	if o.Stride > 1 {
		x = l.apply("Slice", []string{x, l.integers(l.name+"/starts", 0, 0), l.integers(l.name+"/ends", s[2], s[3]),
			l.integers(l.name+"/axes", 2, 3),
			l.integers(l.name+"/steps", o.Stride, o.Stride)})
	}
	before := (o.Channels - s[1]) / 2
	return l.apply("Pad", []string{x, l.integers(l.name+"/pads", 0, before, 0, 0, 0, o.Channels-s[1]-before, 0, 0)})
}

// pair is an attribute of two numbers, where 0 stands for another value.
func pair(v, zero [2]int) []int { return []int{cmp.Or(v[0], zero[0]), cmp.Or(v[1], zero[1])} }

// pads are above, left, below, right.
func pads(p [2]int) attribute { return attribute{"pads", []int{p[0], p[1], p[0], p[1]}} }
