package nn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/op"
)

// Op is an op.Op applied to the nodes of a Gorgonia graph: a gorgonia.Op, differentiable if the op.Op is. It is
// made by Apply and belongs to one node.
type Op struct {
	layer    string
	op       op.Op
	children []int64 // identify the node: Gorgonia's equality of nodes does not look at children
	in       []op.Type
	out      op.Type
	wrt      func() []bool // operands that have a gradient which may be wanted: nets that only evaluate do not ask
}

var _ G.SDOp = (*Op)(nil)

// Op is the operation.
func (o *Op) Op() op.Op { return o.op }

// Layer is the name of the layer that the operation belongs to. Its gradients have the same.
func (o *Op) Layer() string { return o.layer }

// Out is the element type and shape of the result.
func (o *Op) Out() op.Type { return o.out }

// Apply adds the node o(in…) of the named layer to the graph of the operands. It does not check that the name is new:
// a layer may have several ops. Applying the same op to the same nodes under the same name gives the node there is.
func Apply(layer string, o op.Op, in ...*G.Node) (*G.Node, error) {
	return apply(layer, o, true, in...)
}

// apply is Apply, for an op that may be differentiated or, as part of a gradient, need not.
func apply(layer string, o op.Op, differentiable bool, in ...*G.Node) (*G.Node, error) {
	if len(in) == 0 {
		return nil, fmt.Errorf("layer %s: %v without operands", layer, o)
	}
	a := &Op{layer: layer, op: o, wrt: func() []bool { return make([]bool, len(in)) }}
	for i, n := range in {
		if n == nil {
			return nil, fmt.Errorf("layer %s: operand %d of %v is nil", layer, i, o)
		}
		t, err := TypeOf(n)
		if err != nil {
			return nil, fmt.Errorf("layer %s: operand %d of %v: %w", layer, i, o, err)
		}
		a.in = append(a.in, t)
		a.children = append(a.children, n.ID())
	}
	var err error
	if a.out, err = a.infer(a.in); err != nil {
		return nil, err
	}
	if d, ok := o.(op.Differentiable); ok && differentiable {
		a.wrt = sync.OnceValue(func() []bool {
			wrt := make([]bool, len(in))
			terms, err := a.terms(d)
			for i := range wrt {
				wrt[i] = err != nil || terms[i] != nil && mayDiffer(in[i]) // SymDiff returns the error
			}
			return wrt
		})
	}
	n, err := G.ApplyOp(a, in...)
	if err != nil {
		return nil, fmt.Errorf("layer %s: %w", layer, err)
	}
	return n, nil
}

// mayDiffer reports whether a gradient with respect to n may be wanted. It is not for values computed from data
// alone, such as normalised images.
func mayDiffer(n *G.Node) bool {
	if o, ok := n.Op().(*Op); ok {
		return slices.Contains(o.wrt(), true)
	}
	return !IsConstant(n)
}

// IsConstant reports whether n is a constant of the graph, which has a value.
func IsConstant(n *G.Node) bool {
	_, ok := n.Op().(interface{ Value() G.Value }) // Gorgonia's constants have an unexported type
	return ok
}

// infer wraps the shape rule so that its errors name the layer.
func (o *Op) infer(in []op.Type) (op.Type, error) {
	t, err := o.op.Infer(in...)
	if err != nil {
		return t, fmt.Errorf("layer %s: %w", o.layer, err)
	}
	return t, nil
}

// terms are the gradient formulas for all operands.
func (o *Op) terms(d op.Differentiable) ([]*op.Term, error) {
	terms, err := d.Gradients(o.in...)
	if err == nil && len(terms) != len(o.in) {
		err = fmt.Errorf("%v has %d gradients for %d operands", o.op, len(terms), len(o.in))
	}
	if err != nil {
		return nil, fmt.Errorf("layer %s: %w", o.layer, err)
	}
	return terms, nil
}

// Arity is the number of operands.
func (o *Op) Arity() int { return len(o.in) }

// Type is the function type of the op, in Gorgonia's terms. It is a new one each time since Gorgonia recycles it.
func (o *Op) Type() hm.Type {
	ts := make([]hm.Type, 0, len(o.in)+1)
	for _, t := range o.in {
		ts = append(ts, graphType(t))
	}
	return hm.NewFnType(append(ts, graphType(o.out))...)
}

// InferShape gives the shape of the result.
func (o *Op) InferShape(ds ...G.DimSizer) (tensor.Shape, error) {
	if len(ds) != len(o.in) {
		return nil, fmt.Errorf("layer %s: %v has %d operands, given %d", o.layer, o.op, len(o.in), len(ds))
	}
	in := slices.Clone(o.in)
	for i, d := range ds {
		s, ok := d.(tensor.Shape)
		if !ok {
			return nil, fmt.Errorf("layer %s: the shape of operand %d of %v is not known", o.layer, i, o.op)
		}
		in[i].Shape = op.Shape(s)
	}
	t, err := o.infer(in)
	return tensor.Shape(t.Shape).Clone(), err
}

