package machine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// TestTrace checks that a tracer gets every group of a run in order, and none once it is removed, and that results do
// not change.
func TestTrace(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float64, G.WithName("x"), G.WithShape(2, 2))
	y, err := nn.Apply("relu", op.ReLU{}, x)
	if err != nil {
		t.Fatal(err)
	}
	z, err := nn.Apply("add", op.Add{}, y, x)
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.New(g, machine.Config{Device: device.NewReference(op.Float64), Keep: G.Nodes{z}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Write(x, op.Tensor{Shape: op.Shape{2, 2}, Data: []float64{-1, 2, -3, 4}}); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	seen := map[*device.Group]int{}
	var last time.Time
	m.Trace(func(g *device.Group, at time.Time, took time.Duration) {
		if took < 0 {
			t.Errorf("%v took %v", g, took)
		}
		if at.Before(last) {
			t.Errorf("%v begins %v before the end of the group before", g, last.Sub(at))
		}
		last = at.Add(took)
		seen[g]++
		kinds = append(kinds, g.Steps[0].Op.Kind())
	})
	for range 2 {
		if err := m.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) != 4 || kinds[0] != "relu" || kinds[1] != "add" || kinds[2] != "relu" {
		t.Errorf("traced %v", kinds)
	}
	if len(seen) != m.Stats().Groups {
		t.Errorf("%d groups were reported, the machine has %d", len(seen), m.Stats().Groups)
	}
	m.Trace(nil)
	if err := m.Run(); err != nil || len(kinds) != 4 {
		t.Errorf("without a tracer: %v, %d reports", err, len(kinds))
	}
	out := op.New(op.T(op.Float64, 2, 2))
	if err := m.Read(out, z); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{-1, 4, -3, 8} {
		if got := out.Data.([]float64)[i]; got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}

// clocked is a device whose clock says that mark i is at i² seconds.
type clocked struct {
	device.Device
	marks []int
	fails int // at this mark, counted from 1
}

var errClock = errors.New("the clock stands")

func (c *clocked) Mark(i int) error {
	c.marks = append(c.marks, i)
	if len(c.marks) == c.fails {
		return errClock
	}
	return nil
}

func (c *clocked) Between(i, j int) (time.Duration, error) {
	if c.fails < 0 {
		return 0, errClock
	}
	return time.Duration(j*j-i*i) * time.Second, nil
}

func (c *clocked) Sync() error { return errors.New("a device with a clock need not be waited for") }

// The times of a device with a clock are its own.
func TestTraceByClock(t *testing.T) {
	for fails := -1; fails <= 3; fails++ {
		g := G.NewGraph()
		x := G.NewMatrix(g, tensor.Float64, G.WithName("x"), G.WithShape(2, 2))
		y, err := nn.Apply("relu", op.ReLU{}, x)
		if err != nil {
			t.Fatal(err)
		}
		z, err := nn.Apply("add", op.Add{}, y, x)
		if err != nil {
			t.Fatal(err)
		}
		dev := &clocked{Device: device.NewReference(op.Float64), fails: fails}
		m, err := machine.New(g, machine.Config{Device: dev, Keep: G.Nodes{z}})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write(x, op.Tensor{Shape: op.Shape{2, 2}, Data: []float64{-1, 2, -3, 4}}); err != nil {
			t.Fatal(err)
		}
		var times []time.Duration
		var starts []time.Time
		m.Trace(func(_ *device.Group, at time.Time, took time.Duration) {
			times, starts = append(times, took), append(starts, at)
		})
		err = m.Run()
		if fails != 0 {
			if !errors.Is(err, errClock) {
				t.Errorf("fails %d: %v", fails, err)
			}
			continue
		}
		if err != nil || !slices.Equal(times, []time.Duration{time.Second, 3 * time.Second}) ||
			!slices.Equal(dev.marks, []int{0, 1, 2}) {
			t.Errorf("times %v of marks %v, %v", times, dev.marks, err)
		} else if d := starts[1].Sub(starts[0]); d != time.Second {
			t.Errorf("the second group begins %v after the first, which took a second", d)
		}
	}
}
