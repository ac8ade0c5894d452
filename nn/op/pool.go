package op

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// window is common to all pools: output element (i,j) depends on input elements (i·stride−pad+r, j·stride−pad+s) for
// r, s within the kernel. A zero stride means the kernel's size.
type window struct{ kernel, stride, pad [2]int }

func (w window) norm() window {
	for i := range 2 {
		w.stride[i] = cmp.Or(w.stride[i], w.kernel[i])
	}
	return w
}

func (w window) String() string {
	w = w.norm()
	return fmt.Sprintf("kernel %v, stride %v, pad %v", w.kernel, w.stride, w.pad)
}

func (w window) shape(o Op, in []Type, x Shape) (Shape, error) {
	w = w.norm()
	y := Shape{x[0], x[1], 0, 0}
	for i := range 2 {
		switch {
		case w.kernel[i] < 1 || w.stride[i] < 1 || w.pad[i] < 0:
			return nil, wrong(o, in, "kernel and stride must be at least 1, the pad not negative")
		case 2*w.pad[i] > w.kernel[i]:
			return nil, wrong(o, in, "the pad must be at most half the kernel")
		case x[2+i]+2*w.pad[i] < w.kernel[i]:
			return nil, wrong(o, in, "kernel %d is larger than the padded input %d", w.kernel[i], x[2+i]+2*w.pad[i])
		}
		y[2+i] = (x[2+i]+2*w.pad[i]-w.kernel[i])/w.stride[i] + 1
	}
	return y, nil
}

// each calls fn for every output element with the ranges of rows and columns of the input that it sees.
func (w window) each(xs, ys Shape, fn func(plane, out, h0, h1, w0, w1 int)) {
	w = w.norm()
	out := 0
	for plane := range ys[0] * ys[1] {
		for i := range ys[2] {
			h0 := i*w.stride[0] - w.pad[0]
			for j := range ys[3] {
				w0 := j*w.stride[1] - w.pad[1]
				fn(plane, out, max(h0, 0), min(h0+w.kernel[0], xs[2]), max(w0, 0), min(w0+w.kernel[1], xs[3]))
				out++
			}
		}
	}
}

// MaxPool is the maximum over windows of x [N,C,H,W]; padding counts as −∞. A zero stride means the kernel's size.
type MaxPool struct {
	Kernel, Stride, Pad [2]int // vertical, horizontal
}

func (o MaxPool) window() window { return window{o.Kernel, o.Stride, o.Pad} }

// Kind is "max_pool".
func (MaxPool) Kind() string { return "max_pool" }

func (o MaxPool) String() string { return "max_pool{" + o.window().String() + "}" }

// Infer gives [N,C,⌊(H+2 pad−kernel)/stride⌋+1,…].
func (o MaxPool) Infer(in ...Type) (Type, error) { return inferPool(o, o.window(), in) }

func inferPool(o Op, w window, in []Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float})
	if err != nil {
		return Type{}, err
	}
	y, err := w.shape(o, in, in[0].Shape)
	return typed(dt, y, err)
}

// Gradients goes to the first maximum of each window.
func (o MaxPool) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(MaxPoolGrad{o}, Leaf(0), Leaf(ResultGrad))}, nil
}

// Run computes the maxima.
func (o MaxPool) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, maxPool[float32], maxPool[float64])
}

func maxPool[T element](o MaxPool, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	o.first(in[0].Shape, out.Shape, func(i int) float64 { return float64(x[i]) }, func(i, j int) { y[j] = x[i] })
}

// first calls fn with the index of the first maximum in row-major order of each window and that of the result. NaN is
// larger than all.
func (o MaxPool) first(xs, ys Shape, x func(i int) float64, fn func(i, j int)) {
	o.window().each(xs, ys, func(plane, out, h0, h1, w0, w1 int) {
		at, best := -1, 0.0
		for h := h0; h < h1; h++ {
			for w := w0; w < w1; w++ {
				i := (plane*xs[2]+h)*xs[3] + w
				v := x(i)
				if at < 0 || v > best || math.IsNaN(v) && !math.IsNaN(best) {
					at, best = i, v
				}
			}
		}
		fn(at, out)
	})
}

// MaxPoolGrad is the gradient of MaxPool, for operands x, dy: the first maximum of each window, in row-major order,
// takes its gradient.
type MaxPoolGrad struct {
	MaxPool MaxPool
}

// Kind is "max_pool_grad".
func (MaxPoolGrad) Kind() string { return "max_pool_grad" }

func (o MaxPoolGrad) String() string { return "max_pool_grad{" + o.MaxPool.window().String() + "}" }

// Infer gives the shape of x.
func (o MaxPoolGrad) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float}, operand{"gradient", 4, float})
	if err != nil {
		return Type{}, err
	}
	y, err := o.MaxPool.window().shape(o, in, in[0].Shape)
	if err == nil && !y.Equal(in[1].Shape) {
		err = wrong(o, in, "the result of the pool is %v", y)
	}
	return typed(dt, in[0].Shape, err)
}

// Run spreads the gradient.
func (o MaxPoolGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, maxPoolGrad[float32], maxPoolGrad[float64])
}

func maxPoolGrad[T element](o MaxPoolGrad, out Tensor, in []Tensor) {
	x, dy, dx := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	sums := make([]float64, len(dx))
	o.MaxPool.first(in[0].Shape, in[1].Shape, func(i int) float64 { return float64(x[i]) },
		func(i, j int) { sums[i] += float64(dy[j]) })
	narrow(dx, sums)
}