// Do runs the reference kernel. An op.InPlace overwrites the first value and returns it.
func (o *Op) Do(vs ...G.Value) (G.Value, error) {
	in := make([]op.Tensor, len(vs))
	types := make([]op.Type, len(vs))
	for i, v := range vs {
		t, err := hostTensor(v)
		if err != nil {
			return nil, fmt.Errorf("layer %s: operand %d of %v: %w", o.layer, i, o.op, err)
		}
		in[i], types[i] = t, t.Type()
	}
	t, err := o.infer(types)
	if err != nil {
		return nil, err
	}
	inPlace := false
	var out op.Tensor
	if _, inPlace = o.op.(op.InPlace); inPlace {
		out = in[0]
	} else {
		out = op.New(t)
	}
	if err := o.op.Run(out, in...); err != nil {
		return nil, fmt.Errorf("layer %s: %w", o.layer, err)
	}
	if inPlace {
		return vs[0], nil
	}
	return graphValue(out)
}

// ReturnsPtr says that results may be overwritten by their users.
func (o *Op) ReturnsPtr() bool { return true }

// CallsExtern says that nothing outside Go is called.
func (o *Op) CallsExtern() bool { return false }

// OverwritesInput is −1. An op.InPlace does overwrite its first operand, but Gorgonia's register
// allocation may not hand that storage on: it is state.
func (o *Op) OverwritesInput() int { return -1 }

// WriteHash writes all that identifies the node: layer, op with attributes, operands.
func (o *Op) WriteHash(h hash.Hash) {
	fmt.Fprintf(h, "nn\x00%s\x00%v\x00", o.layer, o.op)
	binary.Write(h, binary.LittleEndian, o.children)
}

// Hashcode is the hash of WriteHash.
func (o *Op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// String is the layer with the op and its attributes.
func (o *Op) String() string { return o.layer + ":" + o.op.String() }

// DiffWRT reports which operands have a gradient.
func (o *Op) DiffWRT(n int) []bool {
	wrt := make([]bool, n)
	copy(wrt, o.wrt())
	return wrt
}

// SymDiff adds the nodes of the gradients with respect to the operands in, given the result and the gradient with
// respect to it. They are nil where DiffWRT is false.
func (o *Op) SymDiff(in G.Nodes, result, grad *G.Node) (G.Nodes, error) {
	d, ok := o.op.(op.Differentiable)
	if !ok {
		return nil, fmt.Errorf("layer %s: %v is not differentiable", o.layer, o.op)
	}
	if len(in) != len(o.in) {
		return nil, fmt.Errorf("layer %s: %v has %d operands, given %d", o.layer, o.op, len(o.in), len(in))
	}
	terms, err := o.terms(d)
	if err != nil {
		return nil, err
	}
	e := evaluator{layer: o.layer, in: in, result: result, grad: grad, done: map[*op.Term]*G.Node{}}
	grads := make(G.Nodes, len(in))
	for i, t := range terms {
		if !o.wrt()[i] {
			continue
		}
		if grads[i], err = e.node(t); err != nil {
			return nil, fmt.Errorf("gradient of operand %d of %v: %w", i, o.op, err)
		}
	}
	return grads, nil
}

// evaluator turns gradient formulas into nodes, shared terms once.
type evaluator struct {
	layer        string
	in           G.Nodes
	result, grad *G.Node
	done         map[*op.Term]*G.Node
}

func (e *evaluator) node(t *op.Term) (*G.Node, error) {
	if t.Op == nil {
		switch {
		case t.Leaf == op.Result:
			return e.result, nil
		case t.Leaf == op.ResultGrad:
			return e.grad, nil
		case t.Leaf >= 0 && int(t.Leaf) < len(e.in):
			return e.in[t.Leaf], nil
		}
		return nil, fmt.Errorf("layer %s: a gradient formula refers to operand %d of %d", e.layer, t.Leaf, len(e.in))
	}
	if n := e.done[t]; n != nil {
		return n, nil
	}
	args := make([]*G.Node, len(t.Args))
	for i, a := range t.Args {
		var err error
		if args[i], err = e.node(a); err != nil {
			return nil, err
		}
	}
	n, err := apply(e.layer, t.Op, false, args...)
	e.done[t] = n
	return n, err
}

// gradLock serialises Grad: Gorgonia shares the node of the constant 1 between graphs.
var gradLock sync.Mutex

// Grad is gorgonia.Grad for several goroutines at once, each with a graph of its own: it adds the gradients of the
// scalar cost with respect to the input nodes wrt. Call it once a graph, for all parameters together.
func Grad(cost *G.Node, wrt ...*G.Node) (grads G.Nodes, err error) {
	gradLock.Lock()
	defer gradLock.Unlock()
	grads, err = G.Grad(cost, wrt...)
	if err == nil && len(grads) != len(wrt) {
		err = errors.New("the cost is not a float32 or float64 scalar")
	}
	if err != nil {
		return nil, fmt.Errorf("differentiate: %w", err)
	}
	return grads, nil
}
