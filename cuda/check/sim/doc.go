// Package sim controls the stand-in for NVIDIA's libraries, which tests the GPU code on machines without a GPU: `make
// sim` builds libcuda, libcublas, libcudnn, libnvrtc, libnccl and libnvidia-ml from src with g++ in bin/sim, and
// RNA_CUDA_LIBS=bin/sim loads them.
//
// Kernels are the original .cu sources, compiled by g++ when the program calls its NVRTC. The stand-in is stricter than
// the real libraries. Streams run only when they are waited for. Memory is NaN until it is written, lies between
// inaccessible pages, is inaccessible to the host and never reused after it was freed. Copies of host memory that is
// not pinned run late. Kernels take memory when they are loaded, at their first launch at the latest, and libraries
// when they start and run; they fail in a second primary context of a GPU. A GPU that is lost stays lost for its
// process; library functions that may never return then end it. The blocks of a grid run in another order at each
// launch.
//
// NCCL works between processes of a machine, each with its own device: RNA_SIM_DEVICES must be their number. Ranks that
// do not issue the same operations wait forever; a communicator that is destroyed before the graphs with its operations
// ends the process, as the real one would wait forever; the end of another rank's process is reported as an
// asynchronous error.
//
// `make check-sim` builds a stand-in that checks each memory access of kernels: host memory, misaligned addresses, and
// races between threads of a block and between blocks. It finds races only in the order in which it runs threads, and
// treats atomic operations as ordered. It also counts the bytes that kernels read and write; every stand-in counts
// those of copies, fills, products and graphs of cuDNN: [Moved].
//
// Environment variables, read at the first call, RNA_SIM_RECORD at each launch:
//
//	RNA_SIM_MEMORY   bytes of a device's memory, 2³⁰ by default
//	RNA_SIM_DEVICES  number of devices, 1; CUDA_VISIBLE_DEVICES selects from them as with the real driver
//	RNA_SIM_ARCH     compute capability, 90 for 9.0
//	RNA_SIM_DRIVER   CUDA version of the driver, 12090
//	RNA_SIM_USED     bytes held by other processes, such as 0:1000,2:500 for devices 0 and 2
//	RNA_SIM_MIG      1: devices are parts of one, with such names and UUIDs
//	RNA_SIM_CUDART   CUDA version for which cuDNN was built, 12090
//	RNA_SIM_CUDNN    version of cuDNN, 9 or 8, which is too old
//	RNA_SIM_COMPILE  milliseconds that cuDNN takes to compile a plan, 0
//	RNA_SIM_NCCL     version of NCCL, 22703
//	RNA_SIM_SLOWED   NVML's bits for the reasons of lowered clocks, 0
//	RNA_SIM_CLOCK    1: events measure the nominal time of work, the same in each run, not the clock's
//	RNA_SIM_FAULT    a plan of faults, see [Fault]
//	RNA_SIM_RECORD   a folder for recordings of kernel launches, which package launches replays with NVIDIA's compiler
//	RNA_SIM_CXX      the compiler of kernels, g++
//	RNA_SIM_NVTX     the file to which libnvtx-log.so appends the ranges of a program: NVTX_INJECTION64_PATH names it
//	RNA_SIM_KEPT     a folder that keeps compiled kernels for other processes with the same sources
package sim
