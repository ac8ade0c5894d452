//go:build gpu && cgo

package sim

// #cgo LDFLAGS: -ldl
// #define _GNU_SOURCE
// #include <dlfcn.h>
// #include <stdlib.h>
//
// static void *library;
//
// static int find(const char *path) {
//	if (!library) {
//		void *l = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
//		if (l && dlsym(l, "simFault"))
//			library = l;
//		else if (l)
//			dlclose(l);
//	}
//	return library != NULL;
// }
//
// static int fault(const char *plan) { return ((int (*)(const char *))dlsym(library, "simFault"))(plan); }
// static const char *leaks(void) { return ((const char *(*)(void))dlsym(library, "simLeaks"))(); }
// static unsigned long long calls(const char *f) { return ((unsigned long long (*)(const char *))dlsym(library, "simCalls"))(f); }
// static void moved(unsigned long long *read, unsigned long long *written) {
//	((void (*)(unsigned long long *, unsigned long long *))dlsym(library, "simMoved"))(read, written);
// }
// static int checks(void) { return ((int (*)(void))dlsym(library, "simChecks"))(); }
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"onlinerna/cuda/lazy"
)

var errInactive = errors.New("sim: the loaded driver is not the stand-in: build it with `make sim` and set " +
	lazy.SearchVariable)

// Active reports whether the driver that is loaded is the stand-in.
func Active() bool {
	file := lazy.Driver.File()
	if file == "" {
		return false
	}
	path := C.CString(file)
	defer C.free(unsafe.Pointer(path))
	return C.find(path) != 0
}

// Fault replaces the plan of faults. A plan is a list, separated by semicolons, of
//
//	FUNCTION@K=CODE[,later][,sticky]
//
// The Kth call of FUNCTION from then on, by the name that the library exports, returns CODE; * is any function of
// the driver, and K = 0 each call. With later the call succeeds and the next wait finds CODE, as with a kernel that
// fails; with sticky all calls after it give CODE too, as with a device that is lost. An empty plan ends all this.
func Fault(plan string) error {
	if !Active() {
		return errInactive
	}
	c := C.CString(plan)
	defer C.free(unsafe.Pointer(c))
	if C.fault(c) != 0 {
		return fmt.Errorf("sim: plan of faults %q: want FUNCTION@K=CODE[,later][,sticky][;…]", plan)
	}
	return nil
}

// Leaks lists the allocations and objects that were not released, as "2 device allocations, 1 streams"; empty for none.
func Leaks() string {
	if !Active() {
		return ""
	}
	return C.GoString(C.leaks())
}

// Calls counts the calls of a function, by the name that the library exports, or the launches of a kernel. An empty
// name counts the calls of all functions.
func Calls(function string) uint64 {
	if !Active() {
		return 0
	}
	c := C.CString(function)
	defer C.free(unsafe.Pointer(c))
	return uint64(C.calls(c))
}

// Moved returns the bytes of device memory that work has read and written since the start, each byte once for each
// piece of work: copies, fills, products, graphs of cuDNN's, and kernels if they are checked.
func Moved() (read, written int64) {
	if !Active() {
		return 0, 0
	}
	var r, w C.ulonglong
	C.moved(&r, &w)
	return int64(r), int64(w)
}

// Checked says whether each access of kernels is checked, and counted.
func Checked() bool { return Active() && C.checks() != 0 }
