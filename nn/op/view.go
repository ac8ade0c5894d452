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

// Tokens makes the pixels of x [N,C,H,W] rows of C elements, [N,H·W,C]. On a device that keeps activations
// channels-last there is nothing to move.
type Tokens struct{}

var _ Composite = Tokens{}

// Kind is "tokens".
func (Tokens) Kind() string { return "tokens" }

func (Tokens) String() string { return "tokens" }

// Infer gives [N,H·W,C].
func (o Tokens) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float})
	if err != nil {
		return Type{}, err
	}
	x := in[0].Shape
	return T(dt, x[0], x[2]*x[3], x[1]), nil
}

// Decompose is a permutation of planes.
func (Tokens) Decompose(in ...Type) *Term {
	n, channels, size := planes(in[0].Shape)
	return Apply(Permute{[]int{0, 2, 1}}, shaped(Leaf(0), in[0].Shape, Shape{n, channels, size}))
}

// Gradients is the inverse.
func (o Tokens) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(Planes{in[0].Shape[2], in[0].Shape[3]}, Leaf(ResultGrad))}, nil
}

// Run copies.
func (o Tokens) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, tokens[float32], tokens[float64])
}

func tokens[T element](_ Tokens, out Tensor, in []Tensor) {
	n, channels, size := planes(in[0].Shape)
	transposed(vec[T](out), vec[T](in[0]), n, channels, size)
}

// transposed sets y to n matrices x with so many rows and columns, each transposed.
func transposed[T element](y, x []T, n, rows, columns int) {
	for i := range x {
		m, r, c := i/(rows*columns), i/columns%rows, i%columns
		y[(m*columns+c)*rows+r] = x[i]
	}
}

// Planes makes rows x [N,Height·Width,C] the pixels of [N,C,Height,Width]: the inverse of Tokens.
type Planes struct {
	Height, Width int
}

var _ Composite = Planes{}

// Kind is "planes".
func (Planes) Kind() string { return "planes" }

func (o Planes) String() string { return fmt.Sprintf("planes{%d×%d}", o.Height, o.Width) }

// Infer gives [N,C,Height,Width].
func (o Planes) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 3, float})
	if err == nil && (o.Height < 1 || o.Width < 1 || o.Height*o.Width != in[0].Shape[1]) {
		err = wrong(o, in, "%d rows are not %d×%d pixels", in[0].Shape[1], o.Height, o.Width)
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[0], in[0].Shape[2], o.Height, o.Width), nil
}

// Decompose is a permutation of planes.
func (o Planes) Decompose(in ...Type) *Term {
	x := in[0].Shape
	return shaped(Apply(Permute{[]int{0, 2, 1}}, Leaf(0)), nil, Shape{x[0], x[2], o.Height, o.Width})
}

// Gradients is the inverse.
func (o Planes) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(Tokens{}, Leaf(ResultGrad))}, nil
}

// Run copies.
func (o Planes) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, toPlanes[float32], toPlanes[float64])
}

func toPlanes[T element](_ Planes, out Tensor, in []Tensor) {
	x := in[0].Shape
	transposed(vec[T](out), vec[T](in[0]), x[0], x[1], x[2])
}
