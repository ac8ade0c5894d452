//go:build gpu && cgo

package lazy

// #cgo CFLAGS: -I${SRCDIR}/../include
// #cgo LDFLAGS: -L${SRCDIR} -Wl,--as-needed -ldl
// #include <stdlib.h>
// #include "lazy.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"
)

// Built reports whether the build has the trampolines.
const Built = true

var state struct {
	sync.Mutex
	file    [numLibraries]string
	version int // the driver's
	oldest  int // 10 times the lowest compute capability of the GPUs
}

// Load loads l once; later calls return nil. It also initialises the driver. It fails with a [*NotFoundError], or with
// a [*DriverError] if the driver is unusable; the next call tries again.
func (l Library) Load() error {
	state.Lock()
	defer state.Unlock()
	return l.load()
}

// File returns the path of the loaded library, empty if l is not loaded.
func (l Library) File() string {
	state.Lock()
	defer state.Unlock()
	return state.file[l]
}

// DriverVersion returns the CUDA version that the loaded driver supports, 1000·major + 10·minor; 0 without a driver.
func DriverVersion() int {
	state.Lock()
	defer state.Unlock()
	return state.version
}

func (l Library) load() error {
	if state.file[l] != "" {
		return nil
	}
	if os.Getenv("CUDA_MODULE_LOADING") == "" {
		os.Setenv("CUDA_MODULE_LOADING", "LAZY") // CUDA 11.8 to 12.1 load all kernels of a library otherwise
	}
	if l != Driver {
		_ = Driver.load() // for its version; without a driver any version is accepted
	}
	if l == CuDNN {
		// cuDNN opens these two by name and gets the loaded ones.
		_, _ = NVRTC.load(), CuBLAS.load()
	}
	handle, file, err := l.open()
	if err != nil {
		return err
	}
	if l == Driver {
		var version C.int
		if code := C.lazy_init(handle, &version); code != 0 {
			return &DriverError{File: file, Code: int(code), Name: C.GoString(C.lazy_error_name(handle, code)),
				Version: int(version)}
		}
		if version < OldestDriver {
			return &DriverError{File: file, Version: int(version)}
		}
		state.version, state.oldest = int(version), int(C.lazy_oldest(handle))
	}
	state.file[l] = file
	C.lazy_publish(C.int(l), handle)
	if l == CuDNN {
		companions(int(C.lazy_cudart(handle)) / 1000)
	}
	return nil
}

// Provide replaces the libraries by lookup, a C function from names to functions or NULL. It returns false if a library
// is loaded already.
func Provide(file string, lookup unsafe.Pointer) bool {
	state.Lock()
	defer state.Unlock()
	if C.lazy_provide(lookup) == 0 {
		return false
	}
	state.version = provided
	for l := range state.file {
		state.file[l] = file
	}
	return true
}

// provided is the CUDA version of the replacement.
const provided = 13000

// companions loads the NVRTC and cuBLAS of the CUDA for which cuDNN was built, if other versions are loaded: cuDNN
// opens them by names with that version. Without them some engines fail and cuDNN uses others.
func companions(cuda int) {
	for _, l := range []Library{NVRTC, CuBLAS} {
		if cuda == 0 || strings.Contains(filepath.Base(state.file[l]), fmt.Sprintf(".so.%d", cuda)) {
			continue
		}
		for _, path := range l.candidates(state.version, state.oldest) {
			if !strings.Contains(filepath.Base(path), fmt.Sprintf(".so.%d", cuda)) {
				continue
			}
			c := C.CString(path)
			var why [1]C.char
			handle := C.lazy_open(c, &why[0], C.size_t(len(why)))
			C.free(unsafe.Pointer(c))
			if handle != nil {
				break
			}
		}
	}
}

// open opens the first candidate that can be loaded.
func (l Library) open() (handle unsafe.Pointer, file string, err error) {
	e := &NotFoundError{Library: l, Names: l.names(state.version, state.oldest), Install: l.Install(state.version)}
	first, usual := l.folders()
	e.Folders = append(first, usual...)
	for _, path := range l.candidates(state.version, state.oldest) {
		c := C.CString(path)
		var why [512]C.char
		handle = C.lazy_open(c, &why[0], C.size_t(len(why)))
		C.free(unsafe.Pointer(c))
		if handle != nil {
			return handle, C.GoString(C.lazy_path(handle)), nil
		}
		// Report files that exist and fail to load, but not missing ones.
		if reason := C.GoString(&why[0]); !strings.HasPrefix(reason, path+": cannot open shared object file") {
			e.Reasons = append(e.Reasons, reason)
		}
	}
	return nil, "", e
}

// lazyLoad is called by a trampoline whose library is not loaded.
//
//export lazyLoad
func lazyLoad(l C.int) { _ = Library(l).Load() }
