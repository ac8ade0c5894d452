package machine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// Marks are called as soon as their nodes are made, before later work.
func TestMarks(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float64, G.WithName("x"), G.WithShape(1, 1))
	chain := G.Nodes{apply(t, "0", op.Add{}, x, x)}
	for _, layer := range []string{"1", "2", "3"} {
		last := chain[len(chain)-1]
		chain = append(chain, apply(t, layer, op.Add{}, last, last))
	}
	m, err := machine.New(g, machine.Config{Device: device.NewReference(op.Float64),
		Keep: G.Nodes{chain[0], chain[1], chain[3]}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Write(x, op.Tensor{Shape: op.Shape{1, 1}, Data: []float64{1}}); err != nil {
		t.Fatal(err)
	}
	read := func(n *G.Node) float64 {
		y := op.New(op.T(op.Float64, 1, 1))
		if err := m.Read(y, n); err != nil {
			t.Fatal(err)
		}
		return y.Data.([]float64)[0]
	}
	var seen []float64
	see := func() error { seen = append(seen, read(chain[0]), read(chain[1]), read(chain[3])); return nil }
	r, err := m.NewReplay(see, machine.Mark{Nodes: G.Nodes{chain[0], chain[1]}, Do: see},
		machine.Mark{Nodes: chain[:1], Do: see}, machine.Mark{Do: see})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 0, 0, 2, 0, 0, 2, 4, 0, 2, 4, 16}; !slices.Equal(seen, want) {
		t.Errorf("marks see %v, want %v", seen, want)
	}
	failed := errors.New("no")
	if r, err = m.NewReplay(see, machine.Mark{Nodes: chain[:1], Do: func() error { return failed }}); err == nil {
		err = r.Run()
	}
	if !errors.Is(err, failed) {
		t.Errorf("a mark's error: %v", err)
	}
	for _, c := range []struct {
		n    *G.Node
		want string
	}{{x, "x is not computed"}, {nil, "a nil node is not computed"}, {chain[2], "is not kept"}} {
		if _, err := m.NewReplay(nil, machine.Mark{Nodes: G.Nodes{c.n}, Do: see}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("mark behind %v: %v, want %q", c.n, err, c.want)
		}
		if _, err := m.Makes(c.n); err == nil || strings.Contains(err.Error(), "mark") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("who makes %v: %v, want %q", c.n, err, c.want)
		}
	}
}
