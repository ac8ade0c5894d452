package op

import "fmt"

// ChannelSum sums x [N,C,…] over all dimensions but the second: the gradient of a bias.
type ChannelSum struct{}

// Kind is "channel_sum".
func (ChannelSum) Kind() string { return "channel_sum" }

func (ChannelSum) String() string { return "channel_sum" }

// Infer gives [C].
func (o ChannelSum) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	if err == nil && len(in[0].Shape) < 2 {
		err = wrong(o, in, "the input must have 2 dimensions or more")
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[1]), nil
}

// Run sums in float64.
func (o ChannelSum) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, channelSum[float32], channelSum[float64])
}

func channelSum[T element](_ ChannelSum, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	n, c, hw := planes(in[0].Shape)
	for k := range c {
		sum := 0.0
		for i := range n {
			for _, v := range x[(i*c+k)*hw:][:hw] {
				sum += float64(v)
			}
		}
		y[k] = T(sum)
	}
}

// planes takes a shape [N,C,…] apart: N, C and the size of the rest.
func planes(s Shape) (n, c, rest int) { return s[0], s[1], s[2:].Size() }

// SumTo sums x over the axes along which an operand of the given shape would be repeated to that of x, as Map repeats:
// the gradient of such an operand.
type SumTo struct {
	Shape Shape
}

// Kind is "sum_to".
func (SumTo) Kind() string { return "sum_to" }

func (o SumTo) String() string { return fmt.Sprintf("sum_to{%v}", o.Shape) }

// Infer gives Shape.
func (o SumTo) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	if err == nil && !positive(o.Shape) {
		err = wrong(o, in, "%v has an extent below 1", o.Shape)
	}
	if err == nil {
		if _, ok := Along(o.Shape, in[0].Shape); !ok {
			err = wrong(o, in, "%v cannot be repeated to the input", o.Shape)
		}
	}
	return typed(dt, o.Shape, err)
}

// Axes says along which axes of x the result varies, for an operand that fits.
func (o SumTo) Axes(in Type) Axes {
	a, _ := Along(o.Shape, in.Shape)
	return a
}

// Run sums in float64.
func (o SumTo) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, sumUp[float32], sumUp[float64])
}

func sumUp[T element](o SumTo, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	a := o.Axes(in[0].Type())
	_, channels, pixels := in[0].Shape.Extents()
	sums := make([]float64, len(y))
	for i, v := range x {
		n, c, p := position(i, channels, pixels)
		sums[a.Index(n, c, p, channels, pixels)] += float64(v)
	}
	for i, s := range sums {
		y[i] = T(s)
	}
}
