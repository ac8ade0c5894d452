package op

import "fmt"

// Concat joins its operands, one or more, along an axis. Along the others their extents are equal.
type Concat struct {
	Axis int
}

var _ Mover = Concat{}

// Kind is "concat".
func (Concat) Kind() string { return "concat" }

func (o Concat) String() string { return fmt.Sprintf("concat{axis %d}", o.Axis) }

// Infer adds up the extents along Axis.
func (o Concat) Infer(in ...Type) (Type, error) {
	want := make([]operand, max(len(in), 1))
	for i := range want {
		want[i] = operand{fmt.Sprintf("operand %d", i), -1, float}
	}
	dt, err := check(o, in, want...)
	if err == nil && (o.Axis < 0 || o.Axis >= len(in[0].Shape)) {
		err = wrong(o, in, "there is no such axis")
	}
	if err != nil {
		return Type{}, err
	}
	s := append(Shape{}, in[0].Shape...)
	for i, t := range in[1:] {
		if len(t.Shape) != len(s) {
			return Type{}, wrong(o, in, "operand %d must have %d dimensions like those before it", i+1, len(s))
		}
		for d, n := range t.Shape {
			if d == o.Axis {
				s[d] += n
			} else if n != s[d] {
				return Type{}, wrong(o, in, "operand %d has %d elements along axis %d, those before it %d", i+1, n, d,
					s[d])
			}
		}
	}
	return Type{dt, s}, nil
}

// Gradients are the parts of the gradient.
func (o Concat) Gradients(in ...Type) ([]*Term, error) {
	y, err := o.Infer(in...)
	if err != nil {
		return nil, err
	}
	terms, at := make([]*Term, len(in)), 0
	for i, t := range in {
		n := t.Shape[o.Axis]
		terms[i] = Apply(SliceAxis(y.Shape, o.Axis, at, at+n), Leaf(ResultGrad))
		at += n
	}
	return terms, nil
}

// Moves is a box for each operand.
func (o Concat) Moves(in ...Type) []Move {
	moves, at := make([]Move, len(in)), 0
	for i, t := range in {
		to := make([]int, len(t.Shape))
		to[o.Axis] = at
		moves[i] = whole(i, t.Shape, to)
		at += t.Shape[o.Axis]
	}
	return moves
}

// Run copies the operands one after the other.
func (o Concat) Run(out Tensor, in ...Tensor) error { return runMove(o, out, in) }
