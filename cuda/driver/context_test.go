//go:build gpu && cgo

package driver_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/driver"
)

func TestDevices(t *testing.T) {
	gputest.Need(t)
	all, err := driver.Devices()
	check(t, err)
	for i, d := range all {
		if d.Ordinal != i || d.Name == "" || d.Major < 3 || d.Memory <= 0 || d.Multiprocessors <= 0 ||
			!strings.HasPrefix(d.Arch(), "sm_") {
			t.Errorf("%+v", d)
		}
	}
	c := open(t)
	if c.Info() != all[0] {
		t.Errorf("the context is on %v, want %v", c.Info(), all[0])
	}
	free, total, err := c.MemInfo()
	if err != nil || free <= 0 || total < free {
		t.Errorf("%d of %d bytes free, %v", free, total, err)
	}
}

func TestNoSuchDevice(t *testing.T) {
	gputest.Need(t)
	all, err := driver.Devices()
	check(t, err)
	for _, n := range []int{-1, len(all)} {
		var none *driver.NoDeviceError
		if _, err := driver.Open(n, driver.Options{}); !errors.As(err, &none) || len(none.Devices) != len(all) ||
			!strings.Contains(err.Error(), all[0].Name) {
			t.Errorf("GPU %d: %v", n, err)
		}
	}
}

func TestDo(t *testing.T) {
	c := open(t)
	want := errors.New("mine")
	err := c.Do(func() error {
		// Nested calls run at once, on the same thread.
		m, err := c.Alloc(4)
		if err != nil {
			return err
		}
		return errors.Join(c.Do(func() error { return want }), m.Close())
	})
	if !errors.Is(err, want) {
		t.Errorf("Do returns %v", err)
	}
	if err := c.Do(c.Close); err == nil || !strings.Contains(err.Error(), "inside the context's own Do") {
		t.Errorf("Close inside Do: %v", err)
	}
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = c.Do(func() error { panic("mine") })
	}()
	// A function that ends its goroutine, as FailNow does, panics in the caller and leaves the context usable.
	m := alloc(t, c, 8)
	func() {
		defer func() {
			if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "Goexit") {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = c.Do(func() error { runtime.Goexit(); return nil })
	}()
	check(t, c.Do(func() error { return c.Stream().Fill(m.All(), 0) }))
	check(t, c.Synchronize())
}

func TestManyGoroutines(t *testing.T) {
	c := open(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s, err := c.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for i := range 5 {
				want := []int32{int32(g), int32(i), int32(g * i)}
				m, err := c.Alloc(12)
				if err != nil {
					t.Error(err)
					return
				}
				got := make([]int32, 3)
				if err := errors.Join(s.CopyIn(m.All(), driver.Bytes(want)), s.CopyOut(driver.Bytes(got), m.All()),
					s.Synchronize(), m.Close()); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestClose(t *testing.T) {
	gputest.Need(t)
	c, err := driver.Open(0, driver.Options{})
	check(t, err)
	m, err := c.Alloc(64)
	check(t, err)
	h, err := c.AllocHost(64)
	check(t, err)
	s, err := c.NewStream()
	check(t, err)
	_, err = c.NewEvent(false)
	check(t, err)
	_, err = blas.New(s)
	check(t, err)
	err = c.Close()
	for _, kind := range []string{"device memory", "pinned host memory", "stream", "event", "cuBLAS handle"} {
		if err == nil || !strings.Contains(err.Error(), "closed with 1 × "+kind+" left open") {
			t.Errorf("Close with an open %s: %v", kind, err)
		}
	}
	check(t, errors.Join(c.Close(), m.Close(), h.Close(), s.Close()))
	if _, err := c.Alloc(1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Alloc after Close: %v", err)
	}
	if err := c.Stream().Synchronize(); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Synchronize after Close: %v", err)
	}
}

func TestUseAfterClose(t *testing.T) {
	c := open(t)
	s, err := c.NewStream()
	check(t, err)
	e, err := c.NewEvent(true)
	check(t, err)
	b, err := blas.New(s)
	check(t, err)
	m, err := c.Alloc(8)
	check(t, err)
	live := alloc(t, c, 8)
	check(t, errors.Join(b.Close(), e.Close(), m.Close()))
	for name, err := range map[string]error{
		"memory": c.Stream().Fill(m.All(), 0),
		"event":  e.Record(s),
		"wait":   s.Wait(e),
		"BLAS":   b.Dgemv(false, 1, 1, 1, live.All(), 1, live.All(), 1, 0, live.All(), 1),
	} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	check(t, s.Close())
	if err := s.Fill(live.All(), 0); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("stream after Close: %v", err)
	}
}

func TestOtherContext(t *testing.T) {
	a, b := open(t), open(t)
	m := alloc(t, a, 8)
	if err := b.Stream().Fill(m.All(), 0); err == nil || !strings.Contains(err.Error(), "another context") {
		t.Errorf("memory of another context: %v", err)
	}
	// Closing one context leaves another one's memory alone.
	c := open(t)
	want := []float64{1, 2, 3}
	n := gputest.Upload(t, c, want)
	d, err := driver.Open(0, driver.Options{})
	check(t, err)
	check(t, d.Close())
	if got := gputest.Download[float64](t, n.All()); !slices.Equal(got, want) {
		t.Errorf("after another context's Close: %v, want %v", got, want)
	}
}
