// Package ptx interprets PTX, the output of NVIDIA's compiler for a kernel, on the CPU: the instructions that NVRTC
// emits for this repository's kernels, as NVIDIA's PTX ISA defines them, one thread after another. It depends on no
// library and no stand-in: its results are compared with kernels that g++ compiled.
//
// Each operation rounds as defined; NaN results of f32 arithmetic have the bits 7fffffff. Approximations, such as
// ex2.approx, give the nearest value, or one some units in the last place away: see [Options]. Threads switch only at
// barriers, shuffles and votes, so fences do nothing, and atomic operations run in the order of the threads.
//
// Each of these is a [*Fault]: an access outside memory or at an address that is not a multiple of its size, an integer
// division by zero, a barrier that some threads miss, a shuffle with missing lanes, a race in shared memory, and an
// endless loop. An unknown instruction is an error of [Parse].
package ptx
