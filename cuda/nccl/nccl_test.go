//go:build gpu && cgo

package nccl_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nccl"
)

// need skips a test without NCCL and returns the number of GPUs; the stand-in has any number.
func need(t *testing.T) int {
	t.Helper()
	gputest.Need(t)
	gputest.NeedLibrary(t, lazy.NCCL)
	all, err := driver.Devices()
	gputest.Check(t, err)
	if sim.Active() {
		return 64
	}
	return len(all)
}

var scenarios = map[string]func() error{
	"operations": joined(operations),
	"graph":      joined(graph),
	"graph left": joined(graphLeft),
	"mismatch":   joined(mismatch),
	"killed":     joined(killed),
	"same GPU": func() error {
		k, size, id := rank()
		c, err := driver.Open(0, driver.Options{})
		if err != nil {
			return err
		}
		var e *driver.Error
		if _, err = nccl.Join(c, id, k, size); !errors.As(err, &e) || e.Name != "ncclInvalidUsage" ||
			!strings.Contains(err.Error(), "Duplicate GPU") {
			return fmt.Errorf("the same GPU twice: %w", err)
		}
		return c.Close()
	},
	"missing": func() error {
		var missing *lazy.NotFoundError
		if _, err := nccl.NewID(); err != nil && (!errors.As(err, &missing) ||
			!strings.Contains(err.Error(), "libnccl.so.2") || !strings.Contains(err.Error(), "pip install")) {
			return fmt.Errorf("without NCCL: %w", err)
		}
		return nil
	},
	"too old": func() error {
		if _, err := nccl.NewID(); err == nil || !strings.Contains(err.Error(),
			"NCCL 2.13.0 is too old, needed is 2.18.0") {
			return fmt.Errorf("an old NCCL: %w", err)
		}
		return nil
	},
	"NVIDIA's": nvidia,
}

// number is element i of rank k: small integers, so that sums are exact in any order and type.
func number(k, i int) float64 { return float64((i*7+k*k*3)%11 - 5) }

// filled allocates n elements with the values of f; joined frees them.
func filled[T driver.Number](c *driver.Context, n int, f func(i int) T) (driver.Span, error) {
	x := make([]T, n)
	for i := range x {
		x[i] = f(i)
	}
	m, err := c.Alloc(int64(len(driver.Bytes(x))))
	if err != nil {
		return driver.Span{}, err
	}
	held = append(held, m)
	return m.All(), c.Stream().CopyIn(m.All(), driver.Bytes(x))
}

var held []*driver.Memory

// same returns an error if memory differs from f.
func same[T driver.Number](what string, s driver.Span, f func(i int) T) error {
	var one T
	x := make([]T, int(s.Bytes())/len(driver.Bytes([]T{one})))
	if err := s.Context().Stream().CopyOut(driver.Bytes(x), s); err != nil {
		return err
	}
	for i, v := range x {
		if v != f(i) {
			return fmt.Errorf("%s: element %d of %d is %v, want %v", what, i, len(x), v, f(i))
		}
	}
	return nil
}

// half and brain convert small integers to 16-bit formats.
func half(x float64) uint16 {
	b := math.Float32bits(float32(x))
	if x == 0 {
		return 0
	}
	return uint16(b>>16&0x8000 | (b>>23&0xff-112)<<10 | b>>13&0x3ff)
}
func brain(x float64) uint16 { return uint16(math.Float32bits(float32(x)) >> 16) }

