package machine_test

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// repeater makes the first step of a program run twice.
type repeater struct{ device.Device }

func (repeater) Rewrite(p *device.Program) {
	last := len(p.Steps) - 1
	in := slices.Clone(p.Steps[last].In)
	in[0] = lower.Repeat(p, last, 0)
	p.Steps[last+1].In = in
}

// Values that a device adds to a program do not count as recomputed by LowMemory.
func TestStatsOfRewrites(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float64, G.WithName("x"), G.WithShape(1, 1))
	y := apply(t, "y", op.Add{}, x, x)
	z := apply(t, "z", op.Add{}, y, y)
	m, err := machine.New(g, machine.Config{Device: repeater{device.NewReference(op.Float64)}, Keep: G.Nodes{z}})
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Stats(); s.Steps != 3 || s.Live != 3 || s.Again != 0 {
		t.Errorf("%+v, want 3 steps, and nothing made again", s)
	}
}
