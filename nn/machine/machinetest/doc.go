// Package machinetest checks devices by whole networks.
//
// The networks have weights and inputs that follow closed formulas, and testdata holds what PyTorch computes
// for them in float64, together with how far PyTorch's own float32 is from that: a device of type float64
// has to agree within 1e-8, one of float32 within five times PyTorch's deviation.
//
// Golden takes a few SGD steps on each network. With ONLINERNA_GOLDEN=full in the environment it takes all
// that are recorded, which takes minutes on the reference device.
package machinetest
