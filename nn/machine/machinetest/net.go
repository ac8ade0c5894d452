package machinetest

import (
	"errors"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/internal/golden"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// Net is a model on a device with its flat vectors: the simplest training setup.
type Net struct {
	Model   *nn.Model
	Machine *machine.Machine

	Params, Grads, Momentum device.Vector // Grads and Momentum are nil in Eval
	Stats                   device.Vector // nil in a network without batch normalisation
}

// NewNet builds a model and a machine for it, with the weights of the closed formulas. It keeps the logits, the loss,
// the statistics' updates, the gradient of the input if there is one, and the nodes of keep, unless nil. Bind and Keep
// of c are set here.
func NewNet(arch string, mc nn.Config, c machine.Config, keep func(*nn.Model) G.Nodes) (*Net, error) {
	m, err := nn.Build(arch, mc)
	if err != nil {
		return nil, err
	}
	param := 0
	return NewModel(m, c, keep, func(e nn.Entry) op.Tensor {
		switch e.Kind {
		case nn.Parameter:
			param++
			return golden.Plain.Param(param-1, e.Name, e.Shape, op.Float64)
		case nn.RunningVar:
			return ones(e.Shape)
		}
		return op.New(op.T(op.Float64, e.Shape...))
	})
}

func ones(s op.Shape) op.Tensor {
	x := op.New(op.T(op.Float64, s...))
	for i := range x.Data.([]float64) {
		x.Data.([]float64)[i] = 1
	}
	return x
}

// NewModel is NewNet of a model with weights and statistics of its own: value is called for the entries of the state
// dict, in their order, and returns float64.
func NewModel(m *nn.Model, c machine.Config, keep func(*nn.Model) G.Nodes, value func(nn.Entry) op.Tensor) (
	_ *Net, err error) {
	n := &Net{Model: m}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	stats := 0
	for _, s := range m.Stats {
		stats += 2 * s.Channels
	}
	vectors := map[*device.Vector]int{&n.Params: m.NumParams(), &n.Stats: stats}
	if m.Config.Mode == nn.Train {
		vectors[&n.Grads], vectors[&n.Momentum] = m.NumParams(), m.NumParams()
	}
	for v, size := range vectors {
		if size == 0 {
			continue
		}
		if *v, err = c.Device.NewVector(size); err != nil {
			return nil, err
		}
	}

	c.Bind = make(map[*G.Node]machine.Binding)
	dtype := m.Config.DType
	off := 0
	for _, p := range m.Params {
		size := p.Shape.Size()
		l := c.Device.Layout(op.Type{DType: dtype, Shape: p.Shape}, device.Weight)
		c.Bind[p.Node] = machine.Binding{Region: n.Params.Region(off, size), Layout: l}
		if n.Grads != nil {
			c.Bind[p.Grad] = machine.Binding{Region: n.Grads.Region(off, size), Layout: l}
		}
		off += size
	}
	off = 0
	for _, s := range m.Stats {
		l := c.Device.Layout(op.T(dtype, 2, s.Channels), device.Weight)
		c.Bind[s.Node] = machine.Binding{Region: n.Stats.Region(off, 2*s.Channels), Layout: l}
		off += 2 * s.Channels
	}
	c.Keep = append(G.Nodes{m.Logits, m.Loss}, m.Updates...)
	if m.InputGrad != nil {
		c.Keep = append(c.Keep, m.InputGrad)
	}
	if keep != nil {
		c.Keep = append(c.Keep, keep(m)...)
	}
	if n.Machine, err = machine.New(m.Graph, c); err != nil {
		return nil, err
	}
	return n, n.fill(c, value)
}

// fill uploads the weights and statistics.
func (n *Net) fill(c machine.Config, value func(nn.Entry) op.Tensor) error {
	m := n.Model
	stats := make([][]float64, len(m.Stats)) // mean, variance
	for _, e := range m.StateDict() {
		var b machine.Binding
		var x op.Tensor
		switch e.Kind {
		case nn.Parameter:
			b, x = c.Bind[m.Params[e.Index].Node], value(e)
			x.Shape = m.Params[e.Index].Shape
		case nn.RunningMean, nn.RunningVar:
			s := &stats[e.Index]
			if *s = append(*s, value(e).Data.([]float64)...); e.Kind == nn.RunningMean {
				continue
			}
			b, x = c.Bind[m.Stats[e.Index].Node], op.Tensor{Shape: op.Shape{2, e.Shape[0]}, Data: *s}
		default:
			continue
		}
		if err := c.Device.Upload(b.Region, b.Layout, x); err != nil {
			return err
		}
	}
	return nil
}

// Read copies the node's value to the host, in row-major order.
func (n *Net) Read(x *G.Node) ([]float64, error) {
	t, err := nn.TypeOf(x)
	if err != nil {
		return nil, err
	}
	t.DType = op.Float64
	v := op.New(t)
	if err := n.Machine.Read(v, x); err != nil {
		return nil, err
	}
	return v.Data.([]float64), nil
}

// Close gives all memory back but the device's own.
func (n *Net) Close() error {
	var err error
	if n.Machine != nil {
		err = errors.Join(err, n.Machine.Close())
	}
	for _, v := range []device.Vector{n.Params, n.Grads, n.Momentum, n.Stats} {
		if v != nil {
			v.Free()
		}
	}
	return err
}
