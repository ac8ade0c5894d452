package network

import (
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
	"onlinerna/nn/op"
)

func init() {
	nn.Register(nn.Architecture{
		Name: "test-dropout", Size: 8, Channels: 3, Classes: 2,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.SiLU("silu", b.Conv("conv", x, nn.Conv{Filters: 4, Kernel: 3, Pad: 1}))
			x = b.Add("add", x, b.StochasticDepth("depth", b.Conv("branch", x, nn.Conv{Filters: 4, Kernel: 3, Pad: 1}), .5))
			return b.Linear("fc", b.Dropout("dropout", b.GlobalAvgPool("pool", x), .5), b.Config().Classes)
		},
	})
}

// Random layers draw numbers by an image's position in its epoch: they do not depend on the batches or the device.
func TestRandomLayers(t *testing.T) {
	cfg := nn.Config{Classes: 2, Channels: 3, Size: 8, Mean: []float64{.5}, Std: []float64{.25}, Seed: 3}
	var first []float64
	cpu := cpuDevice(t, 2)
	for _, dev := range []device.Device{reference(op.Float32), cpu, devicetest.Lazy(cpu)} {
		n, err := New(dev, "test-dropout", cfg, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		gradient := func(b *data.Batch, epoch, first int) []float64 {
			t.Helper()
			b.Epoch, b.First = epoch, first
			if _, _, err := n.Gradient(b, .1); err != nil {
				t.Fatal(err)
			}
			return numbers(t, n.Grads)
		}
		b := noise(8, 8, 1)
		whole := gradient(b, 1, 40)
		if !slices.Equal(whole, gradient(b, 1, 40)) {
			t.Error("the same batch at the same place has another gradient")
		}
		for _, place := range [][2]int{{2, 40}, {1, 48}} {
			if slices.Equal(whole, gradient(b, place[0], place[1])) {
				t.Errorf("at image %d of epoch %d the same numbers are drawn", place[1], place[0])
			}
		}
		half := func(i int) *data.Batch {
			c := *b
			c.N, c.Images, c.Crops, c.Labels =
				4, b.Images[i*len(b.Images)/2:][:len(b.Images)/2], b.Crops[12*i:][:12], b.Labels[4*i:][:4]
			return &c
		}
		left, right := gradient(half(0), 1, 40), gradient(half(1), 1, 44)
		for i, g := range whole {
			if mean := (left[i] + right[i]) / 2; math.Abs(g-mean) > 1e-6 {
				t.Fatalf("gradient %d is %v in a batch of 8 and %v in two of 4", i, g, mean)
			}
		}
		slices.Sort(whole) // devices differ in the order
		if first == nil {
			first = whole
		}
		for i, g := range whole {
			if math.Abs(g-first[i]) > 1e-6 {
				t.Fatalf("%s: gradient %d by size is %v, the reference's %v", dev.Name(), i, g, first[i])
			}
		}
		if _, err := n.Evaluate(b, nil); err != nil {
			t.Error(err)
		}
	}
}
