package op

import "fmt"

// Pad adds Before[i] and After[i] zeros at both ends of each dimension i.
type Pad struct {
	Before, After []int
}

var _ Mover = Pad{}

// Kind is "pad".
func (Pad) Kind() string { return "pad" }

func (o Pad) String() string { return fmt.Sprintf("pad{%v, %v}", o.Before, o.After) }

// Infer adds the zeros to the extents.
func (o Pad) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", len(o.Before), float})
	if err == nil && len(o.After) != len(o.Before) {
		err = wrong(o, in, "zeros before %d dimensions and after %d", len(o.Before), len(o.After))
	}
	if err != nil {
		return Type{}, err
	}
	s := make(Shape, len(o.Before))
	for i, d := range in[0].Shape {
		if o.Before[i] < 0 || o.After[i] < 0 {
			return Type{}, wrong(o, in, "numbers of zeros must not be negative")
		}
		s[i] = o.Before[i] + d + o.After[i]
	}
	return Type{dt, s}, nil
}

// Gradients is the part of the gradient that belongs to x.
func (o Pad) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	to := make([]int, len(o.Before))
	for i, d := range in[0].Shape {
		to[i] = o.Before[i] + d
	}
	return []*Term{Apply(Slice{o.Before, to}, Leaf(ResultGrad))}, nil
}

// Moves is one box.
func (o Pad) Moves(in ...Type) []Move { return []Move{whole(0, in[0].Shape, o.Before)} }

// Run copies x between zeros.
func (o Pad) Run(out Tensor, in ...Tensor) error { return runMove(o, out, in) }
