//go:build gpu && cgo

package driver

// #include <cuda.h>
import "C"

import "unsafe"

// hostAlloc allocates pinned host memory, which package cu cannot.
func hostAlloc(bytes int64) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	// Portable: pinned for every context of the process.
	const portable = 1 // CU_MEMHOSTALLOC_PORTABLE
	err := driverCode("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(bytes), portable), Size(bytes))
	return p, err
}
