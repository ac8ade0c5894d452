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

	Stored     device.Layout = NHWC + ":bf16" // NHWC as bfloat16
	StoredRows device.Layout = ":bf16"        // RowMajor as bfloat16
)

// IsStored reports whether a value is stored as bfloat16.
func IsStored(v device.Value) bool { return v.Layout == Stored || v.Layout == StoredRows }

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
	switch v.Layout {
	case Stored:
		return NHWC
	case StoredRows:
		return RowMajor
	}
	return v.Layout
}
