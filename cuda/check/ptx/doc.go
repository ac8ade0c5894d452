// Package ptx runs PTX, what NVIDIA's compiler makes of a kernel, on the CPU: the instructions that NVRTC emits for the kernels of this
// repository, by their definition in NVIDIA's PTX ISA, one thread after the other. It depends on no library and on no stand-in: what it
// computes is held against kernels that g++ compiled.
//
// Each operation rounds as defined; results of f32 arithmetic that are NaN have the bits 7fffffff. Approximations, such as ex2.approx, give the
// nearest value, or one some units in the last place beside it, see [Options]. Threads switch at barriers, shuffles and votes alone, so
// fences have nothing to do, and atomic operations are in the order of the threads.
//
// An access outside the memory, or at an address that is not a multiple of its size, a division of integers by zero, a barrier that not all threads
// reach, a shuffle whose lanes do not come, a race in shared memory, and a loop without end are each a [*Fault]. An instruction that is not known
// is an error of [Parse].
package ptx
