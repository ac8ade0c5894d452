package machine_test

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// A value that consists of bound views, side by side, is computed in their place. With a gap between them, or in
// another order, it is copied to them.
func TestWholeOfBoundViews(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, then int // elements before the views in memory
		copies      bool
	}{{"side by side", 1, 4, false}, {"a gap", 1, 5, true}, {"the other order", 4, 1, true}} {
		f := newFixture(t)
		whole := apply(t, "whole", mix{2, 6}, f.a)
		one, two := apply(t, "one", part{0, 3}, whole), apply(t, "two", part{3, 3}, whole)
		after := apply(t, "after", mix{3, 2}, whole)
		memory := f.region(9)
		all, err := device.HostSlice[float64](memory)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i] = 7
		}
		m, err := machine.New(f.g, machine.Config{Device: f.dev, Keep: G.Nodes{one, two, after}, Ungrouped: true,
			Bind: map[*G.Node]machine.Binding{one: {Region: memory.Part(8*c.first, 24)},
				two: {Region: memory.Part(8*c.then, 24)}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.RunAll(); err != nil {
			t.Fatal(err)
		}
		x := op.Tensor{Shape: op.Shape{4}, Data: f.a.Value().Data()}
		want, last := op.New(op.T(op.Float64, 6)), op.New(op.T(op.Float64, 2))
		got := op.New(op.T(op.Float64, 2))
		if err := (mix{2, 6}).Run(want, x); err != nil {
			t.Fatal(err)
		}
		if err := (mix{3, 2}).Run(last, want); err != nil {
			t.Fatal(err)
		}
		if err := m.Read(got, after); err != nil || !slices.Equal(got.Data.([]float64), last.Data.([]float64)) {
			t.Errorf("%s: %v, %v; want %v", c.name, got.Data, err, last.Data)
		}
		wanted := slices.Repeat([]float64{7}, 9)
		copy(wanted[c.first:], want.Data.([]float64)[:3])
		copy(wanted[c.then:], want.Data.([]float64)[3:])
		if !slices.Equal(all, wanted) {
			t.Errorf("%s: memory %v, want %v", c.name, all, wanted)
		}
		if arena := m.Stats().Arena; (arena > 256) != c.copies { // only the last result, or the whole, too
			t.Errorf("%s: an arena of %d bytes", c.name, arena)
		}
	}
}
