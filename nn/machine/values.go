package machine

import (
	"errors"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// RunAll implements gorgonia.VM: it writes the Values of all unbound inputs, runs, waits, and makes the kept results
// the Values of their nodes. An unbound input that an in-place op overwrites has the new content in its
// Value. Values of nodes made by gorgonia.Read are not set: a node's Value is there without one.
func (m *Machine) RunAll() error {
	for v, n := range m.prog.nodes {
		if m.prog.sources[v] != input || m.plan.buffers[m.plan.places[v].buffer].owner == caller {
			continue
		}
		if n.Value() == nil {
			return fmt.Errorf("machine: input %s, %v, has no value: use gorgonia.Let or Write and Run", n.Name(),
				m.prog.Values[v].Type)
		}
		t, err := hostTensor(n.Value())
		if err != nil {
			return fmt.Errorf("machine: input %s: %w", n.Name(), err)
		}
		if err := m.Write(n, t); err != nil {
			return err
		}
	}
	if err := m.Run(); err != nil {
		return err
	}
	if err := m.dev.Sync(); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	for _, n := range m.keep {
		if n.Op() == nil || m.prog.sources[m.prog.values[n]] == constant {
			continue
		}
		if err := m.publish(n); err != nil {
			return err
		}
	}
	return m.publishState()
}

// publish makes the result of n its Value.
func (m *Machine) publish(n *G.Node) error {
	x := &m.prog.Values[m.prog.values[n]]
	t := op.New(x.Type)
	if err := m.Read(t, n); err != nil {
		return err
	}
	var value any
	switch d := t.Data.(type) {
	case []float32:
		value = d[0]
	case []float64:
		value = d[0]
	}
	if len(t.Shape) > 0 || value == nil {
		value = tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(t.Data))
	}
	if err := G.UnsafeLet(n, value); err != nil {
		return fmt.Errorf("machine: value of %s: %w", x.Name, err)
	}
	return nil
}

// publishState reads the inputs that in-place ops overwrote back into their Values.
func (m *Machine) publishState() error {
	for _, s := range m.prog.Steps {
		if _, ok := s.Op.(op.InPlace); !ok || m.plan.buffers[m.plan.places[s.In[0]].buffer].owner == caller {
			continue
		}
		n := m.prog.nodes[s.In[0]]
		t, err := hostTensor(n.Value())
		if err != nil {
			return fmt.Errorf("machine: input %s: %w", n.Name(), err)
		}
		if err := m.Read(t, n); err != nil {
			return err
		}
	}
	return nil
}

// hostTensor views a Gorgonia value as a row-major tensor.
func hostTensor(v G.Value) (op.Tensor, error) {
	switch s := v.(type) {
	case *G.F32:
		return op.Tensor{Shape: op.Shape{}, Data: []float32{float32(*s)}}, nil
	case *G.F64:
		return op.Tensor{Shape: op.Shape{}, Data: []float64{float64(*s)}}, nil
	}
	if s, ok := nn.Dense(v); ok {
		if s.RequiresIterator() || s.DataOrder().IsColMajor() && s.Size() > 1 || s.IsMasked() {
			return op.Tensor{}, errors.New("the tensor must be contiguous, row-major and without a mask")
		}
		t := op.Tensor{Shape: slices.Clone(op.Shape(s.Shape())), Data: s.Data()}
		switch x := t.Data.(type) { // of a tensor without dimensions
		case float32:
			t.Data = []float32{x}
		case float64:
			t.Data = []float64{x}
		}
		if t.DType() == 0 {
			return t, fmt.Errorf("elements of type %v: must be float32, float64, int32 or uint8", s.Dtype())
		}
		return t, nil
	}
	return op.Tensor{}, fmt.Errorf("a value of type %T: must be a *tensor.Dense, *gorgonia.F32 or *gorgonia.F64", v)
}
