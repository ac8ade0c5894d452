package nn

import (
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// Builder adds layers to the graph of a model. After the first error its methods do nothing and return nil, so that
// only Err has to be checked, at the end.
//
// Names of layers are unique. A layer's parameters are named after it as torchvision names them: name.weight,
// name.bias, name.running_mean, …. The model itself takes the names images, crops, labels, input, normalise,
// loss, score, batch_norm_momentum and random_counter.
type Builder struct {
	model *Model
	names map[string]bool
	err   error

	matched []bool // patterns of Config.Freeze
}

// Config is the model's Config with all defaults filled in.
func (b *Builder) Config() Config { return b.model.Config }

// Graph is the graph that is built, for Gorgonia's own operations.
func (b *Builder) Graph() *G.ExprGraph { return b.model.Graph }

// Err is the first error.
func (b *Builder) Err() error { return b.err }

// Fail records an error unless there is one already.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Apply adds a layer that consists of the op o.
func (b *Builder) Apply(name string, o op.Op, in ...*G.Node) *G.Node {
	if !b.claim(name) {
		return nil
	}
	return b.apply(name, o, in...)
}

// Param adds a parameter. Layer methods add their own.
func (b *Builder) Param(name string, init Init, shape ...int) *G.Node {
	return b.param(Param{Name: name, Init: init, Shape: shape})
}

// AddParam is Param with the other fields that p has.
func (b *Builder) AddParam(p Param) *G.Node { return b.param(p) }

// Buffer adds numbers to the state dict that PyTorch's net has there: an []int64, or a []float64, which is stored as
// Config.DType. The net itself reads constants.
func (b *Builder) Buffer(name string, values any, shape ...int) {
	if !b.claim(name) {
		return
	}
	dtype := "int64"
	switch x := values.(type) {
	case []int64:
	case []float64:
		dtype, values = b.model.Config.DType.String(), b.floats(x)
	default:
		b.Fail(fmt.Errorf("buffer %s is a %T: it must be an []int64 or a []float64", name, values))
	}
	b.model.entries = append(b.model.entries, Entry{name, shape, dtype, Buffer, 0, values, false})
}

// Share lists the tensors of a layer again, under the name of a layer that shares them, as PyTorch's net does. layer is
// the name of the first, and their names begin with it. A file may lack those listed again.
func (b *Builder) Share(name, layer string) {
	found := false
	for _, e := range b.model.entries {
		part, ok := strings.CutPrefix(e.Name, layer+".")
		if !ok || e.Shared {
			continue
		}
		e.Name, e.Shared, found = name+"."+part, true, true
		if !b.claim(e.Name) {
			return
		}
		b.model.entries = append(b.model.entries, e)
	}
	if !found {
		b.Fail(fmt.Errorf("layer %s shares the tensors of %s, which has none", name, layer))
	}
}

// Order sorts the tensors that the state dict has so far by rank, for nets that PyTorch declares in another order than
// it computes. Those of equal rank keep their order.
func (b *Builder) Order(rank func(name string) int) {
	slices.SortStableFunc(b.model.entries, func(x, y Entry) int { return rank(x.Name) - rank(y.Name) })
}

// apply adds one of the ops of a layer.
func (b *Builder) apply(name string, o op.Op, in ...*G.Node) *G.Node {
	if b.err != nil {
		return nil
	}
	n, err := Apply(name, o, in...)
	if err != nil {
		b.err = err
		return nil
	}
	return n
}

// claim takes a name. Gorgonia would make one node of two inputs with the same name.
func (b *Builder) claim(name string) bool {
	switch {
	case b.err != nil:
	case name == "":
		b.err = fmt.Errorf("a layer or parameter has no name")
	case b.names[name]:
		b.err = fmt.Errorf("two layers or parameters are called %q", name)
	default:
		b.names[name] = true
		return true
	}
	return false
}

// Input adds a further input of the network beside the images, such as a row of a table or a mask: numbers of the
// given shape for each sample, a node [N,shape…] of type Config.DType. Batches give its values under its name, in
// row-major order; the graph's own input, in Model.Own, is [N,C·H·W] for a shape [C,H,W].
func (b *Builder) Input(name string, shape ...int) *G.Node {
	if b.err == nil && op.Shape(shape).Size() < 1 {
		b.err = fmt.Errorf("input %s has the shape %v for each sample: it must have elements", name, shape)
	}
	t := op.T(b.model.Config.DType, append([]int{b.model.Config.Batch}, shape...)...)
	whole := t.Shape
	if len(shape) == 3 { // rows of numbers, which Reshape brings into the device's layout of images
		t.Shape = op.Shape{whole[0], whole[1:].Size()}
	}
	n := b.batchInput(name, t)
	if n == nil {
		return nil
	}
	b.model.Own = append(b.model.Own, n)
	if len(shape) != 3 {
		return n
	}
	return b.apply(name, op.Reshape{Shape: whole}, n)
}

// batchInput adds an input that differs from batch to batch.
func (b *Builder) batchInput(name string, t op.Type) *G.Node {
	n := b.input(name, t)
	if n != nil {
		b.model.Inputs = append(b.model.Inputs, n)
	}
	return n
}

// input adds an input of the graph.
func (b *Builder) input(name string, t op.Type) *G.Node {
	if !b.claim(name) {
		return nil
	}
	return newInput(b.model.Graph, name, t)
}

// param adds p to the model and to its state dict.
func (b *Builder) param(p Param) *G.Node {
	if b.err == nil && (len(p.Shape) == 0 || p.Shape.Size() < 1) {
		b.err = fmt.Errorf("parameter %s has the shape %v: it must have elements", p.Name, p.Shape)
	}
	m := b.model
	if m.Arch.Init != nil {
		p.Init = m.Arch.Init(p)
	}
	if p.Node = b.input(p.Name, op.T(m.Config.DType, p.Shape...)); p.Node == nil {
		return nil
	}
	p.Frozen = b.freeze(p.Name)
	stored := p.Shape
	if p.Stored != nil {
		stored = p.Stored
	}
	if stored.Size() != p.Shape.Size() {
		b.Fail(fmt.Errorf("parameter %s has the shape %v and is stored as %v: they must have as many elements", p.Name,
			p.Shape, stored))
		return nil
	}
	m.entries = append(m.entries, Entry{p.Name, stored, m.Config.DType.String(), Parameter, len(m.Params), nil, false})
	m.Params = append(m.Params, p)
	return p.Node
}

// shape is the shape of a layer's operand, which has to have rank dimensions.
func (b *Builder) shape(layer string, x *G.Node, rank int) (op.Shape, bool) {
	if b.err != nil {
		return nil, false
	}
	if x == nil {
		b.err = fmt.Errorf("layer %s has no operand", layer)
		return nil, false
	}
	s := op.Shape(x.Shape())
	if len(s) != rank {
		b.err = fmt.Errorf("layer %s: the operand has the shape %v: it must have %d dimensions", layer, s, rank)
		return nil, false
	}
	return s, true
}
