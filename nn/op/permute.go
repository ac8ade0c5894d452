package op

import (
	"fmt"
	"slices"
)

// Permute exchanges dimensions: dimension i of the result is dimension Axes[i] of the operand.
type Permute struct {
	Axes []int
}

var _ Mover = Permute{}

// Kind is "permute".
func (Permute) Kind() string { return "permute" }

func (o Permute) String() string { return fmt.Sprintf("permute{%v}", o.Axes) }

// Infer gives the extents in the order of Axes.
func (o Permute) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", len(o.Axes), float})
	if sorted := slices.Sorted(slices.Values(o.Axes)); err == nil && !slices.Equal(sorted, dims(len(o.Axes))) {
		err = wrong(o, in, "the axes must be 0 to %d in some order", len(o.Axes)-1)
	}
	if err != nil {
		return Type{}, err
	}
	s := make(Shape, len(o.Axes))
	for i, a := range o.Axes {
		s[i] = in[0].Shape[a]
	}
	return Type{dt, s}, nil
}

// Gradients is the inverse permutation of the gradient.
func (o Permute) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	back := make([]int, len(o.Axes))
	for i, a := range o.Axes {
		back[a] = i
	}
	return []*Term{Apply(Permute{back}, Leaf(ResultGrad))}, nil
}

// Moves is one box.
func (o Permute) Moves(in ...Type) []Move {
	y, _ := o.Infer(in...)
	n := len(o.Axes)
	return []Move{{Extent: y.Shape, To: make([]int, n), From: make([]int, n), Dims: o.Axes}}
}

// Run copies.
func (o Permute) Run(out Tensor, in ...Tensor) error { return runMove(o, out, in) }
