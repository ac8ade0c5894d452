//go:build gpu && cgo

package driver_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/driver"
)

func TestCopies(t *testing.T) {
	c := open(t)
	want := make([]float32, 5000)
	for i := range want {
		want[i] = float32(i) * 0.5
	}
	n := int64(len(driver.Bytes(want)))
	a, b := gputest.Upload(t, c, want), alloc(t, c, n)
	check(t, c.Stream().Fill(b.All(), 0xff))
	check(t, c.Stream().Copy(b.Span(4, n-8), a.Span(4, n-8)))
	got := gputest.Download[float32](t, b.All())
	if !math.IsNaN(float64(got[0])) || !math.IsNaN(float64(got[4999])) || !slices.Equal(got[1:4999], want[1:4999]) {
		t.Error("a copy of a span is not the span")
	}

	pinned, err := c.AllocHost(n + 3)
	check(t, err)
	h := driver.HostSlice[float32](pinned)
	if len(h) != len(want) || int64(len(pinned.Bytes())) != n+3 {
		t.Errorf("%d elements, %d bytes", len(h), len(pinned.Bytes()))
	}
	check(t, c.Stream().CopyOut(driver.Bytes(h), a.All()))
	check(t, c.Stream().Synchronize())
	if !slices.Equal(h, want) {
		t.Error("pinned memory differs from the copied bytes")
	}
	h[7] = -1
	check(t, c.Stream().CopyIn(b.All(), driver.Bytes(h)))
	if got := gputest.Download[float32](t, b.Span(28, 4)); got[0] != -1 {
		t.Errorf("read %v, want -1", got)
	}
	check(t, errors.Join(pinned.Close(), pinned.Close()))
}

func TestSizes(t *testing.T) {
	c := open(t)
	m := alloc(t, c, 16)
	s := c.Stream()
	for name, err := range map[string]error{
		"in":   s.CopyIn(m.All(), make([]byte, 15)),
		"out":  s.CopyOut(make([]byte, 17), m.All()),
		"copy": s.Copy(m.Span(0, 4), m.Span(4, 8)),
	} {
		if err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s of another size: %v", name, err)
		}
	}
	check(t, errors.Join(s.CopyIn(driver.Span{}, nil), s.CopyOut(nil, m.Span(16, 0)),
		s.Copy(driver.Span{}, driver.Span{}), s.Fill(driver.Span{}, 0)))
	for _, bytes := range []int64{0, -1} {
		if _, err := c.Alloc(bytes); err == nil {
			t.Errorf("%d bytes of device memory", bytes)
		}
		if _, err := c.AllocHost(bytes); err == nil {
			t.Errorf("%d bytes of pinned memory", bytes)
		}
	}
	for _, span := range [][2]int64{{-1, 2}, {0, 17}, {17, 0}, {8, 9}, {1, math.MaxInt64}, {0, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("span %v of 16 bytes", span)
				}
			}()
			m.Span(span[0], span[1])
		}()
	}
	if got := m.Span(4, 8).Span(2, 6); got != m.Span(6, 6) || got.Offset() != 6 || got.Bytes() != 6 {
		t.Errorf("span of a span: %+v", got)
	}
}

func TestOutOfMemory(t *testing.T) {
	c := open(t)
	held := alloc(t, c, 3<<20)
	m, err := c.Alloc(1 << 45)
	var out *driver.MemoryError
	if !errors.As(err, &out) || !errors.Is(err, driver.ErrOutOfMemory) || m != nil {
		t.Fatalf("32 TiB: %v", err)
	}
	if out.Asked < 1<<45 || out.Free <= 0 || out.Total < out.Free || out.Used < held.Bytes() {
		t.Errorf("%+v", out)
	}
	for _, want := range []string{"asked for 32.0 TiB", "are free", "holds 4.0 MiB", "CUDA_ERROR_OUT_OF_MEMORY"} {
		if !c.Options().ExactMemory && !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	check(t, c.Stream().Fill(held.All(), 1)) // the context is still usable
	check(t, c.Synchronize())
}

// address returns the memory's address.
func address(t *testing.T, c *driver.Context, m *driver.Memory) (at uintptr) {
	t.Helper()
	check(t, c.Do(func() (err error) {
		at, err = m.All().Address(c)
		return err
	}))
	return at
}

func TestFreedMemoryIsUsedAgain(t *testing.T) {
	gputest.Need(t)
	t.Setenv("RNA_CUDA_MEMORY", "")
	c := openWith(t, driver.Options{})
	stats := func() driver.MemoryStats {
		s, err := c.Stats()
		check(t, err)
		return s
	}
	a, err := c.Alloc(5000)
	check(t, err)
	at := address(t, c, a)
	check(t, errors.Join(a.Close(), a.Close()))
	if s := stats(); s != (driver.MemoryStats{Used: 0, Cached: 5120, Peak: 5120, Calls: 1}) {
		t.Errorf("after Close: %+v", s)
	}
	b := alloc(t, c, 4700)
	if s := stats(); address(t, c, b) != at || s != (driver.MemoryStats{Used: 5120, Cached: 0, Peak: 5120, Calls: 1}) {
		t.Errorf("a block of about the size is not used again: %+v", s)
	}
	alloc(t, c, 2000)
	if s := stats(); s.Used != 7168 || s.Calls != 2 {
		t.Errorf("after another allocation: %+v", s)
	}
	d, err := c.Alloc(3 << 20)
	check(t, err)
	check(t, d.Close())
	if s := stats(); s.Cached != 4<<20 {
		t.Errorf("%d bytes cached, want 4 MiB", s.Cached)
	}
	check(t, c.Trim())
	if s := stats(); s.Cached != 0 || s.Peak != 4<<20+7168 {
		t.Errorf("after Trim: %+v", s)
	}
}

func TestExactMemory(t *testing.T) {
	gputest.Need(t)
	c := openWith(t, driver.Options{ExactMemory: true})
	m, err := c.Alloc(5001)
	check(t, err)
	if s, _ := c.Stats(); s.Used != 5001 {
		t.Errorf("%+v", s)
	}
	check(t, m.Close())
	if s, _ := c.Stats(); s.Used != 0 || s.Cached != 0 {
		t.Errorf("after Close: %+v", s)
	}
}
