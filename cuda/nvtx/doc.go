// Package nvtx names ranges of work, threads and streams for a profiler, as NVIDIA's NVTX 3 does: Nsight Systems and
// others name a library in the environment variable NVTX_INJECTION64_PATH, which takes the calls. Nothing is linked or
// installed for it. Without the variable, or without the build tag gpu, there is no profiler and the calls do nothing.
package nvtx
