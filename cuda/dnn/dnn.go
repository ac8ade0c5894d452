//go:build gpu && cgo

// Package dnn runs the convolutions of nets with cuDNN 9 and chooses their plans. It uses cuDNN and, for memory and
// streams, package driver.
package dnn

// #cgo CFLAGS: -I${SRCDIR}/../include
// #include <cudnn_backend.h>
import "C"

import (
	"errors"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
)

// Handle is a cuDNN handle whose work goes to one stream, or the description of an absent card, for which it makes
// plans.
type Handle struct {
	*driver.Resource
	c *driver.Context
	s *driver.Stream
	h C.cudnnHandle_t

	info      driver.Info
	described C.cudnnBackendDescriptor_t // the absent card; nil for a handle
	b         backend                    // of the description
}

// New makes a cuDNN handle for s. A missing cuDNN is a [*lazy.NotFoundError].
func New(s *driver.Stream) (*Handle, error) {
	if err := lazy.CuDNN.Load(); err != nil {
		return nil, err
	}
	if err := Usable(); err != nil {
		return nil, err
	}
	d := &Handle{c: s.Context(), s: s, info: s.Context().Info()}
	err := s.Do(func() error {
		err := d.c.Retry(func() error {
			return failure("cudnnCreate", C.cudnnCreate(&d.h), fmt.Sprintf("%v, %s", d.c.Info(), lazy.CuDNN.File()))
		})
		if err != nil {
			return d.told(err)
		}
		if err := failure("cudnnSetStream", C.cudnnSetStream(d.h, C.CUstream(s.Pointer())), ""); err != nil {
			return errors.Join(err, d.destroy())
		}
		d.Resource = d.c.Adopt("cuDNN handle", d.destroy)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// oldest is the oldest version: cuDNN 8 lacks many of the graphs.
const oldest = 90000

// Usable returns an error if the loaded cuDNN is too old, or for a later CUDA than the driver supports.
func Usable() error {
	if cuda, driver := CUDA(), lazy.DriverVersion(); driver != 0 && cuda/1000 > driver/1000 {
		return fmt.Errorf("cuda: cuDNN %s is for CUDA %s, and the driver supports CUDA %s: %s; %s", Version(),
			lazy.VersionString(cuda),
			lazy.VersionString(driver), lazy.CuDNN.File(), lazy.CuDNN.Install(driver))
	}
	if v := int(C.cudnnGetVersion()); v < oldest {
		return fmt.Errorf("cuda: cuDNN %s is too old, needed is %s or newer: %s; %s",
			versionString(v), versionString(oldest), lazy.CuDNN.File(), lazy.CuDNN.Install(lazy.DriverVersion()))
	}
	return nil
}

// Describe makes a handle for an absent card from its properties as JSON: it can plan, but nothing runs. cuDNN must be
// 9.8 or newer.
func Describe(properties string) (*Handle, error) {
	if err := lazy.CuDNN.Load(); err != nil {
		return nil, err
	}
	info, err := infoOf(properties)
	if err != nil {
		return nil, err
	}
	d := &Handle{info: info}
	err = onThread(func() error {
		x := d.b.make(C.CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
		d.b.setText(x, C.CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties)
		d.described = d.b.finalize(x, "device")
		if d.b.err != nil {
			_ = d.b.release(0) // err is the cause
			return fmt.Errorf("cuda: describe a device: %w", d.b.err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Properties are the card's properties as JSON, for [Describe]. cuDNN must be 9.8 or newer.
func (d *Handle) Properties() (properties string, err error) {
	err = d.do(func() error {
		b := backend{}
		x := b.make(C.CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
		set(&b, x, C.CUDNN_ATTR_DEVICEPROP_HANDLE, C.CUDNN_TYPE_HANDLE, d.h)
		b.finalize(x, "device")
		properties = b.getText(x, C.CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)
		return errors.Join(b.err, b.release(0))
	})
	return properties, err
}

// Info describes the card. If it is absent, the description comes from its stated properties.
func (d *Handle) Info() driver.Info { return d.info }

// Described reports whether the card is only described.
func (d *Handle) Described() bool { return d.described != nil }

// Close frees the handle.
func (d *Handle) Close() error {
	if d.Described() {
		return d.b.release(0)
	}
	return d.Resource.Close()
}

func (d *Handle) destroy() error { return failure("cudnnDestroy", C.cudnnDestroy(d.h), "") }

// do runs f on the owner thread with an open handle.
func (d *Handle) do(f func() error) error {
	if d.Described() {
		return onThread(f)
	}
	return d.s.Do(func() error {
		if err := d.Check(); err != nil {
			return err
		}
		return f()
	})
}

// told returns cuDNN's error, or its cause: a lost GPU or missing memory.
func (d *Handle) told(err error) error {
	if err == nil {
		return nil
	}
	if lost := d.verdict(); lost != nil {
		return lost
	}
	e := (*driver.Error)(nil)
	if d.Described() || errors.Is(err, driver.ErrOutOfMemory) || !errors.As(err, &e) {
		return err
	}
	switch e.Name {
	case hostAllocFailed, deviceAllocFailed:
		return d.c.OutOfMemory(e, e.Name == hostAllocFailed)
	}
	return err
}

// ends reports whether the GPU caused an error, so that no other plan helps: it is lost or full.
func ends(err error) bool {
	return errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrOutOfMemory)
}

// CUDA is the CUDA version for which the loaded cuDNN was built: 1000·major + 10·minor, 0 when unknown.
func CUDA() int { return int(C.cudnnGetCudartVersion()) }

// verdict is the driver's view of a failure.
func (d *Handle) verdict() error {
	if d.Described() {
		return nil
	}
	return d.c.Verdict()
}

// adopt makes the context close an object of a present card.
func (d *Handle) adopt(kind string, close func() error) *driver.Resource {
	if d.Described() {
		return nil
	}
	return d.c.Adopt(kind, close)
}

// Version returns the version of the loaded cuDNN.
func Version() string { return versionString(int(C.cudnnGetVersion())) }

// versionString writes 92800 as 9.28.0 and 8907, the form of cuDNN 8, as 8.9.7.
func versionString(v int) string {
	if v >= 90000 {
		return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100)
}

// names are the error codes.
var names = map[int]string{
	1001: "NOT_INITIALIZED", 1002: "SUBLIBRARY_VERSION_MISMATCH", 1003: "SERIALIZATION_VERSION_MISMATCH",
	1004: "DEPRECATED",
	1005: "LICENSE_ERROR", 1006: "RUNTIME_IN_PROGRESS", 1007: "RUNTIME_FP_OVERFLOW", 1008: "SUBLIBRARY_LOADING_FAILED",
	2000: "BAD_PARAM", 3000: "NOT_SUPPORTED", 4000: "INTERNAL_ERROR", 5000: "EXECUTION_FAILED",
	4003: "INTERNAL_ERROR_HOST_ALLOCATION_FAILED", 4004: "INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
}

// Codes of failed allocations.
const (
	hostAllocFailed   = "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
	deviceAllocFailed = "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
)

func failure(call string, code C.cudnnStatus_t, detail string) error {
	if code == C.CUDNN_STATUS_SUCCESS {
		return nil
	}
	name, ok := names[int(code)]
	if !ok {
		name = names[int(code)/1000*1000] // there are a thousand codes for each kind
	}
	if name != "" {
		name = "_" + name
	}
	return &driver.Error{Call: call, Detail: detail, Code: int(code), Name: "CUDNN_STATUS" + name}
}
