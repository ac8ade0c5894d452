//go:build gpu && cgo

package driver_test

import (
	"errors"
	"slices"
	"testing"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nvrtc"
)

// The cache of freed memory holds all memory: the driver and the libraries still find memory inside their calls.
func TestFaultWithoutRoom(t *testing.T) {
	fault(t, "")
	gputest.NeedLibrary(t, lazy.CuDNN)
	c := gputest.OpenWith(t, driver.Options{KernelCache: gputest.KernelCache})
	mod, err := nvrtc.Compile(c, "arguments.cu", gputest.Arguments)
	check(t, err)
	fill := func() {
		t.Helper()
		check(t, c.Trim())
		free, _, err := c.MemInfo()
		check(t, err)
		m, err := c.Alloc(free &^ (2<<20 - 1))
		check(t, err)
		check(t, m.Close())
		if free, _, err = c.MemInfo(); err != nil || free > 2<<20 {
			t.Fatalf("%d bytes are free", free)
		}
		rest, err := c.Alloc(max(free-1024, 512)) // the remaining memory
		check(t, err)
		t.Cleanup(func() { check(t, rest.Close()) })
	}
	fill()
	_, err = mod.Kernel("number")
	check(t, err)
	fill()
	b, err := blas.New(c.Stream())
	check(t, err)
	m := alloc(t, c, 64)
	fill()
	// cuBLAS allocates its scratch
	check(t, b.Dgemv(false, 1, 1, 1, m.Span(0, 8), 1, m.Span(8, 8), 1, 0, m.Span(16, 8), 1))
	fill()
	d, err := dnn.New(c.Stream())
	check(t, err)
	check(t, errors.Join(b.Close(), d.Close(), mod.Close()))
}

// Freeing memory does not wait; the next use of it waits once.
func TestFaultOfFrees(t *testing.T) {
	fault(t, "")
	c := gputest.OpenWith(t, driver.Options{KernelCache: gputest.KernelCache})
	var all []*driver.Memory
	for range 10 {
		m, err := c.Alloc(4096)
		check(t, err)
		all = append(all, m)
	}
	waits := func() uint64 { return sim.Calls("cuCtxSynchronize") }
	before := waits()
	for _, m := range all {
		check(t, m.Close())
	}
	if n := waits() - before; n != 0 {
		t.Errorf("10 frees waited %d times", n)
	}
	for range 5 {
		alloc(t, c, 4096)
	}
	if n := waits() - before; n != 1 {
		t.Errorf("5 allocations of freed memory waited %d times", n)
	}
}

// A slice that is not pinned belongs to the caller again when a copy returns, even if the driver accesses it late.
func TestPageableCopies(t *testing.T) {
	c := open(t)
	want := []int32{1, 2, 3}
	from, to := slices.Clone(want), make([]int32, 3)
	m := alloc(t, c, 12)
	check(t, c.Stream().CopyIn(m.All(), driver.Bytes(from)))
	clear(from)
	check(t, c.Stream().CopyOut(driver.Bytes(to), m.All()))
	if !slices.Equal(to, want) {
		t.Errorf("got %v, want %v", to, want)
	}
}
