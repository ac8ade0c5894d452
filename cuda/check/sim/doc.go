// Package sim controls the stand-in for NVIDIA's libraries, with which the GPU code is tested on machines without a
// GPU: `make sim` builds libcuda, libcublas, libcudnn, libnvrtc and libnccl from src with g++ in bin/sim, and RNA_CUDA_LIBS=bin/sim
// has them loaded.
//
// Kernels are the very .cu sources, compiled by g++ when the program asks its NVRTC. The stand-in is strict where
// the real thing is lenient: streams run only when they are waited for, memory is NaN until it is written, lies
// between pages that cannot be touched, is closed to the host and never used again once freed. Copies of host memory that is not pinned
// run late. Kernels take memory when they are loaded, at their first launch at the latest, and libraries when they start and run. A GPU that
// is lost stays lost for its process; functions of libraries that may wait for ever then end it. Blocks of a grid run in another order at
// each launch.
//
// NCCL works between processes of a machine, each with a device of its own: in RNA_SIM_DEVICES there are to be as many. Ranks that don't
// do the same wait for ever; that another's process has ended is an error that comes up beside.
//
// `make check-sim` builds a stand-in whose kernels have each access checked: memory of the host, places that are not multiples of the
// size, and races, between threads of a block and between blocks. It sees
// those of the order that it runs threads in, and takes atomic operations for ordered with each other. It also counts the bytes that kernels read
// and write, as every stand-in does those of copies, fills, products and graphs of cuDNN's: [Moved].
//
// Environment variables, read at the first call, RNA_SIM_RECORD at each launch:
//
//	RNA_SIM_MEMORY   bytes of a device's memory, 2³⁰ by default
//	RNA_SIM_DEVICES  number of devices, 1; CUDA_VISIBLE_DEVICES lists those that are seen, as the real driver reads it
//	RNA_SIM_ARCH     compute capability, 90 for 9.0
//	RNA_SIM_DRIVER   CUDA version of the driver, 12090
//	RNA_SIM_USED     bytes that other processes hold, as 0:1000,2:500 of devices 0 and 2
//	RNA_SIM_MIG      1: devices are parts of one, with such names and UUIDs
//	RNA_SIM_CUDART   CUDA version that cuDNN is for, 12090
//	RNA_SIM_WORKSPACE  1: convolutions need much more scratch than the heuristics say
//	RNA_SIM_CUDNN    version of cuDNN whose codes are given, 8 or 9; 7 is one that is too old
//	RNA_SIM_NCCL     version of NCCL, 22703
//	RNA_SIM_CLOCK    1: events tell the time that work takes by definition, which is the same in each run, not the clock's
//	RNA_SIM_FAULT    a plan of faults, see [Fault]
//	RNA_SIM_RECORD   a folder for launches of kernels, some of each, which package launches repeats with what NVIDIA's compiler makes of them
//	RNA_SIM_CXX      the compiler of kernels, g++
//	RNA_SIM_KEPT     a folder that keeps compiled kernels, for other processes with the same sources
package sim
