package machine

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/graph"
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// source is the origin of a value.
type source uint8

const (
	computed source = iota // a step makes it
	input                  // Write stores it, or its storage is bound
	constant               // it is part of the graph
)

// program is a graph as a device.Program with the nodes of its values. Values that a device recomputes have no node.
type program struct {
	device.Program
	nodes   []*G.Node
	values  map[*G.Node]int
	sources []source
	graph   *G.ExprGraph
	again   int // values that recompute has made a second time

	loops     []loop       // of steps
	handed    map[int]bool // values in Keep that need not last until the end of a run
	portionOf map[int]int  // by portion: the value that it is a part of
}

// newProgram lowers the part of g that c.Keep and c.Bind need.
func newProgram(g *G.ExprGraph, c *Config) (*program, error) {
	sorted, err := G.Sort(g)
	if err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	slices.Reverse(sorted)
	p := &program{values: make(map[*G.Node]int), graph: g}
	children := make(map[*G.Node]G.Nodes, len(sorted))
	for _, n := range sorted {
		children[n] = childrenOf(g, n)
	}
	live, err := liveNodes(c, children)
	if err != nil {
		return nil, err
	}
	names := make(map[string]*G.Node)
	for _, n := range sorted {
		if !live[n] {
			continue
		}
		if n.Op() == nil {
			if o, ok := names[n.Name()]; ok {
				return nil,
					fmt.Errorf("machine: two inputs are named %q, of shapes %v and %v: give them different names",
						n.Name(), o.Shape(), n.Shape())
			}
			names[n.Name()] = n
		}
		if err := p.add(n, children[n], c.Device); err != nil {
			return nil, err
		}
	}
	if err := p.checkInPlace(); err != nil {
		return nil, err
	}
	for _, n := range c.Keep {
		p.Keep = append(p.Keep, p.values[n])
	}
	for n := range c.Bind {
		if v, ok := p.values[n]; ok && p.sources[v] == computed {
			p.Keep = append(p.Keep, v)
		}
	}
	for _, s := range p.Steps { // state is persistent: its update must be stored
		if _, ok := s.Op.(op.InPlace); ok {
			p.Keep = append(p.Keep, s.Out)
		}
	}
	slices.Sort(p.Keep)
	p.Keep = slices.Compact(p.Keep)
	return p, nil
}

// rewrite has a device change the program.
func (p *program) rewrite(r device.Rewriter) {
	r.Rewrite(&p.Program)
	p.made()
}

// made notes values that were added: they have no nodes.
func (p *program) made() {
	for range p.Values[len(p.nodes):] {
		p.nodes, p.sources = append(p.nodes, nil), append(p.sources, computed)
	}
}

// childrenOf lists a node's operands. Node.children is not exported; From keeps order and repetition.
func childrenOf(g *G.ExprGraph, n *G.Node) G.Nodes {
	var r G.Nodes
	for _, c := range graph.NodesOf(g.From(n.ID())) {
		r = append(r, c.(*G.Node))
	}
	return r
}

// liveNodes marks the nodes on which a kept or bound result depends.
func liveNodes(c *Config, children map[*G.Node]G.Nodes) (map[*G.Node]bool, error) {
	live := make(map[*G.Node]bool)
	var mark func(n *G.Node)
	mark = func(n *G.Node) {
		if !live[n] {
			live[n] = true
			for _, c := range children[n] {
				mark(c)
			}
		}
	}
	for i, n := range c.Keep {
		if n == nil {
			return nil, fmt.Errorf("machine: Keep[%d] is nil", i)
		}
		if _, ok := children[n]; !ok {
			return nil, fmt.Errorf("machine: Keep[%d], %s, is not a node of the graph", i, label(n))
		}
		mark(n)
	}
	for n := range c.Bind {
		if n == nil {
			return nil, fmt.Errorf("machine: Bind has storage for a nil node")
		}
		if _, ok := children[n]; !ok {
			return nil, fmt.Errorf("machine: Bind has storage for %s, which is not a node of the graph", label(n))
		}
		if n.Op() != nil {
			mark(n)
		}
	}
	if len(live) == 0 {
		return nil, fmt.Errorf("machine: nothing to compute: Keep and Bind name no result")
	}
	return live, nil
}

