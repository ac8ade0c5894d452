package op

import "fmt"

// Conv2D is the cross-correlation of x [N,C,H,W] with w [O,C/G,kh,kw], plus the bias b [O] if there is one:
//
//	y[n,o,i,j] = b[o] + Σ_{c,r,s} w[o,c,r,s] · x[n, g·C/G+c, i·stride−pad+r·dilation, j·stride−pad+s·dilation]
//
// with 0 outside x and g the group of o. A zero stride, dilation or number of groups means 1.
type Conv2D struct {
	Stride, Pad, Dilation [2]int // vertical, horizontal
	Groups                int
}

// norm replaces zeros by what they mean.
func (o Conv2D) norm() Conv2D {
	for i := range 2 {
		o.Stride[i] = max(o.Stride[i], 1)
		o.Dilation[i] = max(o.Dilation[i], 1)
	}
	o.Groups = max(o.Groups, 1)
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
	if len(in) == 3 {
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
	return Type{dt, y}, err
}

// shape is the shape of the convolution of x with w; errors are those of op me on operands in.
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
		Apply(Conv2DGradInput{o, in[0].Shape}, Leaf(1), dy),
		Apply(Conv2DGradWeight{o, in[1].Shape}, Leaf(0), dy),
	}
	if len(in) == 3 {
		g = append(g, Apply(ChannelSum{}, dy))
	}
	return g, nil
}

// Run computes the convolution.
func (o Conv2D) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in,
		func() { conv(o.norm(), out, in, vec[float32]) },
		func() { conv(o.norm(), out, in, vec[float64]) })
}

func conv[T float32 | float64](o Conv2D, out Tensor, in []Tensor, vec func(Tensor) []T) {
	x, w, y := vec(in[0]), vec(in[1]), vec(out)
	xs, ys := in[0].Shape, out.Shape
	hw, pq := xs[2]*xs[3], ys[2]*ys[3]
	acc := make([]float64, pq)
	for n := range ys[0] {
		for k := range ys[1] {
			clear(acc)
			o.taps(k, xs, in[1].Shape, ys, func(c, wi, from, to, count int) {
				a := float64(w[wi])
				src := x[(n*xs[1]+c)*hw+from:]
				dst := acc[to:][:count]
				for j := range dst {
					dst[j] += a * float64(src[j*o.Stride[1]])
				}
			})
			b := 0.0
			if len(in) == 3 {
				b = float64(vec(in[2])[k])
			}
			dst := y[(n*ys[1]+k)*pq:][:pq]
			for j := range dst {
				dst[j] = T(acc[j] + b)
			}
		}
	}
}

// taps calls fn for every weight of output channel k and every row of the output that it touches: count elements of
// the output from "to" on take the elements of channel c of the input from "from" on, by strides.
func (o Conv2D) taps(k int, xs, ws, ys Shape, fn func(c, wi, from, to, count int)) {
	group := k / (ws[0] / o.Groups)
	for c := range ws[1] {
		for r := range ws[2] {
			for s := range ws[3] {
				wi := ((k*ws[1]+c)*ws[2]+r)*ws[3] + s
				lo, hi := inside(ys[3], xs[3], o.Stride[1], s*o.Dilation[1]-o.Pad[1])
				if lo >= hi {
					continue
				}
				for i := range ys[2] {
					h := i*o.Stride[0] - o.Pad[0] + r*o.Dilation[0]
					if h < 0 || h >= xs[2] {
						continue
					}
					from := h*xs[3] + lo*o.Stride[1] - o.Pad[1] + s*o.Dilation[1]
					fn(group*ws[1]+c, wi, from, i*ys[3]+lo, hi-lo)
				}
			}
		}
	}
}

// inside is the range of j in [0,n) for which j·stride+shift lies in [0,size).
func inside(n, size, stride, shift int) (lo, hi int) {
	if shift < 0 {
		lo = (-shift + stride - 1) / stride
	}
	if last := size - 1 - shift; last >= 0 {
		hi = min(n, last/stride+1)
	}
	return lo, max(lo, hi)
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
	if len(o.Input) != 4 {
		return Type{}, wrong(o, in, "the input must have 4 dimensions")
	}
	y, err := o.Conv2D.shape(o, in, o.Input, in[0].Shape)
	if err == nil && !y.Equal(in[1].Shape) {
		err = wrong(o, in, "the result of the convolution is %v", y)
	}
	return Type{dt, o.Input}, err
}

// Run computes the gradient.
func (o Conv2DGradInput) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in,
		func() { convGradInput(o.Conv2D.norm(), out, in, vec[float32]) },
		func() { convGradInput(o.Conv2D.norm(), out, in, vec[float64]) })
}

func convGradInput[T float32 | float64](o Conv2D, out Tensor, in []Tensor, vec func(Tensor) []T) {
	w, dy, dx := vec(in[0]), vec(in[1]), vec(out)
	xs, ys := out.Shape, in[1].Shape
	hw, pq := xs[2]*xs[3], ys[2]*ys[3]
	acc := make([]float64, xs[1]*hw)
	for n := range ys[0] {
		clear(acc)
		for k := range ys[1] {
			src := dy[(n*ys[1]+k)*pq:][:pq]
			o.taps(k, xs, in[0].Shape, ys, func(c, wi, from, to, count int) {
				a := float64(w[wi])
				dst := acc[c*hw+from:]
				for j, v := range src[to:][:count] {
					dst[j*o.Stride[1]] += a * float64(v)
				}
			})
		}
		for j, v := range acc {
			dx[n*len(acc)+j] = T(v)
		}
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
	if len(o.Weight) != 4 {
		return Type{}, wrong(o, in, "the weight must have 4 dimensions")
	}
	y, err := o.Conv2D.shape(o, in, in[0].Shape, o.Weight)
	if err == nil && !y.Equal(in[1].Shape) {
		err = wrong(o, in, "the result of the convolution is %v", y)
	}
	return Type{dt, o.Weight}, err
}

// Run computes the gradient.
func (o Conv2DGradWeight) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in,
		func() { convGradWeight(o.Conv2D.norm(), out, in, vec[float32]) },
		func() { convGradWeight(o.Conv2D.norm(), out, in, vec[float64]) })
}

func convGradWeight[T float32 | float64](o Conv2D, out Tensor, in []Tensor, vec func(Tensor) []T) {
	x, dy, dw := vec(in[0]), vec(in[1]), vec(out)
	xs, ys := in[0].Shape, in[1].Shape
	hw, pq := xs[2]*xs[3], ys[2]*ys[3]
	acc := make([]float64, len(dw))
	for n := range ys[0] {
		for k := range ys[1] {
			grad := dy[(n*ys[1]+k)*pq:][:pq]
			o.taps(k, xs, out.Shape, ys, func(c, wi, from, to, count int) {
				src := x[(n*xs[1]+c)*hw+from:]
				sum := 0.0
				for j, v := range grad[to:][:count] {
					sum += float64(v) * float64(src[j*o.Stride[1]])
				}
				acc[wi] += sum
			})
		}
	}
	for i, v := range acc {
		dw[i] = T(v)
	}
}
