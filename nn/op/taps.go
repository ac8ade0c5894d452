package op

import "fmt"

// Taps makes the weights of filters w [O,I,height,width] the pixels of an image [1,O,height·width,I]: channel o has
// those of filter o. On a device that keeps both with the filters last there is nothing to move.
type Taps struct{}

var _ Composite = Taps{}

// Kind is "taps".
func (Taps) Kind() string { return "taps" }

func (Taps) String() string { return "taps" }

// Infer gives [1,O,height·width,I].
func (o Taps) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"weight", 4, float})
	if err != nil {
		return Type{}, err
	}
	w := in[0].Shape
	return T(dt, 1, w[0], w[2]*w[3], w[1]), nil
}

// Weights is the operand.
func (Taps) Weights() []int { return []int{0} }

// Decompose is a permutation of planes.
func (Taps) Decompose(in ...Type) *Term {
	w := in[0].Shape
	x := Apply(Permute{[]int{0, 2, 1}}, shaped(Leaf(0), w, Shape{w[0], w[1], w[2] * w[3]}))
	return shaped(x, nil, Shape{1, w[0], w[2] * w[3], w[1]})
}

// Gradients is the inverse.
func (o Taps) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(Filters{in[0].Shape[2], in[0].Shape[3]}, Leaf(ResultGrad))}, nil
}

// Run copies.
func (o Taps) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, taps[float32], taps[float64])
}

func taps[T element](_ Taps, out Tensor, in []Tensor) {
	w := in[0].Shape
	transposed(vec[T](out), vec[T](in[0]), w[0], w[1], w[2]*w[3])
}

// Filters makes an image [1,O,Height·Width,I] the weights of filters [O,I,Height,Width]: the inverse of Taps.
type Filters struct {
	Height, Width int
}

var _ Composite = Filters{}

// Kind is "filters".
func (Filters) Kind() string { return "filters" }

func (o Filters) String() string { return fmt.Sprintf("filters{%d×%d}", o.Height, o.Width) }

// Infer gives [O,I,Height,Width].
func (o Filters) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float})
	if err == nil && (o.Height < 1 || o.Width < 1 || in[0].Shape[0] != 1 || o.Height*o.Width != in[0].Shape[2]) {
		err = wrong(o, in, "the input must be an image of %d·%d rows", o.Height, o.Width)
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[1], in[0].Shape[3], o.Height, o.Width), nil
}

// Decompose is a permutation of planes.
func (o Filters) Decompose(in ...Type) *Term {
	x := in[0].Shape
	w := Apply(Permute{[]int{0, 2, 1}}, shaped(Leaf(0), x, Shape{x[1], x[2], x[3]}))
	return shaped(w, nil, Shape{x[1], x[3], o.Height, o.Width})
}

// Gradients is the inverse.
func (o Filters) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(Taps{}, Leaf(ResultGrad))}, nil
}

// Run copies.
func (o Filters) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, toFilters[float32], toFilters[float64])
}

func toFilters[T element](_ Filters, out Tensor, in []Tensor) {
	x := in[0].Shape
	transposed(vec[T](out), vec[T](in[0]), x[1], x[2], x[3])
}
