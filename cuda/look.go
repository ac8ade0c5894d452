//go:build gpu && cgo

package cuda

// #include <cublas_v2.h>
// #include <cudnn.h>
// #include <nvrtc.h>
import "C"

import (
	"errors"
	"fmt"

	"onlinerna/cuda/lazy"
)

// load loads the libraries and lists the GPUs.
func (r *Report) load() {
	for _, l := range lazy.Libraries {
		lib := LibraryReport{Library: l, Err: l.Load()}
		if lib.Err == nil {
			lib.File = l.File()
			lib.Version, lib.Err = version(l)
		}
		if l == lazy.CuDNN && lib.Err == nil {
			lib.Err = checkDNN()
		}
		r.Libraries = append(r.Libraries, lib)
	}
	r.CUDA = lazy.DriverVersion()
	if r.Libraries[lazy.Driver].Err != nil {
		return
	}
	devices, err := Devices()
	r.Err = err
	for _, d := range devices {
		g := GPUReport{Info: d}
		g.Free, g.Err = try(d.Ordinal, r.Libraries[lazy.CuBLAS].Err == nil)
		r.GPUs = append(r.GPUs, g)
	}
}

// try opens a GPU, with cuBLAS when that is there, and returns its free memory.
func try(ordinal int, blas bool) (free int64, err error) {
	c, err := Open(ordinal, Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if free, _, err = c.MemInfo(); err != nil || !blas {
		return free, err
	}
	b, err := c.NewBLAS(c.Stream())
	if err != nil {
		return free, err
	}
	return free, b.Close()
}

// version asks a loaded library for its version.
func version(l lazy.Library) (string, error) {
	switch l {
	case lazy.Driver:
		return "CUDA " + lazy.VersionString(lazy.DriverVersion()), nil
	case lazy.CuBLAS:
		var v [3]C.int
		for i := range v {
			if code := C.cublasGetProperty(C.libraryPropertyType(i), &v[i]); code != C.CUBLAS_STATUS_SUCCESS {
				return "", fmt.Errorf("cuda: cublasGetProperty of %s gives status %d", l.File(), code)
			}
		}
		return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]), nil
	case lazy.NVRTC:
		var major, minor C.int
		err := nvrtcError("nvrtcVersion", C.nvrtcVersion(&major, &minor), "")
		return fmt.Sprintf("%d.%d", major, minor), err
	case lazy.CuDNN:
		return cudnnVersion(int(C.cudnnGetVersion())), nil
	}
	return "", fmt.Errorf("cuda: no version of %v", l)
}

// cudnnVersion writes 92800 as 9.28.0 and 8907, as cuDNN 8 numbers itself, as 8.9.7.
func cudnnVersion(v int) string {
	if v >= 90000 {
		return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100)
}
