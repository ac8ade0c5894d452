package network

import (
	"fmt"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/internal/simd"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

func init() {
	nn.Register(nn.Architecture{Name: "test-excited", Size: 24, Channels: 3, Classes: 7,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			layer := func(name string, x *G.Node, c nn.Conv) *G.Node { return b.BatchNorm(name+".bn", b.Conv(name, x, c), 1) }
			x = b.SiLU("silu", layer("stem", x, nn.Conv{Filters: 16, Kernel: 3, Stride: 2, Pad: 1}))
			for i := range 2 {
				n := fmt.Sprint("block", i)
				y := b.SiLU(n+".silu1", layer(n+".conv1", x, nn.Conv{Filters: 48, Kernel: 1}))
				y = b.Hardswish(n+".hardswish", layer(n+".conv2", y, nn.Conv{Filters: 48, Kernel: 3, Pad: 1, Groups: 48}))
				y = b.SqueezeExcite(n+".se", y, 4, (*nn.Builder).SiLU, (*nn.Builder).Sigmoid)
				x = b.Add(n+".add", x, b.GELU(n+".gelu", layer(n+".conv3", y, nn.Conv{Filters: 16, Kernel: 1})))
			}
			x = b.MaxPool("pool", x, 12, 12, 0)
			return b.Linear("fc", b.Flatten("flatten", x), b.Config().Classes)
		}})
}

func bfloat16Device(t testing.TB) device.Device {
	t.Helper()
	dev, err := cpu.New(cpu.Options{Threads: 3, BFloat16: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// bfloat16 activations take about half of the memory with vector kernels.
func TestBFloat16Memory(t *testing.T) {
	if simd.Default().Vectors() == simd.Go {
		return
	}
	for _, use := range []Use{Training, Evaluation} {
		var bytes [2]int
		for i, dev := range []device.Device{cpuDevice(t, 3), bfloat16Device(t)} {
			n, err := New(dev, "resnet18", nn.Config{Classes: 10, Channels: 3, Size: 96, Mean: []float64{.5},
				Std: []float64{.25}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			p, err := n.newProgram(Work{use, 32, 96, 96})
			if err == nil {
				err = n.bind(p, machine.NewArena(dev), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			bytes[i] = p.m.Stats().Arena
			p.m.Close()
		}
		if share := float64(bytes[1]) / float64(bytes[0]); share > .65 {
			t.Errorf("use %v: %.2f of the memory", use, share)
		} else {
			t.Logf("use %v: %.2f of the memory", use, share)
		}
	}
}

// Recomputing activations gives the same bits in less memory, on each device and for different kinds of graphs.
func TestLowMemory(t *testing.T) {
	for _, c := range []struct {
		name, arch string
		cfg        nn.Config
		dev        device.Device
		share      float64 // of the memory, at most
	}{
		{"cpu", "resnet50", nn.Config{Classes: 2, Channels: 3, Size: 40, Dropout: .1, DropPath: .1, Seed: 3},
			cpuDevice(t, 2), .95},
		{"cpu, frozen", "resnet18", nn.Config{Classes: 2, Channels: 3, Size: 64, BlurPool: true,
			Freeze: []string{"conv1*", "bn1*", "layer1*"}}, cpuDevice(t, 3), .95},
		{"cpu, frozen normalisation", "resnet18", nn.Config{Classes: 2, Channels: 3, Size: 64,
			Freeze: []string{"*bn*", "*downsample.1*"}}, cpuDevice(t, 2), .99},
		{"cpu, small", "resnet20", nn.Config{Classes: 2, Channels: 3, Size: 32}, cpuDevice(t, 1), .95},
		{"cpu, bfloat16", "resnet20", nn.Config{Classes: 2, Channels: 3, Size: 32}, bfloat16Device(t), .95},
		{"cpu, bfloat16, expressions", "test-excited", nn.Config{Classes: 2, Channels: 3, Size: 24}, bfloat16Device(t), .95},
		{"reference", "resnet20", nn.Config{Classes: 2, Channels: 3, Size: 16}, reference(op.Float32), .95},
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
			if float64(bytes[1]) > c.share*float64(bytes[0]) {
				t.Errorf("%d bytes with LowMemory, %d without", bytes[1], bytes[0])
			}
			t.Logf("%d bytes with LowMemory, %d without", bytes[1], bytes[0])
		})
	}
}
