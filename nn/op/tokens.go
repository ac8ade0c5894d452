package op

import "fmt"

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
