package nn

import (
	"fmt"
	"io"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/op"
)

// Concat joins operands along an axis.
func (b *Builder) Concat(name string, axis int, xs ...*G.Node) *G.Node {
	return b.Apply(name, op.Concat{Axis: axis}, xs...)
}

// Constant adds a value that never changes: a []float64, which is converted to Config.DType, or a []int32.
func (b *Builder) Constant(name string, t op.Tensor) *G.Node {
	if !b.claim(name) {
		return nil
	}
	n := -1
	switch x := t.Data.(type) {
	case []int32:
		n = len(x)
	case []float64:
		n, t.Data = len(x), b.floats(x)
	}
	if len(t.Shape) == 0 || n != t.Shape.Size() {
		b.err = fmt.Errorf("constant %s is a %T of shape %v: it must be a []float64 or []int32 that fills the shape",
			name, t.Data, t.Shape)
		return nil
	}
	v := tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(t.Data))
	return b.model.Graph.AddNode(G.NewConstant(unprinted{v, name}, G.WithName(name)))
}

// unprinted is the value of a constant. Gorgonia prints values to tell nodes apart: here the name stands for the
// elements, of which tables of transformers have millions.
type unprinted struct {
	*tensor.Dense
	name string
}

// Format writes the name.
func (u unprinted) Format(s fmt.State, _ rune) { io.WriteString(s, u.name) }

// Dense returns the tensor that is the value of a node, which a constant of a Builder wraps.
func Dense(v G.Value) (d *tensor.Dense, ok bool) {
	if u, ok := v.(unprinted); ok {
		return u.Dense, true
	}
	d, ok = v.(*tensor.Dense)
	return d, ok
}

// floats are x as numbers of Config.DType.
func (b *Builder) floats(x []float64) any {
	if b.Config().DType != op.Float32 {
		return x
	}
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// Gather picks elements along an axis of x by their indices, a constant.
func (b *Builder) Gather(name string, x *G.Node, axis int, indices *G.Node) *G.Node {
	return b.Apply(name, op.Gather{Axis: axis}, x, indices)
}

// Roll shifts x cyclically: element i of the result is element i + by[d] along each dimension d.
func (b *Builder) Roll(name string, x *G.Node, by ...int) *G.Node {
	return b.Apply(name, op.Roll{By: by}, x)
}

// Slice cuts out elements from to to−1 along an axis.
func (b *Builder) Slice(name string, x *G.Node, axis, from, to int) *G.Node {
	if s, ok := b.operand(name, x); ok {
		return b.Apply(name, op.SliceAxis(s, axis, from, to), x)
	}
	return nil
}

// Pad adds zeros at both ends of each dimension.
func (b *Builder) Pad(name string, x *G.Node, before, after []int) *G.Node {
	return b.Apply(name, op.Pad{Before: before, After: after}, x)
}

// Permute makes axis axes[i] of x axis i of the result.
func (b *Builder) Permute(name string, x *G.Node, axes ...int) *G.Node {
	return b.Apply(name, op.Permute{Axes: axes}, x)
}

// Reshape gives the elements of x, in row-major order, another shape.
func (b *Builder) Reshape(name string, x *G.Node, shape ...int) *G.Node {
	return b.Apply(name, op.Reshape{Shape: shape}, x)
}

// Expand repeats x to a shape, along dimensions where its extent is 1. Layers of Map need it only for repetitions that
// op.Map lacks.
func (b *Builder) Expand(name string, x *G.Node, shape ...int) *G.Node {
	return b.Apply(name, op.Expand{Shape: shape}, x)
}

// Reduce adds the sum, mean or maximum of x over axes, whose extents become 1.
func (b *Builder) Reduce(name string, x *G.Node, by op.Reduction, axes ...int) *G.Node {
	return b.Apply(name, op.Reduce{By: by, Axes: axes}, x)
}

// MatMul adds the products of the matrices in the last two dimensions of x and y; those of y may be transposed.
func (b *Builder) MatMul(name string, x, y *G.Node, transposed bool) *G.Node {
	return b.Apply(name, op.MatMul{TransB: transposed}, x, y)
}

// Softmax adds exp(x)/Σ exp(x) along the last dimension.
func (b *Builder) Softmax(name string, x *G.Node) *G.Node { return b.Apply(name, op.Softmax{}, x) }

// LayerNorm adds a layer normalisation of x [...,C] along its last dimension, with parameters name.weight and name.bias
// [C], which start as 1 and 0.
func (b *Builder) LayerNorm(name string, x *G.Node, eps float64) *G.Node {
	s, ok := b.operand(name, x)
	if !ok || !b.claim(name) {
		return nil
	}
	scale, bias := b.normParams(name, s[len(s)-1], 1)
	return b.apply(name, op.LayerNorm{Eps: eps}, x, scale, bias)
}

// RMSNorm divides x [...,C] by its root mean square along its last dimension, with the parameter name.weight [C], which
// starts as 1.
func (b *Builder) RMSNorm(name string, x *G.Node, eps float64) *G.Node {
	s, ok := b.operand(name, x)
	if !ok || !b.claim(name) {
		return nil
	}
	scale := b.param(Param{Name: name + ".weight", Shape: op.Shape{s[len(s)-1]}, Init: Init{Scale: 1},
		BiasOrNorm: true})
	return b.apply(name, op.RMSNorm{Eps: eps}, x, scale)
}

// GroupNorm adds a normalisation of groups of channels of x [N,C,…], with parameters name.weight and name.bias [C],
// which start as 1 and 0.
func (b *Builder) GroupNorm(name string, x *G.Node, groups int, eps float64) *G.Node {
	return b.groupNorm(name, x, groups, eps, 1)
}

// groupNorm is GroupNorm with an initial value of name.weight.
func (b *Builder) groupNorm(name string, x *G.Node, groups int, eps, initial float64) *G.Node {
	s, ok := b.operand(name, x)
	if ok && len(s) < 2 {
		b.err = fmt.Errorf("layer %s: the operand has the shape %v: it must have 2 dimensions or more", name, s)
	}
	if !ok || !b.claim(name) {
		return nil
	}
	scale, bias := b.normParams(name, s[1], initial)
	return b.apply(name, op.GroupNorm{Groups: groups, Eps: eps}, x, scale, bias)
}

// normParams are the scale and the bias of a normalisation.
func (b *Builder) normParams(name string, c int, initial float64) (scale, bias *G.Node) {
	scale = b.param(Param{Name: name + ".weight", Shape: op.Shape{c}, Init: Init{Scale: initial}, BiasOrNorm: true})
	bias = b.param(Param{Name: name + ".bias", Shape: op.Shape{c}, Init: Init{}, BiasOrNorm: true})
	return scale, bias
}

// operand is the shape of a layer's operand, which has 1 dimension or more.
func (b *Builder) operand(layer string, x *G.Node) (op.Shape, bool) {
	if b.err == nil && x == nil {
		b.err = fmt.Errorf("layer %s has no operand", layer)
	}
	if b.err != nil {
		return nil, false
	}
	s := slices.Clone(op.Shape(x.Shape()))
	if len(s) == 0 {
		b.err = fmt.Errorf("layer %s: the operand is a scalar: it must have dimensions", layer)
		return nil, false
	}
	return s, true
}
