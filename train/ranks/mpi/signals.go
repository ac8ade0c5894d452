//go:build mpi && linux

package mpi

import (
	"syscall"
	"unsafe"
)

// action is the kernel's sigaction: handler, flags, restorer, mask.
type action [4]uint64

// keepSignals runs f and restores all signal handlers. Libraries such as UCX and Open MPI install their own fault
// handlers: these would run on goroutine stacks, and Go would miss its own faults.
func keepSignals[T any](f func() T) T {
	const signals = 64
	var before [signals + 1]action
	handle := func(n int, set, old *action) bool {
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(set)),
			uintptr(unsafe.Pointer(old)), 8, 0, 0)
		return e == 0
	}
	for n := 1; n <= signals; n++ {
		handle(n, nil, &before[n])
	}
	result := f()
	for n := 1; n <= signals; n++ {
		var now action
		if handle(n, nil, &now) && now != before[n] {
			handle(n, &before[n], nil)
		}
	}
	return result
}
