package driver

import (
	"fmt"
	"strings"
)

// Info describes a GPU.
type Info struct {
	Ordinal         int // the number that Open takes
	Name            string
	UUID            string // as in nvidia-smi -L and CUDA_VISIBLE_DEVICES: GPU-…, or MIG-… for a part of a GPU
	Major, Minor    int    // compute capability
	Memory          int64  // total bytes
	Multiprocessors int
	MemoryClock     int // kHz, 0 when unknown
	MemoryBus       int // bits
}

// Arch names the GPU's instruction set as compilers do: sm_90.
func (i Info) Arch() string { return fmt.Sprintf("sm_%d%d", i.Major, i.Minor) }

// Find returns the number of the GPU whose UUID begins with name. name must not be empty.
func Find(all []Info, name string) (ordinal int, err error) {
	found := -1
	for _, d := range all {
		if !strings.HasPrefix(strings.ToLower(d.UUID), strings.ToLower(name)) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("cuda: the UUIDs of more than one GPU begin with %q: give more of it", name)
		}
		found = d.Ordinal
	}
	if found < 0 {
		return 0, fmt.Errorf("cuda: no GPU that this process sees has a UUID that begins with %q; 'rna devices' "+
			"lists them", name)
	}
	return found, nil
}

// uuid formats the 16 bytes of a UUID as NVIDIA's tools do.
func uuid(name string, b [16]byte) string {
	kind := "GPU"
	if strings.Contains(name, " MIG ") {
		kind = "MIG"
	}
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Bandwidth is the memory's peak bandwidth in bytes a second, computed from its clock and width with two transfers a
// clock; 0 when unknown.
func (i Info) Bandwidth() float64 { return 2 * float64(i.MemoryClock) * 1e3 * float64(i.MemoryBus) / 8 }

func (i Info) String() string { return fmt.Sprintf("GPU %d: %s, %s", i.Ordinal, i.Name, i.Arch()) }

// Options of [Open]. The zero value is a good choice.
type Options struct {
	// KernelCache is the folder for compiled kernels, by default onlinerna/cuda in the user's cache folder. If it
	// cannot be written, kernels are compiled again in each run.
	KernelCache string

	// ExactMemory switches the cache of freed device memory off: the driver allocates exactly the bytes asked for,
	// each time. For tests. RNA_CUDA_MEMORY=exact in the environment does the same.
	ExactMemory bool
}

// MemoryStats counts device memory of a context, in bytes.
type MemoryStats struct {
	Used   int64 // in allocated blocks, with their rounding
	Cached int64 // freed, kept for the next allocation
	Peak   int64 // the maximum of Used
	Calls  int   // calls of the driver's allocator
}
