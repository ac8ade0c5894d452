package machine_test

import (
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/machine/machinetest"
	"onlinerna/nn/op"
)

// TestGoldenReference compares the reference device in float64 with PyTorch's float64.
func TestGoldenReference(t *testing.T) {
	for _, test := range []struct {
		net   string
		steps int // the reference is slow
		long  bool
	}{
		{"resnet20", 1, false},
		{"resnet18", -1, true},
	} {
		t.Run(test.net, func(t *testing.T) {
			if test.long && testing.Short() && !machinetest.Full() {
				t.Skip("short")
			}
			t.Parallel()
			machinetest.Golden(t, device.NewReference(op.Float64), test.net, machinetest.Options{Steps: test.steps})
		})
	}
}

// TestGoldenCPU compares the default device, in float32, with groups and without. Layers of 16 and more channels run by
// Winograd's algorithm.
func TestGoldenCPU(t *testing.T) {
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, test := range []struct {
		net string
		o   machinetest.Options
	}{
		{"resnet20", machinetest.Options{}},
		{"resnet20", machinetest.Options{Steps: 1, Ungrouped: true}},
		{"resnet18", machinetest.Options{Steps: 3}},
	} {
		name := test.net
		if test.o.Ungrouped {
			name += "/ungrouped"
		}
		t.Run(name, func(t *testing.T) { machinetest.Golden(t, dev, test.net, test.o) })
	}
}

// TestGoldenDirect is TestGoldenCPU without Winograd's algorithm.
func TestGoldenDirect(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	machinetest.Golden(t, dev, "resnet20", machinetest.Options{})
}

// TestGoldenBFloat16 is TestGoldenCPU with activations and factors of bfloat16.
func TestGoldenBFloat16(t *testing.T) {
	dev, err := cpu.New(cpu.Options{BFloat16: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	machinetest.Golden(t, dev, "resnet20", machinetest.Options{Steps: 1, Unit: 0x1p-8})
	machinetest.Golden(t, dev, "resnet20", machinetest.Options{Steps: 1, Ungrouped: true, Unit: 0x1p-8})
}
