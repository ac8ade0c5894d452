// Package cpu is the device that every machine has: float32 kernels in Go, without cgo.
//
// The work of an op is cut into blocks by its shapes, and by the number of workers where results do not depend on it; a
// fixed pool of workers takes the blocks one after the other. What is summed across blocks is summed in the order of the
// blocks. Results are therefore the same bit for bit for any number of workers.
//
// Activations lie channels-last (NHWC) and convolution weights as HWIO: then the pixels under a row of a
// convolution's window are contiguous, and so are the channels that most other ops run over.
//
// Where Options.BFloat16 says so, activations that kernels make are stored as bfloat16. Kernels compute in float32 all the same, of
// pieces that stay in the caches: package work widens and rounds them.
//
// Which kernel runs what is a list of patterns (packages lower, and those of the ops below this one): product has
// convolutions and linear layers, with AVX-512, AVX2 or NEON in assembly; norm, rows, pool, softmax, mapping, elementwise and move have
// what their names say. Below them nhwc goes over activations as they lie, work has blocks and storage, and kern and vec the
// generated kernels. Convolutions of 3×3 taps run by Winograd's algorithm where it is faster: see [Options]. The
// environment variable RNA_CPU, one of avx512bf16, avx512, avx2, neon and go, lowers the level.
package cpu
