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

	Stored device.Layout = NHWC + ":bf16" // NHWC as bfloat16
)

// Layout is the storage order of a value from outside, as device.Device defines it.
func Layout(t op.Type, role device.Role) device.Layout {
	switch {
	case t.DType != op.Float32 || len(t.Shape) != 4:
		return RowMajor
	case role == device.Weight:
		return HWIO
	}
	return NHWC
}

// Order is the layout of a value, without the storage type of its elements.
func Order(v device.Value) device.Layout {
	if v.Layout == Stored {
		return NHWC
	}
	return v.Layout
}
