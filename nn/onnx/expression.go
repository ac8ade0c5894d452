package onnx

import (
	"fmt"
	"slices"
	"strconv"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// operators are ONNX's for the nodes of expressions.
var operators = map[expr.Kind]string{
	expr.KindNeg: "Neg", expr.KindAdd: "Add", expr.KindSub: "Sub", expr.KindMul: "Mul", expr.KindDiv: "Div",
	expr.KindMin: "Min", expr.KindMax: "Max",
	expr.KindExp: "Exp", expr.KindLog: "Log", expr.KindSqrt: "Sqrt", expr.KindTanh: "Tanh", expr.KindErf: "Erf",
	expr.KindSigmoid: "Sigmoid",
	expr.KindLess:    "Less", expr.KindLessEqual: "LessOrEqual", expr.KindEqual: "Equal", expr.KindIf: "Where",
}

// expression adds a node for each step of an elementwise expression.
func (l *layer) expression(in []string, o op.Map) (string, error) {
	steps := o.Expr.Nodes()
	names := make([]string, len(steps))
	for i, s := range steps {
		switch s.Kind {
		case expr.KindArg:
			names[i] = l.repeated(in[s.Index], l.types[s.Index].Shape)
		case expr.KindConst:
			names[i] = l.scalar(s.Value)
		default:
			kind, ok := operators[s.Kind]
			if !ok {
				return "", fmt.Errorf("layer %s: there is no operator of ONNX for %v of %v", l.name, s.Kind, o)
			}
			args := make([]string, len(s.In))
			for j, a := range s.In {
				args[j] = names[a]
			}
			names[i] = l.apply(kind, args)
		}
	}
	if _, ok := o.Expr.IsArg(); ok {
		return l.apply("Identity", names), nil
	}
	return names[len(names)-1], nil
}

// repeated is an operand in a shape that ONNX repeats as op.Map does: extents count from the first, and the missing
// ones are 1.
func (l *layer) repeated(x string, shape op.Shape) string {
	y := len(l.out.Shape)
	if len(shape) == y || shape.Size() == 1 && len(shape) < 2 || len(shape) == 1 && y == 2 || len(shape) == 3 {
		return x // as ONNX repeats it
	}
	wide := slices.Repeat([]int{1}, y)
	switch len(shape) {
	case 1: // channels
		wide[1] = shape[0]
	case 2: // images and channels, as they are
		wide[0], wide[1] = 0, 0
	}
	return l.apply("Reshape", []string{x, l.integers(l.name+"/shape", wide...)})
}

// scalar is a constant, one for all that read its value.
func (l *layer) scalar(v float64) string {
	name := "constant/" + strconv.FormatFloat(v, 'g', -1, 32)
	for _, t := range l.tensors {
		if t.name == name {
			return name
		}
	}
	return l.constant(name, op.Shape{}, float32(v))
}
