//go:build gpu && cgo

package cuda

// #include <cudnn.h>
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"onlinerna/cuda/lazy"
)

// DNN is a cuDNN handle whose work goes to one stream.
type DNN struct {
	c *Context
	s *Stream
	h C.cudnnHandle_t
}

// NewDNN makes a cuDNN handle for s. cuDNN that is missing is a [*lazy.NotFoundError].
func (c *Context) NewDNN(s *Stream) (*DNN, error) {
	if s.c != c {
		return nil, fmt.Errorf("cuda: stream of %v used on another context of %v", s.c.info, c.info)
	}
	if err := lazy.CuDNN.Load(); err != nil {
		return nil, err
	}
	if err := checkDNN(); err != nil {
		return nil, err
	}
	d := &DNN{c: c, s: s}
	err := s.do(func() error {
		if err := dnnError("cudnnCreate", C.cudnnCreate(&d.h), fmt.Sprintf("%v, %s", c.info, lazy.CuDNN.File())); err != nil {
			return err
		}
		if err := dnnError("cudnnSetStream", C.cudnnSetStream(d.h, C.CUstream(unsafe.Pointer(s.s.C()))), ""); err != nil {
			return errors.Join(err, d.release())
		}
		c.handles[d] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// oldestDNN has the convolutions' math type for float32 without rounding to TensorFloat-32, and bfloat16.
const oldestDNN = 8100

// checkDNN says that the loaded cuDNN is too old.
func checkDNN() error {
	if v := int(C.cudnnGetVersion()); v < oldestDNN {
		return fmt.Errorf("cuda: cuDNN %s is too old, needed is %s or newer: %s; %s",
			cudnnVersion(v), cudnnVersion(oldestDNN), lazy.CuDNN.File(), lazy.CuDNN.Install(lazy.DriverVersion()))
	}
	return nil
}

// Close gives the handle back, after its work. A second Close does nothing.
func (d *DNN) Close() error { return d.c.drop(d) }

func (d *DNN) kind() string { return "cuDNN handle" }

func (d *DNN) release() error {
	err := dnnError("cudnnDestroy", C.cudnnDestroy(d.h), "")
	if d.c.lost != nil {
		return nil // its memory on the host is free all the same
	}
	return err
}

// do runs f on the owner thread with an open handle.
func (d *DNN) do(f func() error) error {
	return d.s.do(func() error {
		if _, open := d.c.handles[d]; !open {
			return fmt.Errorf("cuDNN handle: %w", ErrClosed)
		}
		return f()
	})
}

// check turns a status into an error. A kernel's failure shows as one of cuDNN: the driver knows better.
func (d *DNN) check(call string, code C.cudnnStatus_t, detail string) error {
	err := dnnError(call, code, detail)
	if err == nil {
		return nil
	}
	if lost := d.c.verdict(); lost != nil {
		return lost
	}
	return err
}

// dnnNames are the codes of cuDNN 8, below 1000, and of 9.
var dnnNames = map[int]string{
	1: "NOT_INITIALIZED", 2: "ALLOC_FAILED", 3: "BAD_PARAM", 4: "INTERNAL_ERROR", 5: "INVALID_VALUE", 6: "ARCH_MISMATCH",
	7: "MAPPING_ERROR", 8: "EXECUTION_FAILED", 9: "NOT_SUPPORTED", 10: "LICENSE_ERROR", 11: "RUNTIME_PREREQUISITE_MISSING",
	1001: "NOT_INITIALIZED", 1002: "SUBLIBRARY_VERSION_MISMATCH", 1003: "SERIALIZATION_VERSION_MISMATCH", 1004: "DEPRECATED",
	1005: "LICENSE_ERROR", 1006: "RUNTIME_IN_PROGRESS", 1007: "RUNTIME_FP_OVERFLOW", 1008: "SUBLIBRARY_LOADING_FAILED",
	2000: "BAD_PARAM", 3000: "NOT_SUPPORTED", 4000: "INTERNAL_ERROR", 5000: "EXECUTION_FAILED",
}

func dnnError(call string, code C.cudnnStatus_t, detail string) error {
	if code == C.CUDNN_STATUS_SUCCESS {
		return nil
	}
	name, ok := dnnNames[int(code)]
	if !ok {
		name = dnnNames[int(code)/1000*1000] // the codes of 9 are a thousand a kind
	}
	if name != "" {
		name = "_" + name
	}
	return &Error{Call: call, Detail: detail, Code: int(code), Name: "CUDNN_STATUS" + name}
}
