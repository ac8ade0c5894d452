// Package sim controls the stand-in for NVIDIA's libraries, with which the GPU code is tested on machines without a
// GPU: `make sim` builds libcuda, libcublas, libcudnn and libnvrtc from src with g++ in bin/sim, and RNA_CUDA_LIBS=bin/sim
// has them loaded.
//
// Kernels are the very .cu sources, compiled by g++ when the program asks its NVRTC. The stand-in is strict where
// the real thing is lenient: streams run only when they are waited for, memory is NaN until it is written, lies
// between pages that cannot be touched, is closed to the host and never used again once freed. What it does not
// find is a kernel that reads the host's memory.
//
// Environment variables, read at the first call:
//
//	RNA_SIM_MEMORY   bytes of a device's memory, 2³⁰ by default
//	RNA_SIM_DEVICES  number of devices, 1
//	RNA_SIM_ARCH     compute capability, 90 for 9.0
//	RNA_SIM_DRIVER   CUDA version of the driver, 12090
//	RNA_SIM_CUDNN    version of cuDNN whose codes are given, 8 or 9; 7 is one that is too old
//	RNA_SIM_CLOCK    1: events tell the time that work takes by definition, which is the same in each run, not the clock's
//	RNA_SIM_FAULT    a plan of faults, see [Fault]
//	RNA_SIM_CXX      the compiler of kernels, g++
package sim
