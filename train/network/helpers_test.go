package network

import (
	"testing"

	"onlinerna/data"
	"onlinerna/data/random"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
)

func cpuDevice(t testing.TB, threads int) device.Device {
	t.Helper()
	dev, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func reference(d op.DType) device.Device { return device.NewReference(d) }

// numbers reads a vector.
func numbers(t testing.TB, v device.Vector) []float64 {
	t.Helper()
	x := make([]float64, v.Len())
	if err := v.ReadAt64(x, 0); err != nil {
		t.Fatal(err)
	}
	return x
}

// vector allocates a zero vector like a network's weights.
func vector(t testing.TB, n *Network) device.Vector {
	t.Helper()
	v, err := n.NewParams()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Free)
	return v
}

// noise is a batch of n colour images of size×size and two classes.
func noise(n, size int, seed uint64) *data.Batch {
	r := random.New(seed)
	b := &data.Batch{N: n, Height: size, Width: size, Channels: 3, Images: make([]uint8, n*size*size*3),
		Crops: make([]int32, 3*n), Labels: make([]int32, n)}
	for i := range b.Images {
		b.Images[i] = uint8(r.Uint64())
	}
	for i := range b.Labels {
		b.Labels[i] = int32(r.Uint64() % 2)
	}
	return b
}
