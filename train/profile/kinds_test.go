package profile

import (
	"testing"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
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

// TestKinds checks that time outside groups is recorded as other, and that forgotten steps do not count.
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
	if want := (tally{calls: 2, flops: 11, bytes: 22, took: 2 * time.Second}); len(a.steps) != 2 || a.steps[1] != want {
		t.Errorf("%+v", a)
	}
	if other.name != "other" || other.steps[0].took != 3*time.Second {
		t.Errorf("%+v", other)
	}
}

// TestShortStep checks that a short last step changes neither rates nor counts: like the time, they are medians over
// the steps.
func TestShortStep(t *testing.T) {
	var p Kinds
	for _, part := range []int64{4, 4, 4, 1} {
		p.Add("products", time.Duration(part)*time.Second, part*1e9, 0)
		p.Add("moves", time.Duration(part)*time.Second, 0, part*1e9)
		if part > 1 {
			p.Add("moves", 0, 0, 0)
		}
		p.Step(time.Duration(2*part)*time.Second, 0)
	}
	list, all := p.Sum(0, 0)
	for _, k := range append(list, all) {
		switch k.Name {
		case Rest:
			continue
		case "moves":
			if k.GB != 4 || k.GBS != 1 || k.Calls != 2 || k.Seconds != 4 {
				t.Errorf("%+v", k)
			}
		default:
			if k.GFLOP != 4 || k.GFLOPS != 1 || k.Calls != 1 || k.Seconds != 4 {
				t.Errorf("%+v", k)
			}
		}
	}
}
