//go:build gpu && cgo

package nvtx

// #cgo CFLAGS: -I${SRCDIR}/../include
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "inject.h"
import "C"

import (
	"os"
	"sync"
	"unsafe"
)

// Variable names the environment variable with the path of a profiler's library. Profilers set it.
const Variable = "NVTX_INJECTION64_PATH"

// On reports whether a profiler takes ranges. The first call loads its library. As with NVIDIA's own headers, a library
// that cannot be loaded is no error.
var On = sync.OnceValue(func() bool {
	path := os.Getenv(Variable)
	if path == "" {
		return false
	}
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	return C.nvtx_attach(p) != 0
})

// Push opens a range in the calling thread, inside those that are open there. Pop must close it in the same thread.
func Push(name string) {
	if On() {
		call(name, func(s *C.char) { C.nvtx_push(s) })
	}
}

// Pop closes the range that was opened last in the calling thread.
func Pop() {
	if On() {
		C.nvtx_pop()
	}
}

// NameThread names the thread of a number of the system's.
func NameThread(thread int, name string) {
	if On() {
		call(name, func(s *C.char) { C.nvtx_name_thread(C.uint32_t(thread), s) })
	}
}

// NameStream names a CUstream.
func NameStream(stream unsafe.Pointer, name string) {
	if On() {
		call(name, func(s *C.char) { C.nvtx_name_stream(stream, s) })
	}
}

func call(name string, f func(*C.char)) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	f(s)
}
