//go:build gpu && cgo

package cuda

import (
	"errors"
	"os"
	"strings"
	"testing"

	"onlinerna/cuda/sim"
)

// fault plans faults of the stand-in for the rest of the test. Tests with faults are named TestFault…: a GPU has none
// to plan.
func fault(t *testing.T, plan string) {
	t.Helper()
	needGPU(t)
	if !sim.Active() {
		if os.Getenv("ONLINERNA_GPU") == "require" {
			t.Fatal("faults need the stand-in: leave these tests out with -test.skip '^TestFault'")
		}
		t.Skip("faults need the stand-in")
	}
	check(t, sim.Fault(plan))
	t.Cleanup(func() { check(t, sim.Fault("")) })
}

// everything makes every call that the package has, in a context of its own.
func everything(t *testing.T, kernels string) (err error) {
	if _, err := Devices(); err != nil {
		return err
	}
	c, err := Open(0, Options{KernelCache: kernels, ExactMemory: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	m, err := c.Alloc(48)
	if err != nil {
		return err
	}
	h, err := c.AllocHost(48)
	if err != nil {
		return err
	}
	s, err := c.NewStream()
	if err != nil {
		return err
	}
	var events [2]*Event
	for i := range events {
		if events[i], err = c.NewEvent(true); err != nil {
			return err
		}
	}
	mod, err := c.Compile("arguments.cu", arguments)
	if err != nil {
		return err
	}
	k, err := mod.Kernel("number")
	if err != nil {
		return err
	}
	b, err := c.NewBLAS(s)
	if err != nil {
		return err
	}
	_, _, err = c.MemInfo()
	for _, f := range []func() error{
		func() error { return err },
		func() error { return s.Fill(m.All(), 0) },
		func() error { return events[0].Record(s) },
		func() error { return s.Launch(k, Dim{}, Dim{}, 0, m.All(), int32(1)) },
		func() error { return s.CopyIn(m.All(), h.Bytes()) },
		func() error { return s.Copy(m.Span(0, 8), m.Span(8, 8)) },
		func() error {
			return b.Dgemm(false, false, 1, 1, 1, 1, m.Span(0, 8), 1, m.Span(8, 8), 1, 0, m.Span(16, 8), 1)
		},
		func() error {
			return b.Dgemv(false, 1, 1, 1, m.Span(0, 8), 1, m.Span(8, 8), 1, 0, m.Span(16, 8), 1)
		},
		func() error { return s.CopyOut(h.Bytes(), m.All()) },
		func() error { return events[1].Record(s) },
		func() error { return c.Stream().Wait(events[1]) },
		s.Synchronize,
		func() error {
			g, err := s.Capture(func() error { return s.Fill(m.All(), 1) })
			if err != nil {
				return err
			}
			return errors.Join(g.Launch(s), g.Close())
		},
		events[1].Synchronize,
		func() error { _, err := events[1].Since(events[0]); return err },
		c.Synchronize,
		b.Close, mod.Close, events[0].Close, events[1].Close, s.Close, h.Close, m.Close,
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// Each call fails once: the error names it, nothing leaks and the next run is none the worse.
func TestFaultOfEachCall(t *testing.T) {
	fault(t, "")
	check(t, everything(t, kernelCache))
	driver := `cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceTotalMem_v2 cuDeviceGetAttribute
		cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuCtxSynchronize cuMemGetInfo_v2 cuMemAlloc_v2
		cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuStreamWaitEvent
		cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventSynchronize cuEventElapsedTime cuMemcpyHtoDAsync_v2
		cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuModuleLoadData cuModuleUnload cuModuleGetFunction
		cuLaunchKernel cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags cuGraphDestroy cuGraphLaunch
		cuGraphExecDestroy`
	for _, f := range strings.Fields(driver) {
		faultOf(t, f, "400", "CUDA_ERROR_INVALID_HANDLE (400)")
	}
	for _, f := range strings.Fields("cublasCreate_v2 cublasDestroy_v2 cublasSetStream_v2 cublasDgemm_v2 cublasDgemv_v2") {
		faultOf(t, f, "14", "CUBLAS_STATUS_INTERNAL_ERROR (14)")
	}
	for _, f := range strings.Fields("nvrtcCreateProgram nvrtcCompileProgram nvrtcGetCUBINSize nvrtcGetCUBIN") {
		faultOf(t, f, "11", "NVRTC_ERROR_INTERNAL_ERROR (11)")
	}
}

func faultOf(t *testing.T, function, code, want string) {
	t.Run(function, func(t *testing.T) {
		before := sim.Leaks()
		kernels := kernelCache
		if strings.HasPrefix(function, "nvrtc") || function == "cuModuleLoadData" { // else it is tried again
			kernels = t.TempDir()
		}
		fault(t, function+"@1="+code)
		err := everything(t, kernels)
		name, _, _ := strings.Cut(function, "_v")
		if err == nil || !strings.Contains(err.Error(), "cuda: "+name) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error of %s, %s", err, name, want)
		}
		check(t, sim.Fault(""))
		if after := sim.Leaks(); releases(function) {
			plannedLeaks = after
		} else if after != before {
			t.Errorf("leaked: %s", after)
		}
		check(t, everything(t, kernelCache))
	})
}

// releases reports whether a function gives something back: when it fails, that is gone.
func releases(function string) bool {
	return strings.Contains(function, "Free") || strings.Contains(function, "Destroy") || strings.Contains(function, "Release") ||
		strings.Contains(function, "Unload") || function == "cuCtxSynchronize"
}

// The GPU fails at a call, or in the work that a call started, and nothing succeeds any more until the context is closed.
func TestFaultLosesTheContext(t *testing.T) {
	for _, plan := range []string{
		"cuLaunchKernel@1=719,later", "cuLaunchKernel@1=719,sticky", "cuMemcpyHtoDAsync_v2@1=719,later",
		"cuStreamSynchronize@1=999,sticky", "cublasDgemm_v2@1=719,later", "cuMemAlloc_v2@1=719,sticky", "*@40=999,sticky",
	} {
		t.Run(plan, func(t *testing.T) {
			fault(t, plan)
			if err := everything(t, kernelCache); !errors.Is(err, ErrLost) {
				t.Errorf("%v, want ErrLost", err)
			}
			check(t, sim.Fault(""))
			check(t, everything(t, kernelCache))
		})
	}
}

func TestFaultOutOfMemory(t *testing.T) {
	c := open(t)
	fault(t, "cuMemAlloc_v2@1=2")
	_, err := c.Alloc(1000)
	var out *MemoryError
	if !errors.As(err, &out) || out.Free <= 0 || out.Host {
		t.Errorf("%v", err)
	}
	fault(t, "cuMemHostAlloc@1=2")
	if _, err = c.AllocHost(1000); !errors.As(err, &out) || !out.Host || !strings.Contains(err.Error(), "asked for 1000 bytes") {
		t.Errorf("%v", err)
	}
	if c.opts.ExactMemory {
		return
	}
	// The cache of freed memory is given back before an allocation fails.
	m, err := c.Alloc(1 << 20)
	check(t, err)
	check(t, m.Close())
	fault(t, "cuMemAlloc_v2@1=2")
	alloc(t, c, 2<<20)
	if s, err := c.Stats(); err != nil || s.Cached != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// cu/blas answers nothing any more after an error: the handle is made anew.
func TestFaultOfBLASIsNotSticky(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	check(t, b.SetWorkspace(alloc(t, c, 4096).All()))
	set := sim.Calls("cublasSetWorkspace_v2")
	m := upload(t, c, []float64{3, 0})
	dgemm := func() error {
		return b.Dgemm(false, false, 1, 1, 1, 1, m.Span(0, 8), 1, m.Span(0, 8), 1, 0, m.Span(8, 8), 1)
	}
	fault(t, "cublasDgemm_v2@1=13")
	var e *Error
	if err := dgemm(); !errors.As(err, &e) || e.Name != "CUBLAS_STATUS_EXECUTION_FAILED" || !strings.Contains(err.Error(), "1×1 = 1×1 · 1×1") {
		t.Errorf("%v", err)
	}
	check(t, dgemm())
	if got := download[float64](t, m.All()); got[1] != 9 {
		t.Errorf("got %v, want 9", got[1])
	}
	if n := sim.Calls("cublasSetWorkspace_v2") - set; n != 1 {
		t.Errorf("the new handle was given the workspace %d times", n)
	}
}

func TestFaultOfCachedCode(t *testing.T) {
	c := open(t)
	fault(t, "")
	compile(t, c, "arguments.cu", arguments, "number")
	compiled := sim.Calls("nvrtcCompileProgram")
	compile(t, c, "arguments.cu", arguments, "number")
	if n := sim.Calls("nvrtcCompileProgram"); n != compiled {
		t.Errorf("compiled %d times more", n-compiled)
	}
	fault(t, "cuModuleLoadData@1=200") // the driver refuses it
	compile(t, c, "arguments.cu", arguments, "number")
	if n := sim.Calls("nvrtcCompileProgram"); n != compiled+1 {
		t.Errorf("compiled %d times more, want 1", n-compiled)
	}
}
