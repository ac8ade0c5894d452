//go:build gpu && cgo

package cuda

import (
	"testing"

	"onlinerna/nn/machine/machinetest"
)

// TestNetGolden compares ResNet-20 on the device with PyTorch's.
func TestNetGolden(t *testing.T) {
	needDNN(t)
	for _, test := range []struct {
		name string
		p    Precision
		o    machinetest.Options
	}{
		{"grouped", Float32, machinetest.Options{Steps: 1}},
		{"ungrouped", Float32, machinetest.Options{Steps: -1, Ungrouped: true}},
		{"tf32", TF32, machinetest.Options{Steps: -1, Unit: 0x1p-11}},
		{"bfloat16", BFloat16, machinetest.Options{Steps: 1, Unit: 0x1p-8}},
		{"bfloat16, ungrouped", BFloat16, machinetest.Options{Steps: -1, Ungrouped: true, Unit: 0x1p-8}},
		{"float16", Float16, machinetest.Options{Steps: 1, Unit: 0x1p-11}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ran(t, golden, test.p)
			dev, err := openNet(NetOptions{Precision: test.p})()
			check(t, err)
			defer func() { check(t, dev.Close()) }()
			machinetest.Golden(t, dev, "resnet20", test.o)
		})
	}
}
