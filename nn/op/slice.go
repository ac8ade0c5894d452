package op

import (
	"fmt"
	"slices"
)

// Slice cuts out the elements From[i] to To[i]−1 along each dimension i.
type Slice struct {
	From, To []int
}

var _ Mover = Slice{}

// SliceAxis is the Slice of a tensor of shape s that cuts along one axis.
func SliceAxis(s Shape, axis, from, to int) Slice {
	o := Slice{make([]int, len(s)), slices.Clone(s)}
	if axis >= 0 && axis < len(s) { // else Infer refuses the ranks
		o.From[axis], o.To[axis] = from, to
	}
	return o
}

// Kind is "slice".
func (Slice) Kind() string { return "slice" }

func (o Slice) String() string { return fmt.Sprintf("slice{%v to %v}", o.From, o.To) }

// Infer gives To − From.
func (o Slice) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", len(o.From), float})
	if err == nil && len(o.To) != len(o.From) {
		err = wrong(o, in, "the slice begins at %d indices and ends at %d", len(o.From), len(o.To))
	}
	for i := 0; err == nil && i < len(o.From); i++ {
		if o.From[i] < 0 || o.From[i] >= o.To[i] || o.To[i] > in[0].Shape[i] {
			err = wrong(o, in, "elements %d to %d of %d along axis %d", o.From[i], o.To[i]-1, in[0].Shape[i], i)
		}
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, o.extent()}, nil
}

func (o Slice) extent() Shape {
	s := make(Shape, len(o.From))
	for i := range s {
		s[i] = o.To[i] - o.From[i]
	}
	return s
}

// Gradients is the gradient with zeros around it.
func (o Slice) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	after := make([]int, len(o.To))
	for i, to := range o.To {
		after[i] = in[0].Shape[i] - to
	}
	return []*Term{Apply(Pad{slices.Clone(o.From), after}, Leaf(ResultGrad))}, nil
}

// Moves is one box.
func (o Slice) Moves(...Type) []Move {
	n := len(o.From)
	return []Move{{Extent: o.extent(), To: make([]int, n), From: o.From, Dims: dims(n)}}
}

// Reads are the elements that stay.
func (o Slice) Reads(...Type) []int { return []int{o.extent().Size()} }

// Run copies.
func (o Slice) Run(out Tensor, in ...Tensor) error { return runMove(o, out, in) }
