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
		o    machinetest.Options
	}{
		{"grouped", machinetest.Options{Steps: 1}},
		{"ungrouped", machinetest.Options{Steps: -1, Ungrouped: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dev, err := openNet(NetOptions{})()
			check(t, err)
			defer func() { check(t, dev.Close()) }()
			machinetest.Golden(t, dev, "resnet20", test.o)
		})
	}
}
