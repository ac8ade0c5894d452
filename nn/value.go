package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/op"
)

// TypeOf is the element type and shape of a node. It is an error for element types that no op has.
func TypeOf(n *G.Node) (op.Type, error) {
	d, err := elementType(n.Dtype())
	return op.Type{DType: d, Shape: slices.Clone(op.Shape(n.Shape()))}, err
}

func elementType(d tensor.Dtype) (op.DType, error) {
	switch d {
	case tensor.Float32:
		return op.Float32, nil
	case tensor.Float64:
		return op.Float64, nil
	case tensor.Int32:
		return op.Int32, nil
	case tensor.Uint8:
		return op.Uint8, nil
	}
	return 0, fmt.Errorf("element type %v: must be float32, float64, int32 or uint8", d)
}

// graphElement is Gorgonia's name of an element type.
func graphElement(d op.DType) tensor.Dtype {
	switch d {
	case op.Float64:
		return tensor.Float64
	case op.Int32:
		return tensor.Int32
	case op.Uint8:
		return tensor.Uint8
	}
	return tensor.Float32
}

// graphType is Gorgonia's type of a tensor. A scalar's is its element type.
func graphType(t op.Type) hm.Type {
	if len(t.Shape) == 0 {
		return graphElement(t.DType)
	}
	return G.TensorType{Dims: len(t.Shape), Of: graphElement(t.DType)}
}

// newInput adds an input node of type t.
func newInput(g *G.ExprGraph, name string, t op.Type) *G.Node {
	return G.NewTensor(g, graphElement(t.DType), len(t.Shape), G.WithShape(t.Shape...), G.WithName(name))
}

// hostTensor views a Gorgonia value as a row-major tensor, copying it if it lies otherwise.
func hostTensor(v G.Value) (op.Tensor, error) {
	if u, ok := v.(unprinted); ok {
		v = u.Dense
	}
	switch s := v.(type) {
	case *G.F32:
		return op.Tensor{Data: []float32{float32(*s)}}, nil
	case *G.F64:
		return op.Tensor{Data: []float64{float64(*s)}}, nil
	case *tensor.Dense:
		if s.IsMasked() || s.DataOrder().IsColMajor() && s.Size() > 1 {
			return op.Tensor{}, errors.New("the tensor must be row-major and without a mask")
		}
		if s.RequiresIterator() {
			s = s.Materialize().(*tensor.Dense)
		}
		t := op.Tensor{Shape: slices.Clone(op.Shape(s.Shape())), Data: s.Data()}
		switch x := t.Data.(type) { // of a tensor without dimensions
		case float32:
			t.Data = []float32{x}
		case float64:
			t.Data = []float64{x}
		}
		if t.DType() == 0 {
			return t, fmt.Errorf("elements of type %v: must be float32, float64, int32 or uint8", s.Dtype())
		}
		return t, nil
	}
	return op.Tensor{}, fmt.Errorf("a value of type %T: must be a *tensor.Dense, *gorgonia.F32 or *gorgonia.F64", v)
}

// graphValue is t as a Gorgonia value that shares its data.
func graphValue(t op.Tensor) (G.Value, error) {
	if len(t.Shape) > 0 {
		return tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(t.Data)), nil
	}
	switch x := t.Data.(type) {
	case []float32:
		return G.NewF32(x[0]), nil
	case []float64:
		return G.NewF64(x[0]), nil
	}
	return nil, fmt.Errorf("a scalar of type %v: must be float32 or float64", t.DType())
}
