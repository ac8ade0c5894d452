package op

import (
	"cmp"
	"fmt"
	"slices"
)

// Conv2D is the cross-correlation of x [N,C,H,W] with w [O,C/G,kh,kw], plus the bias b [O] if there is one:
//
//	y[n,o,i,j] = b[o] + Σ_{c,r,s} w[o,c,r,s] · x[n, g·C/G+c, i·stride−pad+r·dilation, j·stride−pad+s·dilation]
//
// with 0 outside x and g the group of o. A zero stride, dilation or number of groups means 1.
type Conv2D struct {
	Stride, Pad, Dilation [2]int // vertical, horizontal
	Groups                int
}

// norm replaces zeros by their defaults.
func (o Conv2D) norm() Conv2D {
	for i := range 2 {
		o.Stride[i] = cmp.Or(o.Stride[i], 1)
		o.Dilation[i] = cmp.Or(o.Dilation[i], 1)
	}
	o.Groups = cmp.Or(o.Groups, 1)
	return o
}

func (o Conv2D) attributes() string {
	o = o.norm()
	return fmt.Sprintf("stride %v, pad %v, dilation %v, groups %d", o.Stride, o.Pad, o.Dilation, o.Groups)
}

// Kind is "conv2d".
func (Conv2D) Kind() string { return "conv2d" }

func (o Conv2D) String() string { return "conv2d{" + o.attributes() + "}" }

// Infer gives [N,O,H',W'] with H' = ⌊(H + 2 pad − dilation (kh−1) − 1)/stride⌋ + 1.
func (o Conv2D) Infer(in ...Type) (Type, error) {
	want := []operand{{"input", 4, float}, {"weight", 4, float}}
	if len(in) != 2 {
		want = append(want, operand{"bias", 1, float})
	}
	dt, err := check(o, in, want...)
	if err != nil {
		return Type{}, err
	}
	y, err := o.shape(o, in, in[0].Shape, in[1].Shape)
	if err == nil && len(in) == 3 && in[2].Shape[0] != in[1].Shape[0] {
		err = wrong(o, in, "bias has %d elements, weight has %d outputs", in[2].Shape[0], in[1].Shape[0])
	}
	return typed(dt, y, err)
}

// shape is the shape of the convolution of x with w; errors name op me and operands in.
func (o Conv2D) shape(me Op, in []Type, x, w Shape) (Shape, error) {
	for i := range 2 {
		if o.Stride[i] < 0 || o.Dilation[i] < 0 || o.Pad[i] < 0 || o.Groups < 0 {
			return nil, wrong(me, in, "attributes must not be negative")
		}
	}
	o = o.norm()
	if w[0]%o.Groups != 0 || x[1]%o.Groups != 0 {
		return nil, wrong(me, in, "%d groups do not divide %d inputs and %d outputs", o.Groups, x[1], w[0])
	}
	if x[1]/o.Groups != w[1] {
		return nil, wrong(me, in, "input has %d channels, weight wants %d", x[1], w[1]*o.Groups)
	}
	y := Shape{x[0], w[0], 0, 0}
	for i := range 2 {
		span := o.Dilation[i]*(w[2+i]-1) + 1
		if x[2+i]+2*o.Pad[i] < span {
			return nil, wrong(me, in, "kernel spans %d, the padded input %d", span, x[2+i]+2*o.Pad[i])
		}
		y[2+i] = (x[2+i]+2*o.Pad[i]-span)/o.Stride[i] + 1
	}
	return y, nil
}

// Gradients: dx and dw are ops of their own, db sums dy over all but channels.
func (o Conv2D) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	dy := Leaf(ResultGrad)
	g := []*Term{
		Apply(Conv2DGradInput{o, slices.Clone(in[0].Shape)}, Leaf(1), dy),
		Apply(Conv2DGradWeight{o, slices.Clone(in[1].Shape)}, Leaf(0), dy),
	}
	if len(in) == 3 {
		g = append(g, Apply(ChannelSum{}, dy))
	}
	return g, nil
}

// Weights are the weight and the bias.
func (Conv2D) Weights() []int { return []int{1, 2} }

// FLOPs counts every weight at every position of the result.
func (o Conv2D) FLOPs(in ...Type) int64 {
	y, err := o.Infer(in...)
	if err != nil {
		return 0
	}
	return products(y.Shape, in[1].Shape)
}

// Run computes the convolution.
func (o Conv2D) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, conv2D[float32], conv2D[float64])
}

func conv2D[T element](o Conv2D, out Tensor, in []Tensor) {
	p := newPatches(o, in[0].Shape, in[1].Shape, out.Shape)
	x, w, y := vec[T](in[0]), wide(vec[T](in[1])), vec[T](out)
	bias := make([]float64, out.Shape[1])
	if len(in) == 3 {
		bias = wide(vec[T](in[2]))
	}
	seen := make([]float64, len(p.taps))
	for block := range p.images * p.groups {
		gather(seen, x[block*p.input:], p.taps)
		for k := range p.outputs {
			channel := block%p.groups*p.outputs + k
			kernel := w[channel*p.depth:][:p.depth]
			dst := y[(block*p.outputs+k)*p.pixels:][:p.pixels]
			for j := range dst {
				dst[j] = T(dot(kernel, seen[j*p.depth:]) + bias[channel])
			}
		}
	}
}

