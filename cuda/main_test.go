//go:build gpu && cgo

package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"onlinerna/cuda/lazy"
	"onlinerna/cuda/sim"
)

// noGPU says why the tests that need a GPU or the stand-in cannot run; empty when they can.
var noGPU string

// kernelCache keeps the kernels that the tests compile.
var kernelCache string

// plannedLeaks is what the stand-in misses after the planned failure of functions that give things back.
var plannedLeaks string

// standIn is the folder of the stand-in, when it is used because there is nothing else.
var standIn string

// TestMain looks for the libraries where RNA_CUDA_LIBS says, then for a GPU, then for the stand-in that "make sim"
// builds. With ONLINERNA_GPU=require in the environment the tests fail when there is none of these.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	noGPU = findLibraries()
	if noGPU != "" && os.Getenv("ONLINERNA_GPU") == "require" {
		fmt.Fprintln(os.Stderr, noGPU)
		return 1
	}
	var err error
	if kernelCache, err = os.MkdirTemp("", "kernels"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(kernelCache)
	code := m.Run()
	if err := checkREADME(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if leaks := sim.Leaks(); leaks != plannedLeaks && code == 0 {
		fmt.Fprintln(os.Stderr, "leaked:", leaks)
		return 1
	}
	return code
}

func findLibraries() string {
	if os.Getenv(lazy.SearchVariable) == "" {
		if lazy.Driver.Load() != nil {
			var err error
			if standIn, err = filepath.Abs("../bin/sim"); err != nil {
				return err.Error()
			}
			os.Setenv(lazy.SearchVariable, standIn)
		}
	}
	for _, l := range []lazy.Library{lazy.Driver, lazy.CuBLAS, lazy.NVRTC} {
		if err := l.Load(); err != nil {
			return fmt.Sprintf("no GPU and no stand-in for one; \"make sim\" builds it (needs g++): %v", err)
		}
	}
	return ""
}

// needGPU skips a test that cannot run here.
func needGPU(t testing.TB) {
	t.Helper()
	if noGPU != "" {
		t.Skip(noGPU)
	}
}

// open opens GPU 0 for a test and checks at its end that everything was given back.
func open(t testing.TB) *Context {
	t.Helper()
	needGPU(t)
	return openWith(t, Options{KernelCache: kernelCache})
}

func openWith(t testing.TB, o Options) *Context {
	t.Helper()
	c, err := Open(0, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// alloc allocates memory and closes it at the test's end.
func alloc(t testing.TB, c *Context, bytes int64) *Memory {
	t.Helper()
	m, err := c.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, m.Close()) })
	return m
}

// upload allocates memory with the elements of s.
func upload[T Number](t testing.TB, c *Context, s []T) *Memory {
	t.Helper()
	m := alloc(t, c, int64(len(Bytes(s))))
	check(t, c.Stream().CopyIn(m.All(), Bytes(s)))
	return m
}

// download waits for the context's stream and reads s.
func download[T Number](t testing.TB, s Span) []T {
	t.Helper()
	var x T
	out := make([]T, s.Bytes()/int64(len(Bytes([]T{x}))))
	check(t, s.Context().Stream().CopyOut(Bytes(out), s))
	check(t, s.Context().Stream().Synchronize())
	return out
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
