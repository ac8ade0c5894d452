//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nvrtc"
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
			lib.Err = dnn.Usable()
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
func try(ordinal int, withBLAS bool) (free int64, err error) {
	c, err := Open(ordinal, Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if free, _, err = c.MemInfo(); err != nil || !withBLAS {
		return free, err
	}
	b, err := blas.New(c.Stream())
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
		return blas.Version()
	case lazy.NVRTC:
		return nvrtc.Version()
	case lazy.CuDNN:
		return dnn.Version(), nil
	}
	return "", fmt.Errorf("cuda: no version of %v", l)
}
