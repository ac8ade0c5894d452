// Package cpu is the device that every machine has: float32 kernels in Go, without cgo.
//
// The work of an op is cut into blocks by its shapes alone, and a fixed pool of workers takes the blocks one
// after the other. What is summed across blocks is summed in the order of the blocks. Results are
// therefore the same bit for bit for any number of workers.
//
// Activations lie channels-last (NHWC) and convolution weights as HWIO: then the pixels under a row of a
// convolution's window are contiguous, and so are the channels that most other ops run over. Convolutions and
// linear layers are matrix products of tiles that each worker gathers into its scratch.
package cpu