func operations(c *driver.Context, m *nccl.Comm) error {
	s, k, size := c.Stream(), m.Rank(), m.Size()
	total := func(i int) (sum float64) {
		for k := range size {
			sum += number(k, i)
		}
		return sum
	}
	largest := func(i int) float64 {
		most := number(0, i)
		for k := range size {
			most = max(most, number(k, i))
		}
		return most
	}
	for _, n := range []int{1, 3, 1000, 40_000} {
		for _, err := range []error{
			reduce(c, m, n, nccl.Float32, nccl.Sum, func(i int) float32 { return float32(number(k, i)) },
				func(i int) float32 { return float32(total(i)) }),
			reduce(c, m, n, nccl.Float64, nccl.Sum, func(i int) float64 { return number(k, i) }, total),
			reduce(c, m, n, nccl.Float64, nccl.Max, func(i int) float64 { return number(k, i) }, largest),
			reduce(c, m, n, nccl.Int64, nccl.Max, func(i int) int64 { return int64(number(k, i)) },
				func(i int) int64 { return int64(largest(i)) }),
			reduce(c, m, n, nccl.Float16, nccl.Sum, func(i int) uint16 { return half(number(k, i)) },
				func(i int) uint16 { return half(total(i)) }),
			reduce(c, m, n, nccl.BFloat16, nccl.Sum, func(i int) uint16 { return brain(number(k, i)) },
				func(i int) uint16 { return brain(total(i)) }),
		} {
			if err != nil {
				return err
			}
		}
		all, err := filled(c, n*size, func(i int) int64 { return int64(k*1e6 + i) })
		if err != nil {
			return err
		}
		if err := m.AllGather(s, all, all.Span(8*int64(n*k), 8*int64(n)), nccl.Int64); err != nil {
			return err
		}
		if err := same("gather", all, func(i int) int64 { return int64(i/n*1e6 + i) }); err != nil {
			return err
		}
		for from := range size {
			x, err := filled(c, n, func(i int) float32 { return float32(number(k+1, i)) })
			if err != nil {
				return err
			}
			if err := m.Broadcast(s, x, nccl.Float32, from); err != nil {
				return err
			}
			if err := same("broadcast", x, func(i int) float32 { return float32(number(from+1, i)) }); err != nil {
				return err
			}
		}
		// All to all: part p of this rank's elements goes to rank p.
		out, err := filled(c, n*size, func(i int) int64 { return int64(k*1e6 + i/n*1e7 + i%n) })
		if err != nil {
			return err
		}
		in, err := filled(c, n*size, func(int) int64 { return 0 })
		if err != nil {
			return err
		}
		err = m.Group(func() error {
			for p := range size {
				part := int64(8 * n)
				if err := errors.Join(m.Send(s, out.Span(part*int64(p), part), nccl.Int64, p),
					m.Recv(s, in.Span(part*int64(p), part), nccl.Int64, p)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := same("each to each", in, func(i int) int64 { return int64(i/n*1e6 + k*1e7 + i%n) }); err != nil {
			return err
		}
	}
	if v, err := nccl.Version(); err != nil || !strings.HasPrefix(v, "2.") {
		return fmt.Errorf("version %s: %w", v, err)
	}
	x, err := filled(c, 3, func(int) float32 { return 1 })
	if err != nil {
		return err
	}
	if err := m.AllReduce(s, x, nccl.Float64, nccl.Sum); err == nil ||
		!strings.Contains(err.Error(), "elements have 8") {
		return fmt.Errorf("12 bytes as float64: %w", err)
	}
	var e *driver.Error
	if err := m.Broadcast(s, x, nccl.Float32, size); !errors.As(err, &e) || e.Name != "ncclInvalidArgument" {
		return fmt.Errorf("a broadcast of no rank: %w", err)
	}
	if err := m.Failed(); err != nil {
		return err
	}
	// All ranks are there up to the last sum.
	return reduce(c, m, 3, nccl.Int64, nccl.Max, func(i int) int64 { return int64(k) }, func(int) int64 {
		return int64(size - 1)
	})
}

// graphLeft closes the communicator before a graph that holds its operations.
func graphLeft(c *driver.Context, m *nccl.Comm) error {
	x, err := filled(c, 1, func(int) float32 { return 1 })
	if err != nil {
		return err
	}
	sum := func() error { return m.AllReduce(c.Stream(), x, nccl.Float32, nccl.Sum) }
	if err := sum(); err != nil {
		return err
	}
	if _, err := c.Stream().Capture(sum); err != nil {
		return err
	}
	return m.Close()
}

// reduce combines x of all ranks and returns an error if the result is not want.
func reduce[T driver.Number](c *driver.Context, m *nccl.Comm, n int, t nccl.Type, op nccl.Op, x,
	want func(i int) T) error {
	s, err := filled(c, n, x)
	if err == nil {
		err = m.AllReduce(c.Stream(), s, t, op)
	}
	if err != nil {
		return err
	}
	return same(fmt.Sprintf("type %d, op %d", t, op), s, want)
}

// graph sums on a second stream in a captured graph, which runs three times.
func graph(c *driver.Context, m *nccl.Comm) error {
	s := c.Stream()
	x, err := filled(c, 100, func(i int) float32 { return float32(i) })
	if err != nil {
		return err
	}
	beside, err := c.NewStream()
	if err != nil {
		return err
	}
	defer beside.Close()
	e, err := c.NewEvent(false)
	if err != nil {
		return err
	}
	defer e.Close()
	sum := func() error {
		for _, f := range []func() error{
			func() error { return e.Record(s) }, func() error { return beside.Wait(e) },
			func() error { return m.AllReduce(beside, x, nccl.Float32, nccl.Sum) },
			func() error { return e.Record(beside) }, func() error { return s.Wait(e) },
		} {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := sum(); err != nil { // NCCL connects outside captures
		return err
	}
	g, err := s.Capture(sum)
	if err != nil {
		return err
	}
	defer g.Close()
	power := float32(m.Size())
	for range 3 {
		if err := same("graph", x, func(i int) float32 { return float32(i) * power }); err != nil {
			return err
		}
		if err := g.Launch(s); err != nil {
			return err
		}
		power *= float32(m.Size())
	}
	return s.Synchronize()
}

// abortSoon aborts a communicator from another goroutine and sends the error that NCCL had reported by then.
func abortSoon(m *nccl.Comm, until func() bool) chan error {
	found := make(chan error, 1)
	go func() {
		for from := time.Now(); time.Since(from) < 20*time.Second && !until(); {
			time.Sleep(10 * time.Millisecond)
		}
		err := m.Failed()
		if end := m.Abort(); end != nil {
			err = fmt.Errorf("abort: %w", end)
		}
		found <- err
	}()
	return found
}

// mismatch makes the ranks sum vectors of different lengths: they hang until they are aborted.
func mismatch(c *driver.Context, m *nccl.Comm) error {
	x, err := filled(c, 10+m.Rank(), func(int) float32 { return 1 })
	if err == nil {
		err = m.AllReduce(c.Stream(), x, nccl.Float32, nccl.Sum)
	}
	if err != nil {
		return err
	}
	from := time.Now()
	found := abortSoon(m, func() bool { return time.Since(from) > 300*time.Millisecond })
	if err := c.Stream().Synchronize(); err != nil {
		return err
	}
	if took := time.Since(from); took < 300*time.Millisecond {
		return fmt.Errorf("sums of different lengths are done after %v", took)
	}
	if err := <-found; err != nil && !strings.Contains(err.Error(), "ncclRemoteError") {
		// another rank may have ended already
		return err
	}
	return nil
}

// killed kills rank 1: NCCL reports it on the others, which hang until they are aborted.
func killed(c *driver.Context, m *nccl.Comm) error {
	if m.Rank() == 1 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	x, err := filled(c, 10, func(int) float32 { return 1 })
	if err == nil {
		err = m.AllReduce(c.Stream(), x, nccl.Float32, nccl.Sum)
	}
	var e *driver.Error
	if errors.As(err, &e) && e.Name == "ncclRemoteError" { // already reported
		return nil
	}
	if err != nil {
		return err
	}
	found := abortSoon(m, func() bool { return m.Failed() != nil })
	if err := c.Stream().Synchronize(); err != nil {
		return err
	}
	if err := <-found; !errors.As(err, &e) || e.Name != "ncclRemoteError" {
		return fmt.Errorf("a rank was killed: %w", err)
	}
	return nil
}

func TestOperations(t *testing.T) {
	for ranks := 1; ranks <= min(need(t), 3); ranks++ {
		for k, said := range onRanks(t, "operations", ranks) {
			if said != "ok" {
				t.Errorf("rank %d of %d: %s", k, ranks, said)
			}
		}
	}
}

func TestGraph(t *testing.T) {
	for k, said := range onRanks(t, "graph", min(need(t), 2)) {
		if said != "ok" {
			t.Errorf("rank %d: %s", k, said)
		}
	}
}

// Failures between ranks: the stand-in fails as NCCL does.
func TestFaultOfRanks(t *testing.T) {
	gputest.Fault(t, "") // faults need the stand-in
	for _, name := range []string{"mismatch", "killed", "same GPU"} {
		for k, said := range onRanks(t, name, 3) {
			if said != "ok" && !(name == "killed" && k == 1) {
				t.Errorf("%s, rank %d: %s", name, k, said)
			}
		}
	}
	for _, said := range onRanks(t, "graph left", 1) {
		if !strings.Contains(said, "ncclCommDestroy waits for ever for graphs") {
			t.Errorf("a communicator closed before its graph: %s", said)
		}
	}
	if said, _ := process("too old", "RNA_SIM_NCCL=21300"); said != "ok" {
		t.Error(said)
	}
}

func TestMissing(t *testing.T) {
	if said, _ := process("missing", lazy.SearchVariable+"=/nowhere"); said != "ok" {
		t.Error(said)
	}
}

// nvidia calls the functions of a library that work without a GPU.
func nvidia() error {
	v, err := nccl.Version()
	if err != nil {
		return err
	}
	if want := os.Getenv("NCCL_TEST_VERSION"); want != "" && v != want {
		return fmt.Errorf("version %s, want %s", v, want)
	}
	a, err := nccl.NewID()
	if err != nil {
		return err
	}
	b, err := nccl.NewID()
	if err != nil || a == b || a == (nccl.ID{}) {
		return fmt.Errorf("IDs %x and %x: %w", a, b, err)
	}
	return nil
}

// The loaded library, and NVIDIA's own if "make check-nccl" has downloaded it, answer as far as they can without a GPU.
func TestWithoutGPU(t *testing.T) {
	need(t)
	if said, err := process("NVIDIA's"); said != "ok" {
		t.Error(said, err)
	}
	cache, err := os.UserCacheDir()
	gputest.Check(t, err)
	folders, err := filepath.Glob(filepath.Join(cache, "onlinerna", "nccl-*"))
	gputest.Check(t, err)
	for _, f := range folders {
		version := strings.TrimPrefix(filepath.Base(f), "nccl-")
		said, err := process("NVIDIA's", lazy.SearchVariable+"="+f, "NCCL_TEST_VERSION="+version)
		if said != "ok" {
			t.Errorf("NCCL %s: %s, %v", version, said, err)
		}
		t.Logf("NVIDIA's NCCL %s answers: %s", version, said)
	}
}
