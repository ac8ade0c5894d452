//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nccl"
	"onlinerna/cuda/number"
	"onlinerna/cuda/nvml"
	"onlinerna/cuda/nvrtc"
)

// load loads the libraries and lists the GPUs.
func (r *Report) load() {
	for _, l := range lazy.Libraries {
		lib := LibraryReport{Library: l, Err: l.Load()}
		if lib.Err == nil {
			lib.File = l.File()
			lib.Version, lib.CUDA, lib.Err = version(l)
			if lib.Err == nil {
				lib.Err = lib.fits(lazy.DriverVersion())
			}
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
		if r.Libraries[lazy.NVML].Err == nil {
			if g.State, err = nvml.Read(d.UUID); err != nil {
				r.Libraries[lazy.NVML].Err = err
			}
		}
		g.Free = g.State.Free
		r.GPUs = append(r.GPUs, g)
	}
}

// Try opens each GPU and uses cuBLAS and cuDNN if they are installed. The driver keeps some hundred MB of each GPU for
// this process until it ends.
func (r *Report) Try() {
	for i := range r.GPUs {
		g := &r.GPUs[i]
		g.Free, g.Err = try(g.Ordinal, r.Libraries[lazy.CuBLAS].Err == nil, r.Libraries[lazy.CuDNN].Err == nil)
		g.Tried = g.Err == nil && r.Libraries[lazy.CuDNN].Err == nil
	}
}

// try opens a GPU, uses the libraries and returns the free memory in bytes.
func try(ordinal int, withBLAS, withDNN bool) (free int64, err error) {
	c, err := Open(ordinal, Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if free, _, err = c.MemInfo(); err != nil {
		return free, err
	}
	if withBLAS {
		b, err := blas.New(c.Stream())
		if err != nil {
			return free, err
		}
		if err := b.Close(); err != nil {
			return free, err
		}
	}
	if withDNN {
		err = convolve(c)
	}
	return free, err
}

// Properties returns a GPU's properties as JSON, in the form of cuDNN 9.8 or newer.
// cuDNN makes plans for that GPU from them on any machine.
func Properties(ordinal int) (properties string, err error) {
	c, err := Open(ordinal, Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	h, err := dnn.New(c.Stream())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return h.Properties()
}

// convolve has cuDNN convolve ones with ones, which counts the pixels under each filter, and checks the counts.
func convolve(c *Context) (err error) {
	shape := dnn.Shape{N: 1, C: 8, H: 4, W: 4, O: 8, KH: 3, KW: 3, Stride: [2]int{1, 1}, Pad: [2]int{1, 1},
		Dilation: [2]int{1, 1}, Groups: 1}
	h, err := dnn.New(c.Stream())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	v, err := h.NewPlans(shape.Graph(dnn.Forward, number.Float32), dnn.Options{Workspace: 1 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	x, w, y := make([]float32, 4*4*8), make([]float32, 8*3*3*8), make([]float32, 4*4*8)
	for _, ones := range [][]float32{x, w} {
		for i := range ones {
			ones[i] = 1
		}
	}
	var at [4]driver.Span
	for i, bytes := range []int{4 * len(x), 4 * len(w), 4 * len(y), int(max(v.Workspace(), 1))} {
		m, err := c.Alloc(int64(bytes))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Close()) }()
		at[i] = m.All()
	}
	s := c.Stream()
	err = errors.Join(s.CopyIn(at[0], driver.Bytes(x)), s.CopyIn(at[1], driver.Bytes(w)))
	if err == nil {
		err = v.Run(at[:3], at[3])
	}
	if err == nil {
		err = s.CopyOut(driver.Bytes(y), at[2])
	}
	if err != nil {
		return fmt.Errorf("a small convolution: %w", err)
	}
	side := [4]float32{2, 3, 3, 2} // image pixels under a filter at each position
	for i, got := range y {
		if want := 8 * side[i/8/4] * side[i/8%4]; got != want {
			return fmt.Errorf("a small convolution is wrong: element %d is %g instead of %g; the card or its "+
				"libraries are damaged", i, got, want)
		}
	}
	return nil
}

// version returns a loaded library's version and the CUDA version for which it was built.
func version(l lazy.Library) (v string, cuda int, err error) {
	switch l {
	case lazy.Driver:
		return "CUDA " + lazy.VersionString(lazy.DriverVersion()), 0, nil
	case lazy.CuBLAS:
		v, err = blas.Version()
	case lazy.NVRTC:
		v, err = nvrtc.Version()
	case lazy.CuDNN:
		return dnn.Version(), dnn.CUDA(), nil
	case lazy.NCCL:
		v, err = nccl.Version()
		return v, 0, err
	case lazy.NVML:
		return "loaded", 0, nil
	default:
		return "", 0, fmt.Errorf("cuda: no version of %v", l)
	}
	var major int
	_, _ = fmt.Sscanf(v, "%d.", &major) // these libraries share CUDA's major version
	return v, 1000 * major, err
}