// AvgPool is the mean over windows of x [N,C,H,W], where padding counts as zeros. A zero stride means the kernel's
// size.
type AvgPool struct {
	Kernel, Stride, Pad [2]int // vertical, horizontal
}

func (o AvgPool) window() window { return window{o.Kernel, o.Stride, o.Pad} }

// Kind is "avg_pool".
func (AvgPool) Kind() string { return "avg_pool" }

func (o AvgPool) String() string { return "avg_pool{" + o.window().String() + "}" }

// Infer gives [N,C,⌊(H+2 pad−kernel)/stride⌋+1,…].
func (o AvgPool) Infer(in ...Type) (Type, error) { return inferPool(o, o.window(), in) }

// Gradients spreads the gradient over each window.
func (o AvgPool) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(AvgPoolGrad{o, slices.Clone(in[0].Shape)}, Leaf(ResultGrad))}, nil
}

// Run computes the means.
func (o AvgPool) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, avgPool[float32], avgPool[float64])
}

func avgPool[T element](o AvgPool, out Tensor, in []Tensor) {
	x, y, xs := vec[T](in[0]), vec[T](out), in[0].Shape
	area := float64(o.Kernel[0] * o.Kernel[1])
	o.window().each(xs, out.Shape, func(plane, out, h0, h1, w0, w1 int) {
		sum := 0.0
		for h := h0; h < h1; h++ {
			for w := w0; w < w1; w++ {
				sum += float64(x[(plane*xs[2]+h)*xs[3]+w])
			}
		}
		y[out] = T(sum / area)
	})
}

// AvgPoolGrad is the gradient of AvgPool with respect to its operand, of shape Input.
type AvgPoolGrad struct {
	AvgPool AvgPool
	Input   Shape
}

// Kind is "avg_pool_grad".
func (AvgPoolGrad) Kind() string { return "avg_pool_grad" }

func (o AvgPoolGrad) String() string {
	return fmt.Sprintf("avg_pool_grad{%v, input %v}", o.AvgPool.window(), o.Input)
}

// Infer gives Input.
func (o AvgPoolGrad) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"gradient", 4, float})
	if err != nil {
		return Type{}, err
	}
	if err := checkShape(o, in, "input", o.Input, 4); err != nil {
		return Type{}, err
	}
	y, err := o.AvgPool.window().shape(o, in, o.Input)
	if err == nil && !y.Equal(in[0].Shape) {
		err = wrong(o, in, "the result of the pool is %v", y)
	}
	return typed(dt, o.Input, err)
}

// Run spreads the gradient.
func (o AvgPoolGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, avgPoolGrad[float32], avgPoolGrad[float64])
}

func avgPoolGrad[T element](o AvgPoolGrad, out Tensor, in []Tensor) {
	dy, dx, xs := vec[T](in[0]), vec[T](out), o.Input
	area := float64(o.AvgPool.Kernel[0] * o.AvgPool.Kernel[1])
	acc := make([]float64, len(dx))
	o.AvgPool.window().each(xs, in[0].Shape, func(plane, out, h0, h1, w0, w1 int) {
		for h := h0; h < h1; h++ {
			for w := w0; w < w1; w++ {
				acc[(plane*xs[2]+h)*xs[3]+w] += float64(dy[out]) / area
			}
		}
	})
	narrow(dx, acc)
}

// GlobalAvgPool is the mean of each plane of x [N,C,H,W].
type GlobalAvgPool struct{}

// Kind is "global_avg_pool".
func (GlobalAvgPool) Kind() string { return "global_avg_pool" }

func (GlobalAvgPool) String() string { return "global_avg_pool" }

// Infer gives [N,C].
func (o GlobalAvgPool) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float})
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[0], in[0].Shape[1]), nil
}

// Gradients spreads the gradient over the planes.
func (o GlobalAvgPool) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(GlobalAvgPoolGrad{slices.Clone(in[0].Shape)}, Leaf(ResultGrad))}, nil
}

// Run computes the means.
func (o GlobalAvgPool) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, globalAvgPool[float32], globalAvgPool[float64])
}

func globalAvgPool[T element](_ GlobalAvgPool, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	hw := in[0].Shape[2] * in[0].Shape[3]
	for i := range y {
		sum := 0.0
		for _, v := range x[i*hw:][:hw] {
			sum += float64(v)
		}
		y[i] = T(sum / float64(hw))
	}
}

// GlobalAvgPoolGrad is the gradient of GlobalAvgPool with respect to its operand, of shape Input.
type GlobalAvgPoolGrad struct {
	Input Shape
}

// Kind is "global_avg_pool_grad".
func (GlobalAvgPoolGrad) Kind() string { return "global_avg_pool_grad" }

func (o GlobalAvgPoolGrad) String() string {
	return fmt.Sprintf("global_avg_pool_grad{input %v}", o.Input)
}

// Infer gives Input.
func (o GlobalAvgPoolGrad) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"gradient", 2, float})
	if err == nil {
		err = checkShape(o, in, "input", o.Input, 4)
	}
	if err == nil && !o.Input[:2].Equal(in[0].Shape) {
		err = wrong(o, in, "the gradient must be [N C] of the input")
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, o.Input}, nil
}

// Run spreads the gradient.
func (o GlobalAvgPoolGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, globalAvgPoolGrad[float32], globalAvgPoolGrad[float64])
}

func globalAvgPoolGrad[T element](_ GlobalAvgPoolGrad, out Tensor, in []Tensor) {
	dy, dx := vec[T](in[0]), vec[T](out)
	hw := out.Shape[2] * out.Shape[3]
	for i := range dx {
		dx[i] = dy[i/hw] / T(hw)
	}
}
