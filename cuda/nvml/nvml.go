//go:build gpu && cgo

package nvml

// #cgo CFLAGS: -I${SRCDIR}/../include
// #include <nvml.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"onlinerna/cuda/lazy"
)

// start initialises NVML once. NVML creates no CUDA context.
var start = sync.OnceValue(func() error {
	if err := lazy.NVML.Load(); err != nil {
		return err
	}
	return failure("nvmlInit", C.nvmlInit_v2())
})

// Read returns the state of the GPU with this UUID, as in [onlinerna/cuda/driver.Info]. Fields that the GPU does not
// report are zero; without its memory Read fails. A missing NVML is a [*lazy.NotFoundError].
func Read(uuid string) (s State, err error) {
	if err := start(); err != nil {
		return s, err
	}
	name := C.CString(uuid)
	defer C.free(unsafe.Pointer(name))
	var d C.nvmlDevice_t
	if err := failure("nvmlDeviceGetHandleByUUID "+uuid, C.nvmlDeviceGetHandleByUUID(name, &d)); err != nil {
		return s, err
	}
	var m C.nvmlMemory_t
	if err := failure("nvmlDeviceGetMemoryInfo", C.nvmlDeviceGetMemoryInfo(d, &m)); err != nil {
		return s, err
	}
	s.Free, s.Total = int64(m.free), int64(m.total)
	s.Clock = number(func(n *C.uint) C.nvmlReturn_t { return C.nvmlDeviceGetClockInfo(d, C.NVML_CLOCK_SM, n) })
	s.MemoryClock = number(func(n *C.uint) C.nvmlReturn_t { return C.nvmlDeviceGetClockInfo(d, C.NVML_CLOCK_MEM, n) })
	s.Power = float64(number(func(n *C.uint) C.nvmlReturn_t { return C.nvmlDeviceGetPowerUsage(d, n) })) / 1000
	s.PowerLimit = float64(number(func(n *C.uint) C.nvmlReturn_t {
		return C.nvmlDeviceGetEnforcedPowerLimit(d, n)
	})) / 1000
	s.Temperature = number(func(n *C.uint) C.nvmlReturn_t {
		return C.nvmlDeviceGetTemperature(d, C.NVML_TEMPERATURE_GPU, n)
	})
	var reasons C.ulonglong
	if C.nvmlDeviceGetCurrentClocksThrottleReasons(d, &reasons) == C.NVML_SUCCESS {
		s.Slowed = slowed(uint64(reasons))
	}
	return s, nil
}

// number is a figure of a GPU, 0 if the GPU has none.
func number(get func(*C.uint) C.nvmlReturn_t) int {
	var n C.uint
	if get(&n) != C.NVML_SUCCESS {
		return 0
	}
	return int(n)
}

func failure(call string, code C.nvmlReturn_t) error {
	if code == C.NVML_SUCCESS {
		return nil
	}
	return fmt.Errorf("cuda: %s: %s (%d)", call, C.GoString(C.nvmlErrorString(code)), int(code))
}
