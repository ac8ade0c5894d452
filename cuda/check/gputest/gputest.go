//go:build gpu && cgo

// Package gputest is shared by the tests of the packages below cuda: the search for a GPU or its stand-in, the check
// for leaked memory, planned faults, and the table in docs/gpu.md of everything that has run. Only tests use it.
package gputest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
)

var (
	// KernelCache keeps a package's compiled test kernels.
	KernelCache string

	// PlannedLeaks lists the leaks that the stand-in reports after planned failures of freeing functions, as sim.Leaks
	// writes them.
	PlannedLeaks string

	// noGPU is the reason why tests that need a GPU or the stand-in cannot run, or empty.
	noGPU string

	// standIn is the folder of the stand-in if that is used for lack of a GPU.
	standIn string
)

// Main runs a package's tests, from its TestMain, and returns the exit code. It searches the libraries in
// RNA_CUDA_LIBS, then a GPU, then the stand-in that "make sim" builds. With ONLINERNA_GPU=require in the environment
// the tests fail if all are missing. The tests' notes must equal the table's rows with the given beginnings.
func Main(m *testing.M, rows ...string) int {
	noGPU = findLibraries()
	if noGPU != "" && os.Getenv("ONLINERNA_GPU") == "require" {
		fmt.Fprintln(os.Stderr, noGPU)
		return 1
	}
	if KernelCache = os.Getenv(kernelsVariable); KernelCache == "" {
		var err error
		if KernelCache, err = os.MkdirTemp("", "kernels"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(KernelCache)
	}
	code := m.Run()
	if err := checkTable(rows); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if leaks := sim.Leaks(); leaks != PlannedLeaks && code == 0 {
		fmt.Fprintln(os.Stderr, "leaked:", leaks)
		return 1
	}
	return code
}

// root is the folder of the module in which the tests run, or empty.
func root() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func findLibraries() string {
	if os.Getenv(lazy.SearchVariable) == "" && lazy.Driver.Load() != nil {
		standIn = filepath.Join(root(), "bin", "sim")
		os.Setenv(lazy.SearchVariable, standIn)
	}
	for _, l := range []lazy.Library{lazy.Driver, lazy.CuBLAS, lazy.NVRTC} {
		if err := l.Load(); err != nil {
			return fmt.Sprintf("no GPU and no stand-in for one; \"make sim\" builds it (needs g++): %v", err)
		}
	}
	return ""
}

// Need skips a test that cannot run here.
func Need(t testing.TB) {
	t.Helper()
	if noGPU != "" {
		t.Skip(noGPU)
	}
}

// NeedLibrary skips a test if a library is missing, or fails it if the library is required.
func NeedLibrary(t testing.TB, l lazy.Library) {
	t.Helper()
	if err := l.Load(); err != nil {
		if asked := os.Getenv(lazy.SearchVariable); os.Getenv("ONLINERNA_GPU") == "require" || asked != "" &&
			asked != standIn {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// NeedDNN skips a test if cuDNN is missing.
func NeedDNN(t testing.TB) {
	t.Helper()
	Need(t)
	NeedLibrary(t, lazy.CuDNN)
}

// Open opens GPU 0 for a test and checks at its end that everything was freed.
func Open(t testing.TB) *driver.Context {
	t.Helper()
	return OpenWith(t, driver.Options{KernelCache: KernelCache})
}

// OpenWith is Open with options.
func OpenWith(t testing.TB, o driver.Options) *driver.Context {
	t.Helper()
	Need(t)
	c, err := driver.Open(0, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Check(t, c.Close()) })
	return c
}

// Alloc allocates memory and closes it at the test's end.
func Alloc(t testing.TB, c *driver.Context, bytes int64) *driver.Memory {
	t.Helper()
	m, err := c.Alloc(bytes)
	Check(t, err)
	t.Cleanup(func() { Check(t, m.Close()) })
	return m
}

// Upload allocates memory with the elements of s.
func Upload[T driver.Number](t testing.TB, c *driver.Context, s []T) *driver.Memory {
	t.Helper()
	m := Alloc(t, c, int64(len(driver.Bytes(s))))
	Check(t, c.Stream().CopyIn(m.All(), driver.Bytes(s)))
	return m
}

// Download waits for the context's stream and reads s.
func Download[T driver.Number](t testing.TB, s driver.Span) []T {
	t.Helper()
	var x T
	out := make([]T, s.Bytes()/int64(len(driver.Bytes([]T{x}))))
	Check(t, s.Context().Stream().CopyOut(driver.Bytes(out), s))
	Check(t, s.Context().Stream().Synchronize())
	return out
}

// Check ends a test on an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Fault plans faults of the stand-in for the rest of the test. Tests with faults are named TestFault…, because a GPU
// cannot inject any.
func Fault(t *testing.T, plan string) {
	t.Helper()
	Need(t)
	if !sim.Active() {
		if os.Getenv("ONLINERNA_GPU") == "require" {
			t.Fatal("faults need the stand-in: leave these tests out with -test.skip '^TestFault'")
		}
		t.Skip("faults need the stand-in")
	}
	Check(t, sim.Fault(plan))
	t.Cleanup(func() { Check(t, sim.Fault("")) })
}

// Releases reports whether a function frees something, which leaks if the function fails.
func Releases(function string) bool {
	for _, word := range []string{"Free", "Destroy", "Release", "Unload"} {
		if strings.Contains(function, word) {
			return true
		}
	}
	return function == "cuCtxSynchronize"
}

// Arguments is a source with kernels that store their arguments and their position in the grid.
const Arguments = `
extern "C" __global__ void arguments(double *out, int a, unsigned b, long long c, unsigned long long d, float e, double f) {
	out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f;
}
extern "C" __global__ void number(int *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) out[i] += 10 * blockIdx.x + threadIdx.x;
}
`
