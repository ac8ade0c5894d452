package op

import (
	"fmt"
	"slices"
)

// Row is a row of a matrix [R,C].
type Row struct {
	Index int
}

// Kind is "row".
func (Row) Kind() string { return "row" }

func (o Row) String() string { return fmt.Sprintf("row{%d}", o.Index) }

// Infer gives [C].
func (o Row) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 2, float})
	if err == nil && (o.Index < 0 || o.Index >= in[0].Shape[0]) {
		err = wrong(o, in, "there is no such row")
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[1]), nil
}

// ViewOffset is where the row starts.
func (o Row) ViewOffset(in Type) int { return o.Index * in.Shape[1] }

// Run copies the row.
func (o Row) Run(out Tensor, in ...Tensor) error { return runView(o, out, in) }

// Flatten makes [N,…] a matrix [N, rest], in row-major order.
type Flatten struct{}

// Kind is "flatten".
func (Flatten) Kind() string { return "flatten" }

func (Flatten) String() string { return "flatten" }

// Infer gives [N, rest].
func (o Flatten) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	if err == nil && len(in[0].Shape) < 2 {
		err = wrong(o, in, "the input must have 2 dimensions or more")
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[0], in[0].Shape[1:].Size()), nil
}

// Gradients is the gradient in the operand's shape.
func (o Flatten) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(Reshape{slices.Clone(in[0].Shape)}, Leaf(ResultGrad))}, nil
}

// ViewOffset is 0.
func (Flatten) ViewOffset(Type) int { return 0 }

// Run copies.
func (o Flatten) Run(out Tensor, in ...Tensor) error { return runView(o, out, in) }

// Reshape gives the elements, in row-major order, another shape.
type Reshape struct {
	Shape Shape
}

// Kind is "reshape".
func (Reshape) Kind() string { return "reshape" }

func (o Reshape) String() string { return fmt.Sprintf("reshape{%v}", o.Shape) }

// Infer gives Shape.
func (o Reshape) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	if err == nil && (!positive(o.Shape) || o.Shape.Size() != in[0].Shape.Size()) {
		err = wrong(o, in, "%d elements do not fill %v", in[0].Shape.Size(), o.Shape)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, o.Shape}, nil
}

// Gradients is the gradient in the operand's shape.
func (o Reshape) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(Reshape{slices.Clone(in[0].Shape)}, Leaf(ResultGrad))}, nil
}

// ViewOffset is 0.
func (Reshape) ViewOffset(Type) int { return 0 }

// Run copies.
func (o Reshape) Run(out Tensor, in ...Tensor) error { return runView(o, out, in) }

func runView(o View, out Tensor, in []Tensor) error {
	return run(o, out, in, view[float32], view[float64])
}

func view[T element](o View, out Tensor, in []Tensor) {
	copy(vec[T](out), vec[T](in[0])[o.ViewOffset(in[0].Type()):])
}

var _, _, _ View = Row{}, Flatten{}, Reshape{}
