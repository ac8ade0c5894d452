package op

import (
	"slices"

	"onlinerna/nn/op/expr"
)

// Map applies an elementwise expression to its operands:
//
//	y[n,c,p] = Expr(x₀[n,c,p], x₁[n,c,p], …)
//
// where n counts along the first dimension, c along the second and p along those behind, of the result. An operand may
// be repeated along each of the three. The largest has the shape of the result, and the others have
//
//   - as many dimensions, with the same extents or 1; along the third and further ones all are the same or all 1;
//   - or are a vector [C], one number a channel, for a result of 2 dimensions or more, or [C,1,1] for one of 4;
//   - or are a matrix [N,C], one number for each image and channel, for a result of 3 or more;
//   - or are scalars, [] or [1].
//
// Three axes suffice for biases, gates, masks and tables of scores, whatever order devices store pixels in, and let
// kernels hoist loads out of inner loops. Other repetitions are those of an Expand, which nn.Builder.Map adds.
//
// An operand that counts random numbers is an int32 [2]; see expr.Random.
type Map struct {
	Expr expr.Expr
}

// Axes are the dimensions of a result along which an operand varies. Along the others it is repeated.
type Axes uint8

// The axes, and all of them: the operand has an element for each of the result.
const (
	Samples  Axes = 1 << iota // the first
	Channels                  // the second
	Pixels                    // all further dimensions
	All      = Samples | Channels | Pixels
)

// Extents takes the shape of a result apart into samples, channels and pixels. Missing dimensions count as 1.
func (s Shape) Extents() (samples, channels, pixels int) {
	samples, channels, pixels = 1, 1, 1
	for i, d := range s {
		switch i {
		case 0:
			samples = d
		case 1:
			channels = d
		default:
			pixels *= d
		}
	}
	return samples, channels, pixels
}

// Along returns the axes of a result of shape y along which an operand of shape x varies, or an error if it does not
// fit. An operand as large as y varies along all.
func Along(x, y Shape) (a Axes, ok bool) {
	switch {
	case x.Equal(y):
		return All, true
	case x.Size() == 1 && len(x) < 2:
		a = 0
	case len(x) == len(y):
		for i, d := range x {
			axis := Axes(1) << min(i, 2)
			switch whole := i < 2 || x[2:].Equal(y[2:]); {
			case d == y[i] && whole:
				if d > 1 {
					a |= axis
				}
			case d == 1 && (i < 2 || x[2:].Size() == 1):
			default:
				return 0, false
			}
		}
	case len(x) == 1 && len(y) >= 2 && x[0] == y[1], len(y) == 4 && x.Equal(Shape{y[1], 1, 1}):
		a = Channels
	case len(x) == 2 && len(y) >= 3 && x[0] == y[0] && x[1] == y[1]:
		a = Samples | Channels
	default:
		return 0, false
	}
	if x.Size() == y.Size() {
		a = All
	}
	return a, true
}

// Index gives, for an operand that varies along a, the number of its element that goes into an element of a result of
// the given extents.
func (a Axes) Index(n, c, p, channels, pixels int) int {
	i := 0
	if a&Samples != 0 {
		i = n
	}
	if a&Channels != 0 {
		i = i*channels + c
	}
	if a&Pixels != 0 {
		i = i*pixels + p
	}
	return i
}

// Kind is "map".
func (Map) Kind() string { return "map" }

func (o Map) String() string { return "map{" + o.Expr.String() + "}" }

// Infer gives the shape of the largest operand.
func (o Map) Infer(in ...Type) (Type, error) {
	if !o.Expr.Valid() {
		return Type{}, wrong(o, in, "the expression is missing")
	}
	if n := o.Expr.Args(); n != len(in) || n == 0 {
		return Type{}, wrong(o, in, "the expression reads %d operands: it must read those there are, and one at least",
			n)
	}
	want := make([]operand, len(in))
	var shape Shape
	for i, t := range in {
		want[i] = operand{"a number", -1, float}
		numbers, counter := o.Expr.Reads(i)
		switch {
		case !counter && !numbers:
			return Type{}, wrong(o, in, "the expression does not read operand %d", i)
		case counter && numbers:
			return Type{}, wrong(o, in, "operand %d counts random numbers and cannot be one", i)
		case counter:
			want[i] = operand{"the counter of random numbers", 1, integer}
			if !t.Shape.Equal(Shape{2}) {
				return Type{}, wrong(o, in, "operand %d counts random numbers: its shape must be [2]", i)
			}
		case shape == nil || t.Shape.Size() > shape.Size() || t.Shape.Size() == shape.Size() &&
			len(t.Shape) > len(shape):
			shape = t.Shape
		}
	}
	dt, err := check(o, in, want...)
	if err == nil && dt == 0 {
		err = wrong(o, in, "no operand has the shape of the result")
	}
	for i, w := range want {
		if err == nil && w.kind == float {
			if _, ok := Along(in[i].Shape, shape); !ok {
				err = wrong(o, in, "operand %d cannot be repeated to %v", i, shape)
			}
		}
	}
	return typed(dt, shape, err)
}

