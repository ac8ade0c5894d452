//go:build gpu && cgo

package driver

// #include <cuda.h>
// #include <stdint.h>
//
// // The parameters are read before the call returns.
// static CUresult launch(CUfunction f, const unsigned grid[3], const unsigned block[3], unsigned shared, CUstream s,
//	uint64_t *cells, int n) {
//	void *params[n > 0 ? n : 1];
//	for (int i = 0; i < n; i++) params[i] = &cells[i];
//	return cuLaunchKernel(f, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, s, params, NULL);
// }
import "C"

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// A Module is a compiled source with its kernels.
type Module struct {
	// Source and Options are those from which it was compiled, if it was.
	Source  string
	Options []string

	c    *Context
	name string
	m    cu.Module
}

// A Kernel is a __global__ function of a module and lives as long as the module.
type Kernel struct {
	m    *Module
	name string
	f    C.CUfunction
}

// Name is the kernel's name, and Module the module that has it.
func (k *Kernel) Name() string    { return k.name }
func (k *Kernel) Module() *Module { return k.m }

// Dim is the size of a grid in blocks, or of a block in threads. Zeros are ones.
type Dim struct{ X, Y, Z int }

func (d Dim) filled() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// Load loads a cubin, or PTX, which the driver compiles. Messages use name for the source.
func (c *Context) Load(name string, image []byte) (*Module, error) {
	m := &Module{c: c, name: name}
	err := c.Do(func() error {
		err := c.RetryMemory(func() (err error) {
			m.m, err = cu.LoadData(string(image))
			return c.check("cuModuleLoadData", err, fmt.Sprintf("%s for %s, %s", name, c.info.Arch(),
				Size(int64(len(image)))))
		})
		if err == nil {
			c.handles[m] = struct{}{}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Kernel finds an extern "C" kernel of the module and loads its code. The driver would load it at the first launch,
// which may be inside a capture or when memory is exhausted.
func (m *Module) Kernel(name string) (*Kernel, error) {
	k := &Kernel{m: m, name: name}
	err := m.c.Do(func() (err error) {
		if _, open := m.c.handles[m]; !open {
			return fmt.Errorf("module %s: %w", m.name, ErrClosed)
		}
		f, err := m.m.Function(name)
		// Package cu's own launch stores pointers in memory of malloc: old content there may look to the garbage
		// collector like an invalid pointer and end the program.
		k.f = C.CUfunction(reflect.ValueOf(f).FieldByName("fn").UnsafePointer())
		if err := m.c.check("cuModuleGetFunction", err, fmt.Sprintf("%s of %s", name, m.name)); err != nil {
			return err
		}
		return m.c.RetryMemory(func() error {
			code := C.cuFuncLoad(k.f)
			if code == C.CUDA_ERROR_NOT_FOUND {
				return nil // drivers before CUDA 12.4 have loaded it already
			}
			return m.c.note(driverCode("cuFuncLoad", code, fmt.Sprintf("%s of %s", name, m.name)))
		})
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Close unloads the module. None of its kernels may still run. A second Close does nothing.
func (m *Module) Close() error { return m.c.drop(m) }

func (m *Module) kind() string { return "module" }

func (m *Module) release() error {
	return m.c.check("cuModuleUnload", m.m.Unload(), m.name)
}

// Launch runs k on the stream with this many bytes of dynamic shared memory. The arguments must have the types of the
// kernel's parameters, which cannot be checked: a [Span] for a pointer; int32, uint32, int64, uint64, float32 or
// float64 for a value. A span counts as read once; pass an [Access] for any other use.
func (s *Stream) Launch(k *Kernel, grid, block Dim, shared int, args ...any) error {
	return s.Do(func() error {
		work, args := workOf(k.name, args)
		if k.m.c != s.c {
			return fmt.Errorf("cuda: kernel %s of %v launched on %v", k.name, k.m.c.info, s.c.info)
		}
		if _, open := s.c.handles[k.m]; !open {
			return fmt.Errorf("kernel %s: %w", k.name, ErrClosed)
		}
		cells := make([]C.uint64_t, len(args)+1) // one more, so that cells[0] exists without arguments
		for i, a := range args {
			if err := s.c.argument(unsafe.Pointer(&cells[i]), a); err != nil {
				return fmt.Errorf("cuda: argument %d of kernel %s: %w", i, k.name, err)
			}
		}
		g, b := grid.filled(), block.filled()
		sizes := [2][3]C.uint{{C.uint(g.X), C.uint(g.Y), C.uint(g.Z)}, {C.uint(b.X), C.uint(b.Y), C.uint(b.Z)}}
		start := func() error {
			code := C.launch(k.f, &sizes[0][0], &sizes[1][0], C.uint(shared), C.CUstream(s.Pointer()), &cells[0],
				C.int(len(args)))
			if code == C.CUDA_SUCCESS {
				return nil
			}
			return s.c.note(driverCode("cuLaunchKernel", code,
				fmt.Sprintf("%s, grid %s, block %s, %d bytes shared", k.name, g, b, shared)))
		}
		work.Launch = &Launch{k, g, b, unsafe.Slice((*uint64)(unsafe.Pointer(&cells[0])), len(args))}
		return s.Give(work, func() error { return s.c.RetryMemory(start) })
	})
}

func (d Dim) String() string {
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%d×%d×%d", d.X, d.Y, d.Z), "×1"), "×1")
}

func (c *Context) argument(cell unsafe.Pointer, a any) error {
	switch v := a.(type) {
	case Span:
		p, err := v.pointer(c)
		*(*uint64)(cell) = uint64(p)
		return err
	case int32:
		*(*int32)(cell) = v
	case uint32:
		*(*uint32)(cell) = v
	case int64:
		*(*int64)(cell) = v
	case uint64:
		*(*uint64)(cell) = v
	case float32:
		*(*float32)(cell) = v
	case float64:
		*(*float64)(cell) = v
	default:
		return fmt.Errorf("a %T cannot be a kernel parameter", a)
	}
	return nil
}
