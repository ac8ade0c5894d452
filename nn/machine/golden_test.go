package machine_test

import (
	"testing"

	"onlinerna/nn/device"
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
