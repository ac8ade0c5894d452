// Package machinetest checks devices by whole networks.
//
// The networks have weights and inputs that follow closed formulas, and testdata holds PyTorch's float64 results,
// together with the deviation of PyTorch's own float32 results: a device of type float64 has to agree within 1e-8,
// one of float32 within five times PyTorch's deviation.
//
// Golden takes a few SGD steps on each network. With ONLINERNA_GOLDEN=full in the environment it takes all
// that are recorded, which takes minutes on the reference device.
package machinetest
