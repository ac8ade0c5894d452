package cpu_test

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/internal/simd"
	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/machine"
	"onlinerna/nn/machine/machinetest"
	"onlinerna/nn/op"
	_ "onlinerna/nn/zoo"
)

const undivided = 1 << 40

// evaluated is a net's logits, and every n-th of its results within unless n is 0, for elements of a portion.
func evaluated(t *testing.T, open func(threads int) *cpu.Device, model string, batch, size, threads, elements,
	every int) (x [][]float64, s machine.Stats) {
	d := open(threads)
	defer d.Close()
	cpu.Portions(d, elements)
	var kept G.Nodes
	n, err := machinetest.NewNet(model, nn.Config{Batch: batch, Size: size, Mode: nn.Eval, FloatInput: true},
		machine.Config{Device: d}, func(m *nn.Model) G.Nodes {
			images := 0
			for _, x := range m.Graph.AllNodes() {
				if s := x.Shape(); len(s) == 4 && s[0] == batch && x.Op() != nil {
					if images++; every > 0 && images%every == every/2 {
						kept = append(kept, x)
					}
				}
			}
			return kept
		})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	in := op.New(op.T(op.Float32, n.Model.Input.Shape()...))
	for i := range in.Data.([]float32) {
		in.Data.([]float32)[i] = float32(i*7919%1013)/506 - 1
	}
	if err := n.Machine.Write(n.Model.Input, in); err != nil {
		t.Fatal(err)
	}
	if err := n.Machine.Write(n.Model.Labels, op.New(op.T(op.Int32, batch))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Machine.Run(); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range append(G.Nodes{n.Model.Logits}, kept...) {
		y, err := n.Read(v)
		if err != nil {
			t.Fatal(err)
		}
		x = append(x, y)
	}
	return x, n.Machine.Stats()
}

// vectors opens a device.
func vectors(t *testing.T, o cpu.Options) func(threads int) *cpu.Device {
	return func(threads int) *cpu.Device {
		o.Threads, o.Level = threads, at.String()
		d, err := cpu.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// Evaluation a few samples at a time has the bits of evaluation of all at once, for any number of threads.
func TestPortions(t *testing.T) {
	if at.Vectors() == simd.Go {
		t.Skip("plain Go has no portions")
	}
	bfloat16 := vectors(t, cpu.Options{BFloat16: true})
	inTiles := func(threads int) *cpu.Device {
		d := bfloat16(threads)
		cpu.ByTiles(d)
		return d
	}
	for _, way := range []struct {
		name string
		open func(threads int) *cpu.Device
		nets []string
	}{
		{"float32", vectors(t, cpu.Options{}), []string{"efficientnet_b0", "densenet121", "resnet50", "resnet20",
			"mobilenet_v3_small", "shufflenet_v2_x0_5", "regnet_y_400mf", "squeezenet1_1"}},
		{"bfloat16", bfloat16, []string{"efficientnet_b0", "densenet121", "resnet20", "shufflenet_v2_x0_5"}},
		{"bfloat16 in tiles", inTiles, []string{"mobilenet_v3_small"}},
	} {
		for _, model := range way.nets {
			t.Run(way.name+"/"+model, func(t *testing.T) {
				const batch, size = 6, 64
				want, whole := evaluated(t, way.open, model, batch, size, 2, undivided, 40)
				for _, c := range []struct{ elements, threads int }{{1 << 12, 1}, {1 << 14, 3}, {1 << 15, 2}} {
					got, s := evaluated(t, way.open, model, batch, size, c.threads, c.elements, 40)
					if !slices.EqualFunc(got, want, slices.Equal) {
						t.Errorf("%+v: other results", c)
					}
					if s.Runs <= s.Groups || whole.Runs != whole.Groups {
						t.Errorf("%+v: %d kernels run %d times, %d run %d times without portions", c, s.Groups, s.Runs,
							whole.Groups, whole.Runs)
					}
				}
			})
		}
	}
}

// Portions take less memory: the images of a few samples in place of all.
func TestPortionsTakeLessMemory(t *testing.T) {
	if at.Vectors() == simd.Go {
		t.Skip("plain Go has no portions")
	}
	open := vectors(t, cpu.Options{})
	_, whole := evaluated(t, open, "efficientnet_b0", 12, 128, 2, undivided, 0)
	_, s := evaluated(t, open, "efficientnet_b0", 12, 128, 2, 1<<18, 0)
	if 2*s.Arena > whole.Arena {
		t.Errorf("%d bytes, %d without portions", s.Arena, whole.Arena)
	}
}
