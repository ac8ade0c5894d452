package profile

import (
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"testing"
	"time"
)

func TestCost(t *testing.T) {
	value := func(l device.Layout, shape ...int) device.Value {
		return device.Value{Type: op.T(op.Float32, shape...), Layout: l}
	}
	group := func(o op.Op, in, out device.Value) *device.Group {
		return &device.Group{
			Values: []device.Value{in, out}, Inputs: []int{0}, Outputs: []int{1},
			Steps: []device.Step{{Op: o, In: []int{0}, Out: 1}},
		}
	}
	for _, c := range []struct {
		g     *device.Group
		bytes int64
	}{
		{group(op.Flatten{}, value("", 2, 3, 4, 4), value("", 2, 48)), 0},
		{group(op.Flatten{}, value("nhwc", 2, 3, 4, 4), value("", 2, 48)), 8 * 96},
		{group(op.ReLU{}, value("", 10), value("", 10)), 80},
		{group(op.Shortcut{Stride: 2, Channels: 3}, value("", 1, 3, 8, 8), value("", 1, 3, 4, 4)), 2 * 4 * 48},
	} {
		if got := costOf(c.g); got.bytes != c.bytes || got.name != c.g.Steps[0].Op.Kind() {
			t.Errorf("%v: %+v, want %d bytes", c.g, got, c.bytes)
		}
	}
}

// TestKinds checks that what no group took is entered as other, and that what is forgotten does not count.
func TestKinds(t *testing.T) {
	var p Kinds
	p.Add("a", time.Second, 10, 20)
	p.Step(3*time.Second, 0)
	p.Forget()
	for range 2 {
		p.Add("a", time.Second, 10, 20)
		p.Add("a", time.Second, 1, 2)
		p.Step(5*time.Second, time.Second)
	}
	if len(p.Waits) != 2 || p.Waits[1] != 1 {
		t.Errorf("waits %v", p.Waits)
	}
	if len(p.Steps) != 2 || len(p.kinds) != 2 {
		t.Fatalf("%d steps, %d kinds", len(p.Steps), len(p.kinds))
	}
	a, other := p.kinds[0], p.kinds[1]
	if a.last.calls != 2 || a.last.flops != 11 || a.last.bytes != 22 || len(a.seconds) != 2 || a.seconds[1] != 2 {
		t.Errorf("%+v", a)
	}
	if other.name != "other" || other.seconds[0] != 3 {
		t.Errorf("%+v", other)
	}
}
