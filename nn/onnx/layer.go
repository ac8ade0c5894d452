package onnx

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// layer is an op of the graph that is converted.
type layer struct {
	*builder
	name string
	op   op.Op
	in   []*G.Node
	out  op.Type
}

// convert adds the nodes that compute the op and gives the name of the result.
func (l *layer) convert() (string, error) {
	if o, ok := l.op.(op.BatchNorm); ok {
		return l.batchNorm(o)
	}
	in := make([]string, len(l.in))
	for i, n := range l.in {
		var err error
		if in[i], err = l.value(n); err != nil {
			return "", err
		}
	}
	switch o := l.op.(type) {
	case op.Conv2D:
		w := l.in[1].Shape()
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
	}
	return "", fmt.Errorf("layer %s: there is no operator of ONNX for %v: only what nets compute in evaluation can be "+
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

// reshape leaves the first extent, that of the batch, as it is.
func (l *layer) reshape(x string, o op.Reshape) (string, error) {
	shape := append([]int(nil), o.Shape...)
	if l.images[l.in[0]] && l.open {
		if len(shape) == 0 || shape[0] != l.in[0].Shape()[0] {
			return "", fmt.Errorf("layer %s: %v joins images of a batch, whose size is open: export it for a batch of "+
				"fixed size", l.name, o)
		}
		shape[0] = 0 // the operand's
	}
	return l.apply("Reshape", []string{x, l.integers(l.name+"/shape", shape...)}), nil
}

// shortcut takes every Stride-th row and column, and adds channels of zeros.
func (l *layer) shortcut(x string, o op.Shortcut) string {
	s := l.in[0].Shape()
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
