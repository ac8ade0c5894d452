package op

import (
	"fmt"
	"slices"
)

// Gather picks elements along an axis of x by indices [K], int32: element k along that axis of the result is element
// index[k] of x, or 0 where x has no such element.
type Gather struct {
	Axis int
}

// Kind is "gather".
func (Gather) Kind() string { return "gather" }

func (o Gather) String() string { return fmt.Sprintf("gather{axis %d}", o.Axis) }

// Infer gives x's shape with K elements along Axis.
func (o Gather) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float}, operand{"indices", 1, integer})
	if err == nil && (o.Axis < 0 || o.Axis >= len(in[0].Shape)) {
		err = wrong(o, in, "there is no such axis")
	}
	if err != nil {
		return Type{}, err
	}
	s := slices.Clone(in[0].Shape)
	s[o.Axis] = in[1].Shape[0]
	return Type{dt, s}, nil
}

// Gradients adds the gradient up where its elements come from.
func (o Gather) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(GatherGrad{o.Axis, in[0].Shape[o.Axis]}, Leaf(ResultGrad), Leaf(1)), nil}, nil
}

// Run copies.
func (o Gather) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, pick[float32], pick[float64])
}

func pick[T element](o Gather, out Tensor, in []Tensor) {
	x, index, y := vec[T](in[0]), vec[int32](in[1]), vec[T](out)
	clear(y)
	picked(in[0].Shape, o.Axis, index, func(from, to, n int) { copy(y[to:to+n], x[from:]) })
}

// picked calls f for each run of n elements that indices pick along an axis of a tensor of shape x: where it lies
// there, and where in the result.
func picked(x Shape, axis int, index []int32, f func(from, to, n int)) {
	n := x[axis+1:].Size()
	for outer := range x[:axis].Size() {
		for k, i := range index {
			if i >= 0 && int(i) < x[axis] {
				f((outer*x[axis]+int(i))*n, (outer*len(index)+k)*n, n)
			}
		}
	}
}

// GatherGrad is the gradient of Gather with respect to x, for operands dy and the indices: zeros to which each element
// of dy is added where it comes from.
type GatherGrad struct {
	Axis, Extent int // of x along Axis
}

// Kind is "gather_grad".
func (GatherGrad) Kind() string { return "gather_grad" }

func (o GatherGrad) String() string {
	return fmt.Sprintf("gather_grad{axis %d, extent %d}", o.Axis, o.Extent)
}

// Infer gives the shape of x.
func (o GatherGrad) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"gradient", -1, float}, operand{"indices", 1, integer})
	switch {
	case err != nil:
	case o.Axis < 0 || o.Axis >= len(in[0].Shape):
		err = wrong(o, in, "there is no such axis")
	case o.Extent < 1:
		err = wrong(o, in, "the extent must be 1 or more")
	case in[0].Shape[o.Axis] != in[1].Shape[0]:
		err = wrong(o, in, "%d elements along the axis, %d indices", in[0].Shape[o.Axis], in[1].Shape[0])
	}
	if err != nil {
		return Type{}, err
	}
	s := slices.Clone(in[0].Shape)
	s[o.Axis] = o.Extent
	return Type{dt, s}, nil
}

// Run sums in float64.
func (o GatherGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, gatherGrad[float32], gatherGrad[float64])
}

func gatherGrad[T element](o GatherGrad, out Tensor, in []Tensor) {
	dy, index, dx := vec[T](in[0]), vec[int32](in[1]), vec[T](out)
	sums := make([]float64, len(dx))
	picked(out.Shape, o.Axis, index, func(from, to, n int) {
		for i, g := range dy[to : to+n] {
			sums[from+i] += float64(g)
		}
	})
	for i, s := range sums {
		dx[i] = T(s)
	}
}
