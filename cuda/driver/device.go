//go:build gpu && cgo

package driver

// #cgo CFLAGS: -I${SRCDIR}/../include
// #include <cuda.h>
import "C"

import (
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"

	"onlinerna/cuda/lazy"
)

// Devices lists the GPUs. Without a usable driver it fails with a [*lazy.NotFoundError] or [*lazy.DriverError].
func Devices() ([]Info, error) {
	if lost := ended.Load(); lost != nil {
		return nil, lost
	}
	if err := lazy.Driver.Load(); err != nil {
		return nil, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, driverError("cuDeviceGetCount", err, "")
	}
	all := make([]Info, 0, n)
	for i := range n {
		info, err := describe(i)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

func describe(ordinal int) (Info, error) {
	i := Info{Ordinal: ordinal}
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return i, driverError("cuDeviceGet", err, fmt.Sprintf("GPU %d", ordinal))
	}
	if i.Name, err = d.Name(); err != nil {
		return i, driverError("cuDeviceGetName", err, fmt.Sprintf("GPU %d", ordinal))
	}
	if i.Memory, err = d.TotalMem(); err != nil {
		return i, driverError("cuDeviceTotalMem", err, fmt.Sprintf("GPU %d", ordinal))
	}
	var id C.CUuuid
	if code := C.cuDeviceGetUuid_v2(&id, C.CUdevice(d)); code == C.CUDA_SUCCESS {
		i.UUID = uuid(i.Name, *(*[16]byte)(unsafe.Pointer(&id)))
	} else if code != C.CUDA_ERROR_NOT_FOUND { // an old driver lacks the function
		return i, driverCode("cuDeviceGetUuid", code, fmt.Sprintf("GPU %d", ordinal))
	}
	for _, a := range []struct {
		to   *int
		what cu.DeviceAttribute
	}{
		{&i.Major, cu.ComputeCapabilityMajor},
		{&i.Minor, cu.ComputeCapabilityMinor},
		{&i.Multiprocessors, cu.MultiprocessorCount},
		{&i.MemoryClock, cu.MemoryClockRate},
		{&i.MemoryBus, cu.GlobalMemoryBusWidth},
	} {
		if *a.to, err = d.Attribute(a.what); err != nil {
			return i, driverError("cuDeviceGetAttribute", err, fmt.Sprintf("GPU %d, attribute %d", ordinal, a.what))
		}
	}
	return i, nil
}

// driverError adds the driver's name for the error to an error of package cu. It returns nil for nil.
func driverError(call string, err error, detail string) error {
	if err == nil {
		return nil
	}
	v := reflect.ValueOf(err) // cu's type is not exported
	if v.Kind() != reflect.Int {
		return fmt.Errorf("cuda: %s (%s): %w", call, detail, err)
	}
	return driverCode(call, C.CUresult(v.Int()), detail)
}

func driverCode(call string, code C.CUresult, detail string) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	e := &Error{Call: call, Detail: detail, Code: int(code), Name: "CUDA_ERROR"}
	var s *C.char
	if C.cuGetErrorName(code, &s) == C.CUDA_SUCCESS && s != nil {
		e.Name = C.GoString(s)
	}
	s = nil
	if C.cuGetErrorString(code, &s) == C.CUDA_SUCCESS && s != nil {
		e.Text = C.GoString(s)
	}
	return e
}
