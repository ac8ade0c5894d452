package driver

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrLost reports that this process cannot use GPUs any more: every call to NVIDIA's driver fails. Close the open
	// handles and end the process; a new one can resume from the files on disk.
	ErrLost = errors.New("cuda: GPU lost")

	// ErrOutOfMemory matches every [*MemoryError].
	ErrOutOfMemory = errors.New("cuda: out of memory")

	// ErrClosed reports the use of a context or one of its handles after Close.
	ErrClosed = errors.New("cuda: used after Close")
)

// An Error is a failed call of one of CUDA's libraries.
type Error struct {
	Call   string // the function of the library
	Detail string // sizes and names of its arguments
	Code   int
	Name   string // CUDA_ERROR_…, CUBLAS_STATUS_… or NVRTC_ERROR_…
	Text   string // the driver's description, if any
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cuda: %s", e.Call)
	if e.Detail != "" {
		fmt.Fprintf(&b, " (%s)", e.Detail)
	}
	fmt.Fprintf(&b, ": %s (%d)", e.Name, e.Code)
	if e.Text != "" {
		fmt.Fprintf(&b, ": %s", e.Text)
	}
	return b.String()
}

// driver reports whether the code is the driver's and not a library's.
func (e *Error) driver() bool { return strings.HasPrefix(e.Name, "CUDA_") }

// lost reports whether every later call of the process fails, as the driver's documentation says of these codes.
func (e *Error) lost() bool {
	if !e.driver() {
		return false
	}
	switch e.Code {
	case 4, // DEINITIALIZED
		214, 220, 226, // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED
		700, 702, 709, 710, // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, CONTEXT_IS_DESTROYED, ASSERT
		714, 715, 716, 717, 718, 719, // from HARDWARE_STACK_ERROR to LAUNCH_FAILED
		721, // TENSOR_MEMORY_LEAK
		999: // UNKNOWN
		return true
	}
	return false
}

// A LostError is [ErrLost] with the failure that lost the GPU: a kernel or a copy at or before that call.
type LostError struct{ Cause *Error }

func (e *LostError) Error() string {
	return fmt.Sprintf("%v; the GPU's work at or before this call failed, and this process cannot use GPUs any "+
		"more: start another", e.Cause)
}
func (e *LostError) Is(target error) bool { return target == ErrLost }
func (e *LostError) Unwrap() error        { return e.Cause }

// A MemoryError reports a failed allocation: the bytes asked for and the bytes free.
type MemoryError struct {
	Cause       *Error
	Host        bool  // host memory, pinned if it was allocated as such; Free and Total are then 0
	Asked       int64 // bytes; 0 if a library does not report it
	Free, Total int64 // of the GPU, in bytes
	Used        int64 // by this context, in bytes
}

func (e *MemoryError) Error() string {
	switch {
	case e.Asked == 0 && e.Host:
		return fmt.Sprintf("cuda: out of memory of the host: %v", e.Cause)
	case e.Asked == 0:
		return fmt.Sprintf("cuda: out of memory: %s of %s are free, this context holds %s: %v", Size(e.Free),
			Size(e.Total), Size(e.Used), e.Cause)
	case e.Host:
		return fmt.Sprintf("cuda: out of pinned host memory: asked for %s (%s)", Size(e.Asked), e.Cause.Name)
	}
	return fmt.Sprintf("cuda: out of memory: asked for %s, %s of %s are free, this context holds %s (%s)",
		Size(e.Asked), Size(e.Free), Size(e.Total), Size(e.Used), e.Cause.Name)
}
func (e *MemoryError) Is(target error) bool { return target == ErrOutOfMemory }
func (e *MemoryError) Unwrap() error        { return e.Cause }

// OutOfMemory is always true: packages that do not import this one recognise the error by it.
func (e *MemoryError) OutOfMemory() bool { return true }

// A NoDeviceError reports a GPU number that does not exist, and lists the GPUs that do.
type NoDeviceError struct {
	Asked   int
	Devices []Info
}

func (e *NoDeviceError) Error() string {
	if len(e.Devices) == 0 {
		return fmt.Sprintf("cuda: no GPU %d: the driver lists none", e.Asked)
	}
	names := make([]string, len(e.Devices))
	for i, d := range e.Devices {
		names[i] = fmt.Sprintf("%d (%s)", d.Ordinal, d.Name)
	}
	return fmt.Sprintf("cuda: no GPU %d, there are: %s", e.Asked, strings.Join(names, ", "))
}

// Size writes a number of bytes: 512 bytes, 1.5 GiB.
func Size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	x, unit := float64(n)/(1<<10), 0
	for ; x >= 1<<10 && unit < 3; unit++ {
		x /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", x, "KMGT"[unit])
}
