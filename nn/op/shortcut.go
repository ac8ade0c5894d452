package op

import (
	"cmp"
	"fmt"
	"slices"
)

// Shortcut is the parameter-free shortcut of CIFAR ResNets (option A): every Stride-th row and column of x [N,C,H,W],
// with ⌊(Channels−C)/2⌋ channels of zeros before the given ones and the rest of them after.
type Shortcut struct {
	Stride   int // 0 means 1
	Channels int // of the result
}

// Kind is "shortcut".
func (Shortcut) Kind() string { return "shortcut" }

func (o Shortcut) String() string {
	return fmt.Sprintf("shortcut{stride %d, channels %d}", cmp.Or(o.Stride, 1), o.Channels)
}

// Infer gives [N,Channels,⌈H/Stride⌉,⌈W/Stride⌉].
func (o Shortcut) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float})
	if err == nil {
		err = o.valid(o, in, in[0].Shape)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, o.shape(in[0].Shape)}, nil
}

func (o Shortcut) valid(me Op, in []Type, x Shape) error {
	switch {
	case o.Stride < 0:
		return wrong(me, in, "the stride must not be negative")
	case o.Channels < x[1]:
		return wrong(me, in, "%d channels do not fit into %d", x[1], o.Channels)
	}
	return nil
}

func (o Shortcut) shape(x Shape) Shape {
	s := cmp.Or(o.Stride, 1)
	return Shape{x[0], o.Channels, (x[2] + s - 1) / s, (x[3] + s - 1) / s}
}

// Gradients drops the zeros and spreads the rest.
func (o Shortcut) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(ShortcutGrad{o, slices.Clone(in[0].Shape)}, Leaf(ResultGrad))}, nil
}

// Reads are the rows and columns that stay.
func (o Shortcut) Reads(in ...Type) []int {
	x := in[0].Shape
	y := o.shape(x)
	return []int{x[0] * x[1] * y[2] * y[3]}
}

// Run copies.
func (o Shortcut) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, shortcut[float32], shortcut[float64])
}

func shortcut[T element](o Shortcut, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	clear(y)
	o.pairs(in[0].Shape, func(i, j int) { y[j] = x[i] })
}

// pairs calls fn with the index of each element of x that is used and that of its copy.
func (o Shortcut) pairs(xs Shape, fn func(i, j int)) {
	s, ys := cmp.Or(o.Stride, 1), o.shape(xs)
	before := (o.Channels - xs[1]) / 2
	for n := range xs[0] {
		for c := range xs[1] {
			for h := range ys[2] {
				for w := range ys[3] {
					fn(((n*xs[1]+c)*xs[2]+h*s)*xs[3]+w*s, ((n*ys[1]+before+c)*ys[2]+h)*ys[3]+w)
				}
			}
		}
	}
}

// ShortcutGrad is the gradient of Shortcut with respect to its operand, of shape Input.
type ShortcutGrad struct {
	Shortcut Shortcut
	Input    Shape
}

// Kind is "shortcut_grad".
func (ShortcutGrad) Kind() string { return "shortcut_grad" }

func (o ShortcutGrad) String() string {
	return fmt.Sprintf("shortcut_grad{stride %d, channels %d, input %v}", cmp.Or(o.Shortcut.Stride, 1),
		o.Shortcut.Channels, o.Input)
}

// Infer gives Input.
func (o ShortcutGrad) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"gradient", 4, float})
	if err == nil {
		err = checkShape(o, in, "input", o.Input, 4)
	}
	if err == nil {
		err = o.Shortcut.valid(o, in, o.Input)
	}
	if err == nil && !in[0].Shape.Equal(o.Shortcut.shape(o.Input)) {
		err = wrong(o, in, "the result of the shortcut is %v", o.Shortcut.shape(o.Input))
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, o.Input}, nil
}

// Reads are the channels that are not zeros of the shortcut.
func (o ShortcutGrad) Reads(in ...Type) []int {
	return []int{in[0].Shape.Size() / o.Shortcut.Channels * o.Input[1]}
}

// Run spreads the gradient.
func (o ShortcutGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, shortcutGrad[float32], shortcutGrad[float64])
}

func shortcutGrad[T element](o ShortcutGrad, out Tensor, in []Tensor) {
	dy, dx := vec[T](in[0]), vec[T](out)
	clear(dx)
	o.Shortcut.pairs(o.Input, func(i, j int) { dx[i] = dy[j] })
}
