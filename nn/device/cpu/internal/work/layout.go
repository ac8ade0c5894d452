package work

import (
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// The layouts of this device.
const (
	RowMajor device.Layout = ""
	NHWC     device.Layout = "NHWC" // rank 4 activations
	HWIO     device.Layout = "HWIO" // convolution weights
)

// Layout is that of a value from outside, as device.Device says.
func Layout(t op.Type, role device.Role) device.Layout {
	switch {
	case t.DType != op.Float32 || len(t.Shape) != 4:
		return RowMajor
	case role == device.Weight:
		return HWIO
	}
	return NHWC
}