// Conv2DGradInput is the gradient of Conv2D with respect to its input, of shape Input: operands w, dy.
type Conv2DGradInput struct {
	Conv2D Conv2D
	Input  Shape
}

// Kind is "conv2d_grad_input".
func (Conv2DGradInput) Kind() string { return "conv2d_grad_input" }

func (o Conv2DGradInput) String() string {
	return fmt.Sprintf("conv2d_grad_input{%s, input %v}", o.Conv2D.attributes(), o.Input)
}

// Infer gives the input's shape.
func (o Conv2DGradInput) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"weight", 4, float}, operand{"gradient", 4, float})
	if err != nil {
		return Type{}, err
	}
	if err := checkShape(o, in, "input", o.Input, 4); err != nil {
		return Type{}, err
	}
	y, err := o.Conv2D.shape(o, in, o.Input, in[0].Shape)
	if err == nil && !y.Equal(in[1].Shape) {
		err = wrong(o, in, "the result of the convolution is %v", y)
	}
	return typed(dt, o.Input, err)
}

// Weights are the weight.
func (Conv2DGradInput) Weights() []int { return []int{0} }

// FLOPs are as many as the convolution's.
func (Conv2DGradInput) FLOPs(in ...Type) int64 { return products(in[1].Shape, in[0].Shape) }

// Run computes the gradient.
func (o Conv2DGradInput) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, conv2DGradInput[float32], conv2DGradInput[float64])
}

func conv2DGradInput[T element](o Conv2DGradInput, out Tensor, in []Tensor) {
	p := newPatches(o.Conv2D, out.Shape, in[0].Shape, in[1].Shape)
	w, dy, dx := wide(vec[T](in[0])), vec[T](in[1]), vec[T](out)
	seen, sums := make([]float64, len(p.taps)), make([]float64, p.input) // gradients of the patches, of x
	for block := range p.images * p.groups {
		clear(seen)
		for k := range p.outputs {
			kernel := w[(block%p.groups*p.outputs+k)*p.depth:][:p.depth]
			for j, g := range dy[(block*p.outputs+k)*p.pixels:][:p.pixels] {
				axpy(seen[j*p.depth:], float64(g), kernel)
			}
		}
		clear(sums)
		for i, at := range p.taps {
			if at >= 0 {
				sums[at] += seen[i]
			}
		}
		narrow(dx[block*p.input:], sums)
	}
}

// Conv2DGradWeight is the gradient of Conv2D with respect to its weight, of shape Weight: operands x, dy.
type Conv2DGradWeight struct {
	Conv2D Conv2D
	Weight Shape
}

// Kind is "conv2d_grad_weight".
func (Conv2DGradWeight) Kind() string { return "conv2d_grad_weight" }

func (o Conv2DGradWeight) String() string {
	return fmt.Sprintf("conv2d_grad_weight{%s, weight %v}", o.Conv2D.attributes(), o.Weight)
}

// Infer gives the weight's shape.
func (o Conv2DGradWeight) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float}, operand{"gradient", 4, float})
	if err != nil {
		return Type{}, err
	}
	if err := checkShape(o, in, "weight", o.Weight, 4); err != nil {
		return Type{}, err
	}
	y, err := o.Conv2D.shape(o, in, in[0].Shape, o.Weight)
	if err == nil && !y.Equal(in[1].Shape) {
		err = wrong(o, in, "the result of the convolution is %v", y)
	}
	return typed(dt, o.Weight, err)
}

// FLOPs are as many as the convolution's.
func (o Conv2DGradWeight) FLOPs(in ...Type) int64 { return products(in[1].Shape, o.Weight) }

// Run computes the gradient.
func (o Conv2DGradWeight) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, conv2DGradWeight[float32], conv2DGradWeight[float64])
}

func conv2DGradWeight[T element](o Conv2DGradWeight, out Tensor, in []Tensor) {
	p := newPatches(o.Conv2D, in[0].Shape, out.Shape, in[1].Shape)
	x, dy, dw := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	seen, sums := make([]float64, len(p.taps)), make([]float64, len(dw))
	for block := range p.images * p.groups {
		gather(seen, x[block*p.input:], p.taps)
		for k := range p.outputs {
			kernel := sums[(block%p.groups*p.outputs+k)*p.depth:][:p.depth]
			for j, g := range dy[(block*p.outputs+k)*p.pixels:][:p.pixels] {
				axpy(kernel, float64(g), seen[j*p.depth:])
			}
		}
	}
	narrow(dw, sums)
}
