package onnx

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/graph"
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// Names of the net's input and output.
const (
	input  = "input"
	output = "logits"
)

// builder walks the graph of a model and lists nodes, in an order in which they can run, and the tensors that they
// read.
type builder struct {
	model *nn.Model
	open  bool // the batch is

	nodes   []node
	tensors []tensor

	names   map[string]bool
	leaves  map[*G.Node]func() string // the model's parameters and statistics; each function adds its tensor
	values  map[*G.Node]string        // names
	entries map[string]nn.Entry
	read    func(nn.Entry) ([]float32, error)
}

func newBuilder(m *nn.Model, read func(nn.Entry) ([]float32, error), open bool) *builder {
	b := &builder{
		model: m, open: open, read: read, names: map[string]bool{input: true, output: true},
		leaves: map[*G.Node]func() string{},
		values: map[*G.Node]string{}, entries: map[string]nn.Entry{},
	}
	for _, e := range m.StateDict() {
		b.entries[e.Name] = e
	}
	b.leaves[m.Input] = b.normalise
	for _, in := range m.Own {
		b.names[in.Name()] = true
		b.leaves[in] = in.Name
	}
	for _, p := range m.Params {
		b.leaves[p.Node] = func() string { return b.weight(p.Name) }
	}
	return b
}

func (b *builder) build() error {
	logits, err := b.value(b.model.Logits)
	if err != nil {
		return err
	}
	for i := range b.nodes { // nothing reads the last one
		if b.nodes[i].out == logits {
			b.nodes[i].out = output
		}
	}
	return nil
}

// value is the name of a node's value.
func (b *builder) value(n *G.Node) (string, error) {
	if name, ok := b.values[n]; ok {
		return name, nil
	}
	var name string
	switch o, ok := n.Op().(*nn.Op); {
	case ok:
		l := &layer{builder: b, name: o.Layer(), op: o.Op(), out: o.Out()}
		for _, c := range graph.NodesOf(b.model.Graph.From(n.ID())) { // in order, with repetition
			l.in = append(l.in, c.(*G.Node))
		}
		var err error
		if name, err = l.convert(); err != nil {
			return "", err
		}
	case b.leaves[n] != nil:
		name = b.leaves[n]()
	case nn.IsConstant(n):
		var err error
		if name, err = b.stored(n); err != nil {
			return "", err
		}
	case n.Op() != nil:
		return "", fmt.Errorf("%v is an op of Gorgonia's own: only those of nn can be exported", n)
	default:
		return "", fmt.Errorf("the logits depend on %s, which evaluation does not know", n.Name())
	}
	b.values[n] = name
	return name, nil
}

// emit adds a node and gives the name of its result.
func (b *builder) emit(layer, kind string, in []string, attributes ...attribute) string {
	out := b.unique(layer + "/" + kind)
	b.nodes = append(b.nodes, node{kind: kind, in: slices.Clone(in), out: out, name: out, attributes: attributes})
	return out
}

// unique takes a name, or the first free one with a number appended.
func (b *builder) unique(name string) string {
	free := name
	for i := 2; b.names[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	b.names[free] = true
	return free
}

// normalise is the input less the mean, over the standard deviation.
func (b *builder) normalise() string {
	c, x := b.model.Config, input
	if slices.ContainsFunc(c.Mean, func(v float64) bool { return v != 0 }) {
		x = b.emit("normalise", "Sub", []string{x, b.channels("normalise/mean", c.Mean)})
	}
	if slices.ContainsFunc(c.Std, func(v float64) bool { return v != 1 }) {
		x = b.emit("normalise", "Div", []string{x, b.channels("normalise/std", c.Std)})
	}
	return x
}

// channels adds a constant [1,C,1,1].
func (b *builder) channels(name string, v []float64) string {
	list := make([]float32, len(v))
	for i, x := range v {
		list[i] = float32(x)
	}
	return b.constant(name, op.Shape{1, len(v), 1, 1}, list...)
}

func (b *builder) constant(name string, shape op.Shape, v ...float32) string {
	return b.add(tensor{name: name, shape: shape, floats: func() ([]float32, error) { return v, nil }})
}

// integers adds a vector of integers, which some operators take for attributes.
func (b *builder) integers(name string, v ...int) string {
	return b.add(tensor{name: name, shape: op.Shape{len(v)}, ints: v})
}

// stored adds a constant of the graph.
func (b *builder) stored(n *G.Node) (string, error) {
	t, err := nn.TypeOf(n)
	if err != nil {
		return "", err
	}
	switch x := n.Value().Data().(type) {
	case []float32:
		return b.constant(n.Name(), t.Shape, x...), nil
	case []int32:
		list := make([]int, len(x))
		for i, v := range x {
			list[i] = int(v)
		}
		return b.add(tensor{name: n.Name(), shape: t.Shape, ints: list}), nil
	}
	return "", fmt.Errorf("the constant %s is a %T: it must be []float32 or []int32", n.Name(), n.Value().Data())
}

// weight adds a tensor of the state dict.
func (b *builder) weight(name string) string {
	e := b.entries[name]
	shape := e.Shape
	if e.Kind == nn.Parameter {
		shape = b.model.Params[e.Index].Shape
	}
	return b.add(tensor{name: name, shape: shape, floats: func() ([]float32, error) { return b.read(e) }})
}

func (b *builder) add(t tensor) string {
	t.name = b.unique(t.name)
	b.tensors = append(b.tensors, t)
	return t.name
}
