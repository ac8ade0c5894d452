//go:build gpu && cgo

package driver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/nvrtc"
)

// capture captures f from the context's stream and closes the graph at the test's end.
func capture(t *testing.T, c *driver.Context, f func() error) *driver.Graph {
	t.Helper()
	g, err := c.Stream().Capture(f)
	check(t, err)
	t.Cleanup(func() { check(t, g.Close()) })
	return g
}

func pinned(t *testing.T, c *driver.Context, bytes int64) *driver.HostMemory {
	t.Helper()
	h, err := c.AllocHost(bytes)
	check(t, err)
	t.Cleanup(func() { check(t, h.Close()) })
	return h
}

// Captured work runs at each launch on the memory's content at that time.
func TestGraph(t *testing.T) {
	c := open(t)
	k := compile(t, c, "arguments.cu", gputest.Arguments, "number")
	m, h := alloc(t, c, 16), pinned(t, c, 16)
	x := driver.HostSlice[int32](h)
	g := capture(t, c, func() error {
		return errors.Join(
			c.Stream().CopyIn(m.All(), h.Bytes()),
			c.Stream().Launch(k, driver.Dim{X: 2}, driver.Dim{X: 2}, 0, m.All(), int32(4)),
			c.Stream().CopyOut(h.Bytes(), m.All()),
		)
	})
	copy(x, []int32{1, 2, 3, 4})
	check(t, c.Synchronize())
	if !slices.Equal(x, []int32{1, 2, 3, 4}) {
		t.Errorf("%v after the capture: it ran", x)
	}
	for range 2 {
		check(t, g.Launch(c.Stream()))
	}
	check(t, c.Synchronize())
	// Each launch adds 0, 1, 10 and 11.
	if want := []int32{1, 4, 23, 26}; !slices.Equal(x, want) {
		t.Errorf("%v after two launches, want %v", x, want)
	}
	other := open(t)
	if err := g.Launch(other.Stream()); err == nil {
		t.Error("a launch on another context")
	}
	check(t, g.Close())
	if err := g.Launch(c.Stream()); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("a launch after Close: %v", err)
	}
}

// A graph becomes stale when its memory is closed, but not when other memory is.
func TestGraphOfClosedMemory(t *testing.T) {
	c := open(t)
	mine, other := alloc(t, c, 16), alloc(t, c, 16)
	g := capture(t, c, func() error { return c.Stream().Fill(mine.Span(4, 4), 1) })
	check(t, other.Close())
	check(t, g.Launch(c.Stream()))
	check(t, mine.Close())
	if err := g.Launch(c.Stream()); !errors.Is(err, driver.ErrStale) {
		t.Errorf("a launch after the memory's Close: %v", err)
	}
}

// Streams ordered by events are captured together.
func TestGraphOfTwoStreams(t *testing.T) {
	c := open(t)
	other, err := c.NewStream()
	check(t, err)
	e, err := c.NewEvent(false)
	check(t, err)
	k := compile(t, c, "arguments.cu", gputest.Arguments, "number")
	m := alloc(t, c, 8)
	g := capture(t, c, func() error {
		return errors.Join(
			c.Stream().Fill(m.All(), 0), e.Record(c.Stream()), other.Wait(e),
			other.Launch(k, driver.Dim{}, driver.Dim{X: 2}, 0, m.All(), int32(2)), e.Record(other), c.Stream().Wait(e),
			c.Stream().Launch(k, driver.Dim{}, driver.Dim{X: 2}, 0, m.All(), int32(2)),
		)
	})
	check(t, g.Launch(c.Stream()))
	if got := gputest.Download[int32](t, m.All()); !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("got %v, want [0 2]", got)
	}
	check(t, errors.Join(e.Close(), other.Close()))
}

// Forbidden calls make the capture fail and leave the stream usable.
func TestCaptureRefuses(t *testing.T) {
	gputest.Need(t)
	c := openWith(t, driver.Options{KernelCache: gputest.KernelCache, ExactMemory: true})
	s := c.Stream()
	m, e := alloc(t, c, 16), (*driver.Event)(nil)
	e, err := c.NewEvent(false)
	check(t, err)
	compile(t, c, "arguments.cu", gputest.Arguments, "number")
	want := errors.New("mine")
	const unsupported = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
	for name, test := range map[string]struct {
		f      func() error
		want   string
		strict bool // a real driver may accept it
	}{
		"allocation":    {func() error { _, err := c.Alloc(16); return err }, unsupported, false},
		"pinned memory": {func() error { _, err := c.AllocHost(16); return err }, unsupported, false},
		"stream":        {s.Synchronize, unsupported, false},
		"context":       {c.Synchronize, unsupported, false},
		"pageable in":   {func() error { return s.CopyIn(m.All(), make([]byte, 16)) }, unsupported, true},
		"pageable out":  {func() error { return s.CopyOut(make([]byte, 16), m.All()) }, unsupported, true},
		"module": {func() error { _, err := nvrtc.Compile(c, "arguments.cu", gputest.Arguments); return err },
			unsupported, true},
		"event": {func() error { return errors.Join(e.Record(s), e.Synchronize()) },
			"CUDA_ERROR_CAPTURED_EVENT", false},
		"a refusal unsaid": {func() error { _, _ = c.AllocHost(16); return nil },
			"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", false},
		"memory's Close": {m.Close, "Close of device memory inside a capture", false},
		"another capture": {func() error { _, err := s.Capture(func() error { return nil }); return err },
			"captures cannot be nested", false},
		"its own error": {func() error { return want }, "mine", false},
	} {
		if test.strict && !sim.Active() {
			continue
		}
		g, err := s.Capture(func() error { return errors.Join(s.Fill(m.All(), 1), test.f()) })
		if g != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
		check(t, s.Fill(m.All(), 2))
		check(t, s.Synchronize())
	}
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _ = s.Capture(func() error { panic("mine") })
	}()
	check(t, s.Synchronize())
	check(t, e.Close())
}

// A failure of any driver call ends the capture and leaks nothing.
func TestFaultOfCapture(t *testing.T) {
	fault(t, "")
	c := open(t)
	m := alloc(t, c, 16)
	fill := func() error { return c.Stream().Fill(m.All(), 1) }
	before := sim.Leaks()
	for _, f := range []string{"cuStreamBeginCapture_v2", "cuMemsetD8Async", "cuStreamEndCapture",
		"cuGraphInstantiateWithFlags", "cuGraphDestroy"} {
		check(t, sim.Fault(f+"@1=400"))
		g, err := c.Stream().Capture(fill)
		name, _, _ := strings.Cut(f, "_v")
		if g != nil || err == nil || !strings.Contains(err.Error(), "cuda: "+name) {
			t.Errorf("%s fails: %v", f, err)
		}
		check(t, sim.Fault(""))
		check(t, c.Synchronize())
		if after := sim.Leaks(); after != before {
			t.Errorf("%s: leaked: %s", f, after)
		}
	}
	g := capture(t, c, fill)
	check(t, sim.Fault("cuGraphLaunch@1=1"))
	if err := g.Launch(c.Stream()); err == nil || !strings.Contains(err.Error(), "cuGraphLaunch") {
		t.Errorf("cuGraphLaunch fails: %v", err)
	}
	check(t, sim.Fault(""))
	check(t, g.Launch(c.Stream()))
	check(t, c.Synchronize())
}
