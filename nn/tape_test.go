package nn

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/op"
)

// bind makes t the value of the input node n.
func bind(t testing.TB, n *G.Node, x op.Tensor) {
	t.Helper()
	v := tensor.New(tensor.WithShape(n.Shape()...), tensor.WithBacking(x.Data))
	if err := G.Let(n, v); err != nil {
		t.Fatal(err)
	}
}

// runTape runs a graph on Gorgonia's own machine.
func runTape(t testing.TB, g *G.ExprGraph) {
	t.Helper()
	m := G.NewTapeMachine(g)
	defer m.Close()
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
}

// values returns the elements of a float64 node.
func values(t testing.TB, n *G.Node) []float64 {
	t.Helper()
	x, err := hostTensor(n.Value())
	if err != nil {
		t.Fatal(err)
	}
	return x.Data.([]float64)
}

// bindModel binds initial parameters and statistics, all labels and, for pixels, pseudo-random ones.
func bindModel(t testing.TB, m *Model, seed uint64) {
	t.Helper()
	dt := m.Config.DType
	for i := range m.Params {
		p := &m.Params[i]
		w := op.New(op.T(dt, p.Shape...))
		if err := p.Fill(w, seed); err != nil {
			t.Fatal(err)
		}
		bind(t, p.Node, w)
	}
	for i := range m.Stats {
		s := &m.Stats[i]
		w := op.New(op.T(dt, 2, s.Channels))
		if err := s.Fill(w); err != nil {
			t.Fatal(err)
		}
		bind(t, s.Node, w)
	}
	if m.BatchNormMomentum != nil {
		w := op.New(op.T(dt, 1))
		if err := (Init{Scale: 0.1}).fill(w.Data, 0, ""); err != nil {
			t.Fatal(err)
		}
		bind(t, m.BatchNormMomentum, w)
	}
	if m.RandomCounter != nil {
		bind(t, m.RandomCounter, op.Tensor{Data: []int32{int32(seed), 0}})
	}
	labels := make([]int32, m.Config.Batch)
	for i := range labels {
		labels[i] = int32(i % m.Config.Classes)
	}
	bind(t, m.Labels, op.Tensor{Data: labels})
	if m.Images == nil {
		x := op.New(op.T(dt, m.Input.Shape()...))
		if err := (Init{Distribution: Normal, Scale: 1}).fill(x.Data, seed, "input"); err != nil {
			t.Fatal(err)
		}
		bind(t, m.Input, x)
		return
	}
	pixels := make([]uint8, m.Images.Shape().TotalSize())
	for i := range pixels {
		pixels[i] = uint8(mix(seed + uint64(i)))
	}
	bind(t, m.Images, op.Tensor{Data: pixels})
	bind(t, m.Crops, op.Tensor{Data: make([]int32, 3*m.Config.Batch)})
}
