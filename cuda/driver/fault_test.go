//go:build gpu && cgo

package driver_test

import (
	"errors"
	"strings"
	"testing"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/nvrtc"
)

// everything makes every call of the package, in its own context.
func everything(t *testing.T, kernels string) (err error) {
	if _, err := driver.Devices(); err != nil {
		return err
	}
	c, err := driver.Open(0, driver.Options{KernelCache: kernels, ExactMemory: true})
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
	var events [2]*driver.Event
	for i := range events {
		if events[i], err = c.NewEvent(true); err != nil {
			return err
		}
	}
	mod, err := nvrtc.Compile(c, "arguments.cu", gputest.Arguments)
	if err != nil {
		return err
	}
	k, err := mod.Kernel("number")
	if err != nil {
		return err
	}
	b, err := blas.New(s)
	if err != nil {
		return err
	}
	_, _, err = c.MemInfo()
	for _, f := range []func() error{
		func() error { return err },
		func() error { return s.Fill(m.All(), 0) },
		func() error { return events[0].Record(s) },
		func() error { return s.Launch(k, driver.Dim{}, driver.Dim{}, 0, m.All(), int32(1)) },
		func() error { return s.CopyIn(m.All(), h.Bytes()) },
		func() error { return s.Copy(m.Span(0, 8), m.Span(8, 8)) },
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

// Each call fails once: the error names it, nothing leaks and the next run works.
func TestFaultOfEachCall(t *testing.T) {
	fault(t, "")
	check(t, everything(t, gputest.KernelCache))
	calls := `cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceTotalMem_v2 cuDeviceGetAttribute
		cuCtxSetCurrent cuCtxSynchronize cuMemGetInfo_v2 cuMemAlloc_v2
		cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuStreamWaitEvent
		cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventSynchronize cuEventElapsedTime cuMemcpyHtoDAsync_v2
		cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuModuleLoadData cuModuleUnload cuModuleGetFunction
		cuLaunchKernel cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags cuGraphDestroy cuGraphLaunch
		cuGraphExecDestroy`
	for _, f := range strings.Fields(calls) {
		faultOf(t, f, "400", "CUDA_ERROR_INVALID_HANDLE (400)")
	}
	for _, f := range strings.Fields("cublasCreate_v2 cublasDestroy_v2 cublasSetStream_v2 cublasDgemv_v2") {
		faultOf(t, f, "14", "CUBLAS_STATUS_INTERNAL_ERROR (14)")
	}
	for _, f := range strings.Fields("nvrtcCreateProgram nvrtcCompileProgram nvrtcGetCUBINSize nvrtcGetCUBIN") {
		faultOf(t, f, "11", "NVRTC_ERROR_INTERNAL_ERROR (11)")
	}
}

// The driver refuses a GPU's primary context, which a process asks for once; the next opening gets it.
func TestFaultOfPrimaryContext(t *testing.T) {
	fault(t, "")
	sim.Alone(t, "", func(string) {
		fault(t, "cuDevicePrimaryCtxRetain@1=400")
		if _, err := driver.Open(0, driver.Options{}); err == nil ||
			!strings.Contains(err.Error(), "cuDevicePrimaryCtxRetain") {
			t.Errorf("%v; want an error of cuDevicePrimaryCtxRetain", err)
		}
		for range 2 { // the second time with cuBLAS in the same primary context
			check(t, everything(t, gputest.KernelCache))
		}
		if n := sim.Calls("cuDevicePrimaryCtxRetain"); n != 2 {
			t.Errorf("%d calls of cuDevicePrimaryCtxRetain, want 2: the one that fails and one for the process", n)
		}
	})
}

func faultOf(t *testing.T, function, code, want string) {
	t.Run(function, func(t *testing.T) {
		before := sim.Leaks()
		kernels := gputest.KernelCache
		if strings.HasPrefix(function, "nvrtc") || function == "cuModuleLoadData" { // otherwise the call is retried
			kernels = t.TempDir()
		}
		fault(t, function+"@1="+code)
		err := everything(t, kernels)
		name, _, _ := strings.Cut(function, "_v")
		if err == nil || !strings.Contains(err.Error(), "cuda: "+name) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error of %s, %s", err, name, want)
		}
		check(t, sim.Fault(""))
		if after := sim.Leaks(); gputest.Releases(function) {
			gputest.PlannedLeaks = after
		} else if after != before {
			t.Errorf("leaked: %s", after)
		}
		check(t, everything(t, gputest.KernelCache))
	})
}

// The GPU fails at a call, or in the work that a call started, and every later call of this process fails. Nothing is
// freed then, since the freeing functions may never return: the stand-in ends a process that calls them.
func TestFaultLosesTheContext(t *testing.T) {
	for _, plan := range []string{
		"cuLaunchKernel@1=719,later", "cuLaunchKernel@1=719,sticky", "cuMemcpyHtoDAsync_v2@1=719,later",
		"cuStreamSynchronize@1=999,sticky", "cublasDgemv_v2@1=719,later", "cuMemAlloc_v2@1=226,sticky",
		"*@40=721,sticky",
	} {
		t.Run(plan, func(t *testing.T) {
			fault(t, "")
			gputest.Alone(t, "", func(string) {
				check(t, sim.Fault(plan))
				for range 2 {
					if err := everything(t, gputest.KernelCache); !errors.Is(err, driver.ErrLost) {
						t.Errorf("%v, want driver.ErrLost", err)
					}
					check(t, sim.Fault(""))
				}
			})
		})
	}
}

func TestFaultOutOfMemory(t *testing.T) {
	c := open(t)
	fault(t, "cuMemAlloc_v2@1=2")
	_, err := c.Alloc(1000)
	var out *driver.MemoryError
	if !errors.As(err, &out) || out.Free <= 0 || out.Host {
		t.Errorf("%v", err)
	}
	fault(t, "cuMemHostAlloc@1=2")
	if _, err = c.AllocHost(1000); !errors.As(err, &out) || !out.Host ||
		!strings.Contains(err.Error(), "asked for 1000 bytes") {
		t.Errorf("%v", err)
	}
	if c.Options().ExactMemory {
		return
	}
	// The cache of freed memory is emptied before an allocation fails.
	m, err := c.Alloc(1 << 20)
	check(t, err)
	check(t, m.Close())
	fault(t, "cuMemAlloc_v2@1=2")
	alloc(t, c, 2<<20)
	if s, err := c.Stats(); err != nil || s.Cached != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
