package network

import (
	"slices"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Training that makes values again has the bits of training that keeps them, in less memory, on each device and with what makes graphs differ.
func TestLowMemory(t *testing.T) {
	for _, c := range []struct {
		name, arch string
		cfg        nn.Config
		dev        device.Device
	}{
		{"cpu", "resnet50", nn.Config{Classes: 2, Channels: 3, Size: 40, Dropout: .1, DropPath: .1, Seed: 3}, cpuDevice(t, 2)},
		{"cpu, frozen", "resnet18", nn.Config{Classes: 2, Channels: 3, Size: 64, BlurPool: true, Freeze: []string{"conv1*", "bn1*", "layer1*"}}, cpuDevice(t, 3)},
		{"cpu, small", "resnet20", nn.Config{Classes: 2, Channels: 3, Size: 32}, cpuDevice(t, 1)},
		{"reference", "resnet20", nn.Config{Classes: 2, Channels: 3, Size: 16}, reference(op.Float32)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var params, grads [2][]float64
			var bytes [2]int
			for i := range 2 {
				c.cfg.Mean, c.cfg.Std = []float64{.5, .5, .5}, []float64{.25, .25, .25}
				n, err := New(c.dev, c.arch, c.cfg, 1)
				if err != nil {
					t.Fatal(err)
				}
				defer n.Close()
				n.LowMemory = i == 1
				o := step1(vector(t, n))
				o.First = true
				for k := range 2 {
					p, err := n.Start(noise(4, c.cfg.Size, uint64(k)), o)
					if err != nil {
						t.Fatal(err)
					}
					if _, _, err := p.Wait(); err != nil {
						t.Fatal(err)
					}
				}
				params[i], grads[i] = numbers(t, n.Params), numbers(t, n.Grads)
				s, err := n.Plan(4)
				if err != nil {
					t.Fatal(err)
				}
				bytes[i] = s.Arena
			}
			if !slices.Equal(params[0], params[1]) || !slices.Equal(grads[0], grads[1]) {
				t.Error("other bits with LowMemory")
			}
			if float64(bytes[1]) > .95*float64(bytes[0]) {
				t.Errorf("%d bytes with LowMemory, %d without", bytes[1], bytes[0])
			}
			t.Logf("%d bytes with LowMemory, %d without", bytes[1], bytes[0])
		})
	}
}
