//go:build gpu && cgo

package driver

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"gorgonia.org/cu"
)

// Memory is a block of the GPU's memory. Its contents are unspecified at first.
type Memory struct {
	c     *Context
	block block
	bytes int64
}

// A Span is a part of a block of GPU memory; it owns nothing. The zero Span is empty.
type Span struct {
	m   *Memory
	off int64
	n   int64
}

// Alloc allocates device memory, aligned to at least 256 bytes. If there is not enough even after the cache of freed
// blocks is emptied, it fails with a [*MemoryError].
func (c *Context) Alloc(bytes int64) (*Memory, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("cuda: cannot allocate %d bytes", bytes)
	}
	m := &Memory{c: c, bytes: bytes}
	err := c.Do(func() (err error) {
		if m.block, err = c.allocate(bytes); err == nil {
			c.handles[m] = struct{}{}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// AllocApart is [Context.Alloc] for short-lived memory, such as a measurement's: it does not count towards the peak.
func (c *Context) AllocApart(bytes int64) (m *Memory, err error) {
	err = c.Do(func() error {
		peak := c.pool.stats.Peak
		m, err = c.Alloc(bytes)
		c.pool.stats.Peak = peak
		return err
	})
	return m, err
}

// Bytes is the size given to Alloc.
func (m *Memory) Bytes() int64 { return m.bytes }

// All is the whole block.
func (m *Memory) All() Span { return Span{m, 0, m.bytes} }

// Span is the part of n bytes from byte off on. It panics unless that part lies inside.
func (m *Memory) Span(off, n int64) Span { return m.All().Span(off, n) }

// Close frees the memory once running work has finished with it, without waiting. A second Close does nothing.
func (m *Memory) Close() error { return m.c.drop(m) }

func (m *Memory) kind() string { return "device memory" }

func (m *Memory) release() error {
	m.c.outdate(m)
	return m.c.free(m.block)
}

// Bytes is the span's size.
func (s Span) Bytes() int64 { return s.n }

// Span is the part of n bytes from byte off of s on. It panics unless that part lies inside.
func (s Span) Span(off, n int64) Span {
	if off < 0 || n < 0 || off > s.n-n {
		panic(fmt.Sprintf("cuda: span of %d bytes at %d of %d", n, off, s.n))
	}
	return Span{s.m, s.off + off, n}
}

// Context is the context of the span's memory, nil for the zero Span.
func (s Span) Context() *Context {
	if s.m == nil {
		return nil
	}
	return s.m.c
}

// Offset is the span's start within its block, in bytes.
func (s Span) Offset() int64 { return s.off }

// Address is the span's start for calls of a library inside [Context.Do] of c. It refuses closed memory and memory of
// other contexts. Inside a capture it records that the graph uses the memory.
func (s Span) Address(c *Context) (uintptr, error) {
	p, err := s.pointer(c)
	return uintptr(p), err
}

func (s Span) pointer(c *Context) (cu.DevicePtr, error) {
	if s.m == nil {
		if s.n == 0 {
			return 0, nil
		}
		panic("cuda: the zero Span has no address")
	}
	if s.m.c != c {
		return 0, fmt.Errorf("cuda: memory of %v used on another context of %v", s.m.c.info, c.info)
	}
	if _, open := c.handles[s.m]; !open {
		return 0, fmt.Errorf("device memory of %s: %w", Size(s.m.bytes), ErrClosed)
	}
	if c.capturing != nil {
		c.capturing.uses[s.m] = struct{}{}
	}
	return s.m.block.at + cu.DevicePtr(s.off), nil
}

// MemInfo returns the GPU's free and total memory in bytes, over all processes.
func (c *Context) MemInfo() (free, total int64, err error) {
	err = c.Do(func() (err error) {
		free, total, err = cu.MemInfo()
		return c.check("cuMemGetInfo", err, "")
	})
	return free, total, err
}

// Stats returns the counts of the context's device memory.
func (c *Context) Stats() (s MemoryStats, err error) {
	err = c.enter(func() error { s = c.pool.stats; return nil })
	return s, err
}

// ResetPeak sets the peak to the memory in use.
func (c *Context) ResetPeak() error {
	return c.enter(func() error { c.pool.stats.Peak = c.pool.stats.Used; return nil })
}

// Trim returns the cache of freed memory to the driver.
func (c *Context) Trim() error { return c.Do(c.trim) }

// A Number is an element type of GPU memory.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// Bytes views s as bytes, for copies to or from a GPU.
func Bytes[T Number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// HostMemory is pinned host memory: the GPU copies it asynchronously and without staging.
type HostMemory struct {
	c *Context
	p unsafe.Pointer
	n int64
}

// AllocHost allocates pinned host memory. It fails with a [*MemoryError] when there is not enough.
func (c *Context) AllocHost(bytes int64) (*HostMemory, error) {
	if bytes <= 0 || bytes > math.MaxInt {
		return nil, fmt.Errorf("cuda: cannot allocate %d bytes of pinned host memory", bytes)
	}
	h := &HostMemory{c: c, n: bytes}
	err := c.Do(func() (err error) {
		if h.p, err = hostAlloc(bytes); err == nil {
			c.handles[h] = struct{}{}
			c.pinned = append(c.pinned, h)
			return nil
		}
		if e, ok := err.(*Error); ok && e.Code == int(cu.OutOfMemory) {
			return &MemoryError{Cause: e, Host: true, Asked: bytes}
		}
		return c.note(err)
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Bytes is the memory. It must not be used after Close.
func (h *HostMemory) Bytes() []byte { return unsafe.Slice((*byte)(h.p), h.n) }

// Address is the memory's start, the same for the host and for kernels, for calls inside [Context.Do] of its context.
func (h *HostMemory) Address() (uintptr, error) {
	if _, open := h.c.handles[h]; !open {
		return 0, fmt.Errorf("pinned host memory: %w", ErrClosed)
	}
	return uintptr(h.p), nil
}

// HostSlice views h as elements; it leaves out an incomplete element at the end.
func HostSlice[T Number](h *HostMemory) []T {
	var t T
	return unsafe.Slice((*T)(h.p), h.n/int64(unsafe.Sizeof(t)))
}

// isPinned reports whether b lies in pinned memory of the context.
func (c *Context) isPinned(b []byte) bool {
	at := uintptr(unsafe.Pointer(&b[0]))
	return slices.ContainsFunc(c.pinned, func(h *HostMemory) bool {
		return at >= uintptr(h.p) && at+uintptr(len(b)) <= uintptr(h.p)+uintptr(h.n)
	})
}

// Close waits for all work of the context and frees the memory. A second Close does nothing.
func (h *HostMemory) Close() error { return h.c.drop(h) }

func (h *HostMemory) kind() string { return "pinned host memory" }

func (h *HostMemory) release() error {
	h.c.pinned = slices.DeleteFunc(h.c.pinned, func(x *HostMemory) bool { return x == h })
	if err := h.c.check("cuCtxSynchronize", cu.Synchronize(), "before freeing pinned host memory"); err != nil {
		return err
	}
	return driverError("cuMemFreeHost", cu.MemFreeHost(h.p), Size(h.n))
}