// add appends the value of n and, unless it is an input or a constant, the step that makes it.
func (p *program) add(n *G.Node, operands G.Nodes, dev device.Device) error {
	t, err := typeOf(n)
	if err != nil {
		return fmt.Errorf("machine: %s: %w", label(n), err)
	}
	v := len(p.Values)
	p.values[n] = v
	p.nodes = append(p.nodes, n)
	p.Values = append(p.Values, device.Value{Name: label(n), Type: t})
	switch {
	case n.Op() == nil:
		p.sources = append(p.sources, input)
		return nil
	case nn.IsConstant(n):
		p.sources = append(p.sources, constant)
		return nil
	}
	p.sources = append(p.sources, computed)

	s := device.Step{Out: v}
	in := make([]op.Type, len(operands))
	for i, c := range operands {
		s.In = append(s.In, p.values[c])
		in[i] = p.Values[p.values[c]].Type
	}
	switch o, own := n.Op().(*nn.Op); {
	case own:
		s.Name, s.Op = o.Layer(), o.Op()
	case isAddition(n.Op()) && len(in) == 2 && in[0].Equal(in[1]):
		s.Name, s.Op = "sum", op.Add{}
	default:
		return &ForeignOpError{Op: n.Op().String(), Operands: in, Result: t, Device: dev.Name()}
	}
	out, err := s.Op.Infer(in...)
	if err != nil {
		return fmt.Errorf("machine: %s: %w", s.Name, err)
	}
	if !out.Equal(t) {
		return fmt.Errorf("machine: %s: %v gives %v, but its node has %v", s.Name, s.Op, out, t)
	}
	p.Steps = append(p.Steps, s)
	return nil
}

// ForeignOpError reports an op that is not one of package op's and cannot be mapped to one.
type ForeignOpError struct {
	Op       string // Gorgonia's name
	Operands []op.Type
	Result   op.Type
	Device   string
}

func (e *ForeignOpError) Error() string {
	return fmt.Sprintf("machine: Gorgonia's op %q of %v to %v does not run on device %s: use ops made by nn.Apply, "+
		"constants, and Gorgonia's addition of equal shapes",
		e.Op, e.Operands, e.Result, e.Device)
}

// isAddition recognises the op, of an unexported type, by which Gorgonia sums up gradients where branches meet.
func isAddition(o G.Op) bool {
	b, ok := o.(G.BinaryOp)
	return ok && b.IsBinary() && o.String() == "+ false"
}

// checkInPlace verifies that no other op reads the operand of an in-place op: the graph has no edge that would order
// the two.
func (p *program) checkInPlace() error {
	readers := make([]int, len(p.Values))
	for _, s := range p.Steps {
		for _, v := range s.In {
			readers[v]++
		}
	}
	for _, s := range p.Steps {
		if _, ok := s.Op.(op.InPlace); !ok {
			continue
		}
		switch v := s.In[0]; {
		case p.sources[v] != input:
			return fmt.Errorf("machine: %s: %v overwrites %s, which is not an input of the graph", s.Name, s.Op,
				p.Values[v].Name)
		case readers[v] > 1:
			return fmt.Errorf("machine: %s: %v overwrites %s, which other ops read too: make them read its result",
				s.Name, s.Op, p.Values[v].Name)
		}
	}
	return nil
}

// typeOf is the type of a node's value.
func typeOf(n *G.Node) (op.Type, error) {
	if n.Type() == nil {
		return op.Type{}, fmt.Errorf("the node is a statement without a value")
	}
	return nn.TypeOf(n)
}

// label names a node in messages.
func label(n *G.Node) string {
	if n == nil {
		return "a nil node"
	}
	switch o := n.Op().(type) {
	case nil:
		return n.Name()
	case *nn.Op:
		return o.Layer() + " " + o.Op().Kind()
	default:
		return o.String()
	}
}
