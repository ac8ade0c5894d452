package op

import (
	"fmt"
	"slices"
)

// Expand repeats an operand to a shape of the same rank, along dimensions where its extent is 1. Along the others the
// extents are equal. Operands of Map need it only for repetitions that Map lacks.
type Expand struct {
	Shape Shape
}

var _ Mover = Expand{}

// Kind is "expand".
func (Expand) Kind() string { return "expand" }

func (o Expand) String() string { return fmt.Sprintf("expand{%v}", o.Shape) }

// Infer gives Shape.
func (o Expand) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", len(o.Shape), float})
	if err == nil && !positive(o.Shape) {
		err = wrong(o, in, "%v has an extent below 1", o.Shape)
	}
	for i := 0; err == nil && i < len(o.Shape); i++ {
		if d := in[0].Shape[i]; d != 1 && d != o.Shape[i] {
			err = wrong(o, in, "%d elements along axis %d cannot be repeated to %d", d, i, o.Shape[i])
		}
	}
	return typed(dt, o.Shape, err)
}

// Gradients is the sum of the gradient along the dimensions in which x is repeated.
func (o Expand) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	var axes []int
	for i, d := range in[0].Shape {
		if d != o.Shape[i] {
			axes = append(axes, i)
		}
	}
	return []*Term{Apply(Reduce{Sum, axes}, Leaf(ResultGrad))}, nil
}

// Moves is one box.
func (o Expand) Moves(in ...Type) []Move {
	m := Move{Extent: slices.Clone(o.Shape), To: make([]int, len(o.Shape)), From: make([]int, len(o.Shape)),
		Dims: dims(len(o.Shape))}
	for i, d := range in[0].Shape {
		if d != o.Shape[i] {
			m.Dims[i] = -1
		}
	}
	return []Move{m}
}

// Run copies.
func (o Expand) Run(out Tensor, in ...Tensor) error { return runMove(o, out, in) }
