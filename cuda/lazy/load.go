//go:build gpu && cgo

package lazy

// #cgo CFLAGS: -I${SRCDIR}/../include
// #cgo LDFLAGS: -L${SRCDIR} -Wl,--as-needed -ldl
// #include <stdlib.h>
// #include "lazy.h"
import "C"

import (
	"fmt"
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
}

// Load loads l once; every later call returns nil. The driver is initialised too. A failure is a [*NotFoundError],
// or a [*DriverError] when the driver is there but unusable; the next call tries again.
func (l Library) Load() error {
	state.Lock()
	defer state.Unlock()
	return l.load()
}

// File returns the path of l as loaded, empty when it is not.
func (l Library) File() string {
	state.Lock()
	defer state.Unlock()
	return state.file[l]
}

// DriverVersion returns the CUDA version that the loaded driver supports, 1000·major + 10·minor; 0 when none is loaded.
func DriverVersion() int {
	state.Lock()
	defer state.Unlock()
	return state.version
}

func (l Library) load() error {
	if state.file[l] != "" {
		return nil
	}
	if l != Driver {
		_ = Driver.load() // for its version; without a driver any will do
	}
	if l == CuDNN {
		// It opens these two by name alone, and gets those that are loaded.
		_, _ = NVRTC.load(), CuBLAS.load()
	}
	handle, file, err := l.open()
	if err != nil {
		return err
	}
	if l == Driver {
		var version C.int
		if code := C.lazy_init(handle, &version); code != 0 {
			return &DriverError{File: file, Code: int(code), Name: C.GoString(C.lazy_error_name(handle, code)), Version: int(version)}
		}
		if version < OldestDriver {
			return &DriverError{File: file, Version: int(version)}
		}
		state.version = int(version)
	}
	state.file[l] = file
	C.lazy_publish(C.int(l), handle)
	if l == CuDNN {
		companions(int(C.lazy_cudart(handle)) / 1000)
	}
	return nil
}

// Provide has lookup, a C function from names to functions or nothing, give what the libraries would. It is false where one
// is loaded.
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

// provided is the version of CUDA of what is provided.
const provided = 13000

// companions loads the NVRTC and the cuBLAS of the CUDA that cuDNN was built for, where they are not those that are loaded: it opens
// them by names with that version. One that is not there is missed when an algorithm needs it, and another algorithm taken.
func companions(cuda int) {
	for _, l := range []Library{NVRTC, CuBLAS} {
		if cuda == 0 || strings.Contains(filepath.Base(state.file[l]), fmt.Sprintf(".so.%d", cuda)) {
			continue
		}
		for _, path := range l.candidates(state.version) {
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

// open opens the first candidate that loads.
func (l Library) open() (handle unsafe.Pointer, file string, err error) {
	e := &NotFoundError{Library: l, Names: l.names(state.version), Install: l.Install(state.version)}
	first, usual := l.folders()
	e.Folders = append(first, usual...)
	for _, path := range l.candidates(state.version) {
		c := C.CString(path)
		var why [512]C.char
		handle = C.lazy_open(c, &why[0], C.size_t(len(why)))
		C.free(unsafe.Pointer(c))
		if handle != nil {
			return handle, C.GoString(C.lazy_path(handle)), nil
		}
		// A file that is not there needs no words; one that is there and does not load does.
		if reason := C.GoString(&why[0]); !strings.HasPrefix(reason, path+": cannot open shared object file") {
			e.Reasons = append(e.Reasons, reason)
		}
	}
	return nil, "", e
}

// lazyLoad is what a trampoline calls whose library is not loaded.
//
//export lazyLoad
func lazyLoad(l C.int) { _ = Library(l).Load() }