// Axes says along which axes of the result each operand varies, for operands that fit. That of one that counts
// random numbers is 0.
func (o Map) Axes(in ...Type) []Axes {
	axes := make([]Axes, len(in))
	y, err := o.Infer(in...)
	for i, t := range in {
		if err == nil && t.DType.Float() {
			axes[i], _ = Along(t.Shape, y.Shape)
		}
	}
	return axes
}

// Overwrites lists the operands that are as large as the result.
func (o Map) Overwrites(in ...Type) []int {
	var list []int
	for i, a := range o.Axes(in...) {
		if a == All {
			list = append(list, i)
		}
	}
	return list
}

// Gradients are expressions of the operands and the gradient, summed up where an operand is repeated. They read the
// result where that spares an operand.
func (o Map) Gradients(in ...Type) ([]*Term, error) {
	result, err := o.Infer(in...)
	if err != nil {
		return nil, err
	}
	axes := o.Axes(in...)
	dy, y := len(in), len(in)+1
	terms := make([]*Term, len(in))
	for i, g := range o.Expr.Gradient(expr.Arg(dy)) {
		if !g.Valid() {
			continue
		}
		large := func(g expr.Expr) int { // operands that have to be kept for the backward pass, or the result
			n := 0
			for j := range g.Args() {
				if numbers, _ := g.Reads(j); numbers && (j == y || j < dy && axes[j] == All) {
					n++
				}
			}
			return n
		}
		if _, leaf := o.Expr.IsArg(); !leaf {
			if r := g.Replace(o.Expr, expr.Arg(y)); large(r) <= large(g) {
				g = r
			}
		}
		terms[i] = sumTo(in[i].Shape, result.Shape, axes[i], compact(g, dy))
	}
	return terms, nil
}

// compact makes the term of an expression whose operands after the op's own are the gradient dy and the result.
func compact(g expr.Expr, dy int) *Term {
	var args []*Term
	at := make(map[int]expr.Expr)
	for i := range g.Args() {
		numbers, counter := g.Reads(i)
		if !numbers && !counter {
			continue
		}
		leaf := Operand(i)
		switch i {
		case dy:
			leaf = ResultGrad
		case dy + 1:
			leaf = Result
		}
		at[i] = expr.Arg(len(args))
		args = append(args, Leaf(leaf))
	}
	g = g.Substitute(func(i int) expr.Expr { return at[i] })
	if _, ok := g.IsArg(); ok {
		return args[0]
	}
	return Apply(Map{g}, args...)
}

// sumTo makes the term that sums t, of shape y, up to an operand's shape.
func sumTo(shape, y Shape, a Axes, t *Term) *Term {
	switch {
	case a == All && shape.Equal(y):
		return t
	case a == All:
		return Apply(Reshape{slices.Clone(shape)}, t)
	case a == Channels && len(shape) == 1:
		return Apply(ChannelSum{}, t)
	case a == Channels:
		return Apply(Reshape{slices.Clone(shape)}, Apply(ChannelSum{}, t))
	}
	return Apply(SumTo{slices.Clone(shape)}, t)
}

// Run evaluates the expression in float64.
func (o Map) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, mapped[float32], mapped[float64])
}

func mapped[T element](o Map, out Tensor, in []Tensor) {
	types := make([]Type, len(in))
	for i, t := range in {
		types[i] = t.Type()
	}
	axes := o.Axes(types...)
	_, channels, pixels := out.Shape.Extents()
	y, v := vec[T](out), o.Expr.Evaluator()
	args := make([][]float64, len(in))
	for i := range args {
		args[i] = make([]float64, expr.BlockSize)
	}
	for first := 0; first < len(y); first += expr.BlockSize {
		block := y[first:min(first+expr.BlockSize, len(y))]
		for i, x := range in {
			d, ok := x.Data.([]T)
			if !ok {
				continue
			}
			for j := range block {
				if axes[i] == All {
					args[i][j] = float64(d[first+j])
					continue
				}
				n, c, p := position(first+j, channels, pixels)
				args[i][j] = float64(d[axes[i].Index(n, c, p, channels, pixels)])
			}
		}
		result := v.Run(len(block), args, func(r expr.Node, dst []float64) {
			counter := vec[int32](in[r.Index])
			for j := range dst {
				n, c, p := position(first+j, channels, pixels)
				if r.PerSample {
					c, p = 0, 0
				}
				dst[j] = float64(expr.Uniform(r.Key, uint32(counter[0]), uint32(counter[1])+uint32(n),
					uint32(p*channels+c)))
			}
		})
		for j, r := range result {
			block[j] = T(r)
		}
	}
}

// position takes the row-major number of an element apart.
func position(i, channels, pixels int) (n, c, p int) {
	return i / (channels * pixels), i / pixels % channels, i % pixels
}
