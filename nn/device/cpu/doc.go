// Package cpu is the device that every machine has: float32 kernels in Go, without cgo.
//
// An op's work is cut into blocks by its shapes, and by the number of workers if results do not depend on the cut. A
// fixed pool of workers takes the blocks one after the other. Sums across blocks are taken in the order of the blocks.
// Results are therefore the same bit for bit for any number of workers.
//
// Activations lie channels-last (NHWC) and convolution weights as HWIO: then the pixels under a row of a convolution's
// window are contiguous, and so are the channels that most other ops run over.
//
// With Options.BFloat16, activations of rank 4 that kernels make are stored as bfloat16, and on AMX rows of tokens too
// (see Device.Narrow). Kernels still compute in float32: some widen and round as they read and write, for others
// package work does so in pieces that stay in the caches.
//
// A list of patterns (package lower, and the packages of ops below this one) assigns steps to kernels: product has
// convolutions and linear layers, with AMX, AVX-512, AVX2 or NEON in assembly; norm, rows, pool, softmax, mapping,
// elementwise and move have the ops of their names. Below them nhwc iterates over activations in their layout, work has
// blocks and storage, and kern and vec have the generated kernels. Convolutions of 3×3 taps run by Winograd's algorithm
// if it is faster, and products of float32 in parts on AMX: see [Options]. In training, results of batch normalisation
// that an activation's gradient reads are computed again with that gradient, and not stored. In evaluation package
// portion has layers of large images run for a few samples at a time, so that their results stay in a cache. The
// environment variable RNA_CPU, one of amx, avx512bf16, avx512, avx2, neon and go, lowers the level.
package cpu
