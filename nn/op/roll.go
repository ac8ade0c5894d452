package op

import (
	"fmt"
	"slices"
)

// Roll shifts elements cyclically: element i along each dimension d of the result is element i + By[d] of x, modulo the
// extent.
type Roll struct {
	By []int
}

var (
	_ Composite = Roll{}
	_ Mover     = Roll{}
)

// Kind is "roll".
func (Roll) Kind() string { return "roll" }

func (o Roll) String() string { return fmt.Sprintf("roll{%v}", o.By) }

// Infer gives the operand's shape.
func (o Roll) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", len(o.By), float})
	if err != nil {
		return Type{}, err
	}
	return Type{dt, slices.Clone(in[0].Shape)}, nil
}

// first is the element of x that comes first along dimension d.
func (o Roll) first(x Shape, d int) int { return ((o.By[d] % x[d]) + x[d]) % x[d] }

// Decompose exchanges two parts of each rolled dimension.
func (o Roll) Decompose(in ...Type) *Term {
	x, t := in[0].Shape, Leaf(0)
	for d, n := range x {
		if k := o.first(x, d); k > 0 {
			t = Apply(Concat{d}, Apply(SliceAxis(x, d, k, n), t), Apply(SliceAxis(x, d, 0, k), t))
		}
	}
	if t.Op == nil {
		t = Apply(Reshape{slices.Clone(x)}, t)
	}
	return t
}

// Gradients rolls back.
func (o Roll) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	back := make([]int, len(o.By))
	for d, n := range o.By {
		back[d] = -n
	}
	return []*Term{Apply(Roll{back}, Leaf(ResultGrad))}, nil
}

// Moves is a box for each combination of the parts.
func (o Roll) Moves(in ...Type) []Move {
	x := in[0].Shape
	moves := []Move{whole(0, x, make([]int, len(x)))}
	for d, n := range x {
		k := o.first(x, d)
		if k == 0 {
			continue
		}
		var parts []Move
		for _, m := range moves {
			for _, part := range [][3]int{{n - k, 0, k}, {k, n - k, 0}} { // extent, place, origin
				p := m
				p.Extent, p.To, p.From = slices.Clone(m.Extent), slices.Clone(m.To), slices.Clone(m.From)
				p.Extent[d], p.To[d], p.From[d] = part[0], part[1], part[2]
				parts = append(parts, p)
			}
		}
		moves = parts
	}
	return moves
}

// Run copies.
func (o Roll) Run(out Tensor, in ...Tensor) error { return runMove(o, out, in) }
