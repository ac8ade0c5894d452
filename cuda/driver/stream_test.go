//go:build gpu && cgo

package driver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/nvrtc"
)

func compile(t testing.TB, c *driver.Context, name, source string, kernel string) *driver.Kernel {
	t.Helper()
	m, err := nvrtc.Compile(c, name, source)
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	k, err := m.Kernel(kernel)
	check(t, err)
	return k
}

func TestLaunch(t *testing.T) {
	c := open(t)
	k := compile(t, c, "arguments.cu", gputest.Arguments, "arguments")
	out := alloc(t, c, 48)
	check(t, c.Stream().Launch(k, driver.Dim{}, driver.Dim{}, 0, out.All(), int32(-3), uint32(1<<31), int64(-1<<40),
		uint64(1<<52), float32(0.25), 1e300))
	want := []float64{-3, 1 << 31, -1 << 40, 1 << 52, 0.25, 1e300}
	if got := gputest.Download[float64](t, out.All()); !slices.Equal(got, want) {
		t.Errorf("the kernel got %v, want %v", got, want)
	}
	if err := c.Stream().Launch(k, driver.Dim{}, driver.Dim{}, 0, 7); err == nil ||
		!strings.Contains(err.Error(), "argument 0 of kernel arguments: a int") {
		t.Errorf("an int: %v", err)
	}
	err := c.Stream().Launch(k, driver.Dim{}, driver.Dim{X: 1 << 20}, 0, out.All(), int32(0), uint32(0), int64(0),
		uint64(0), float32(0), 0.0)
	var e *driver.Error
	if !errors.As(err, &e) || e.Call != "cuLaunchKernel" || !strings.Contains(err.Error(), "block 1048576") {
		t.Errorf("a block that is too large: %v", err)
	}
}

func TestGrid(t *testing.T) {
	c := open(t)
	k := compile(t, c, "arguments.cu", gputest.Arguments, "number")
	out := alloc(t, c, 40)
	check(t, c.Stream().Fill(out.All(), 0))
	check(t, c.Stream().Launch(k, driver.Dim{X: 3}, driver.Dim{X: 4}, 0, out.All(), int32(10)))
	if got, want := gputest.Download[int32](t, out.All()),
		[]int32{0, 1, 2, 3, 10, 11, 12, 13, 20, 21}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEventsOrderStreams(t *testing.T) {
	c := open(t)
	other, err := c.NewStream()
	check(t, err)
	var events [2]*driver.Event
	for i := range events {
		events[i], err = c.NewEvent(true)
		check(t, err)
	}
	k := compile(t, c, "arguments.cu", gputest.Arguments, "number")
	m := alloc(t, c, 40)
	check(t, errors.Join(
		c.Stream().Fill(m.All(), 0),
		events[0].Record(c.Stream()),
		other.Wait(events[0]),
		other.Launch(k, driver.Dim{X: 3}, driver.Dim{X: 4}, 0, m.All(), int32(10)),
		events[1].Record(other),
		c.Stream().Wait(events[1]),
		c.Stream().Launch(k, driver.Dim{X: 3}, driver.Dim{X: 4}, 0, m.All(), int32(10)),
	))
	if got, want := gputest.Download[int32](t, m.Span(16, 24)),
		[]int32{20, 22, 24, 26, 40, 42}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	check(t, events[1].Synchronize())
	if d, err := events[1].Since(events[0]); err != nil || d < 0 {
		t.Errorf("%v between the events, %v", d, err)
	}
	check(t, errors.Join(events[0].Close(), events[1].Close(), other.Close()))
}

// Writing to address 0 loses the GPUs for the whole process: this context, others and new ones.
func TestLostContext(t *testing.T) {
	gputest.Need(t)
	gputest.Alone(t, "", func(string) { loseContext(t) })
	TestGrid(t) // the process can still use the GPU
}

func loseContext(t *testing.T) {
	other, err := driver.Open(0, driver.Options{KernelCache: gputest.KernelCache})
	check(t, err)
	c, err := driver.Open(0, driver.Options{KernelCache: gputest.KernelCache})
	check(t, err)
	m, err := c.Alloc(16)
	check(t, err)
	mod, err := nvrtc.Compile(c, "arguments.cu", gputest.Arguments)
	check(t, err)
	k, err := mod.Kernel("number")
	check(t, err)
	check(t, c.Stream().Launch(k, driver.Dim{}, driver.Dim{}, 0, driver.Span{}, int32(1)))
	err = c.Stream().Synchronize()
	var lost *driver.LostError
	if !errors.Is(err, driver.ErrLost) || !errors.As(err, &lost) || lost.Cause.Code != 700 ||
		!strings.Contains(err.Error(), "CUDA_ERROR_ILLEGAL_ADDRESS") {
		t.Errorf("after a write to address 0: %v", err)
	}
	if _, err := c.Alloc(8); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Alloc on a lost context: %v", err)
	}
	if err := other.Synchronize(); !errors.Is(err, driver.ErrLost) {
		t.Errorf("another context: %v", err)
	}
	check(t, errors.Join(m.Close(), mod.Close(), c.Close(), other.Close()))
	if _, err := driver.Open(0, driver.Options{}); !errors.As(err, &lost) ||
		!strings.Contains(err.Error(), "start another") {
		t.Errorf("a new context: %v", err)
	}
}
