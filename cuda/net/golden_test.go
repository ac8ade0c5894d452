//go:build gpu && cgo

package net

import (
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/number"
	"onlinerna/nn/machine/machinetest"
)

// TestNetGolden compares ResNet-20 on the device with PyTorch's.
func TestNetGolden(t *testing.T) {
	gputest.NeedDNN(t)
	for _, test := range []struct {
		name string
		p    number.Precision
		o    machinetest.Options
	}{
		{"grouped", number.Float32, machinetest.Options{Steps: 1}},
		{"ungrouped", number.Float32, machinetest.Options{Steps: -1, Ungrouped: true}},
		{"tf32", number.TF32, machinetest.Options{Steps: -1, Unit: 0x1p-11}},
		{"bfloat16", number.BFloat16, machinetest.Options{Steps: 1, Unit: 0x1p-8}},
		{"bfloat16, ungrouped", number.BFloat16, machinetest.Options{Steps: -1, Ungrouped: true, Unit: 0x1p-8}},
		{"float16", number.Float16, machinetest.Options{Steps: 1, Unit: 0x1p-11}},
	} {
		t.Run(test.name, func(t *testing.T) {
			gputest.Ran(t, gputest.Golden, test.p)
			dev, err := openNet(Options{Precision: test.p})()
			check(t, err)
			defer func() { check(t, dev.Close()) }()
			machinetest.Golden(t, dev, "resnet20", test.o)
		})
	}
}
