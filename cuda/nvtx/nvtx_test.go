//go:build gpu && cgo

package nvtx_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/nvtx"
)

// A profiler's library that the environment names takes ranges and names; one that is missing takes nothing.
func TestRanges(t *testing.T) {
	gputest.Need(t)
	if !sim.Active() {
		t.Skip("the library that takes ranges is the stand-in's")
	}
	if !sim.Apart(t) && nvtx.On() {
		t.Error("ranges go somewhere without a profiler")
	}
	push := func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		nvtx.NameThread(unix.Gettid(), "calls")
		nvtx.NameStream(nil, "nets")
		nvtx.Push("step 1")
		nvtx.Push("forward")
		nvtx.Pop()
		nvtx.Push("backward")
		nvtx.Pop()
		nvtx.Pop()
	}
	t.Run("taken", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "ranges")
		sim.Alone(t, dir, func(string) {
			if !nvtx.On() {
				t.Error("no profiler")
			}
			push()
		}, sim.LogRanges(path)...)
		ranges, names, err := sim.Ranges(path)
		if err != nil || !slices.Equal(ranges, []string{"step 1", "step 1/forward", "step 1/backward"}) ||
			!slices.Equal(names, []string{"thread calls", "stream nets"}) {
			t.Errorf("%q, %q, %v", ranges, names, err)
		}
	})
	for name, path := range map[string]string{"missing": "/none.so", "refused": "./.", "not a profiler's": "libm.so.6"} {
		t.Run(name, func(t *testing.T) {
			sim.Alone(t, t.TempDir(), func(string) {
				if push(); nvtx.On() || os.Getenv(nvtx.Variable) == "" {
					t.Error("ranges go somewhere")
				}
			}, nvtx.Variable+"="+path)
		})
	}
}
