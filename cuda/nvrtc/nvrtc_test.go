//go:build gpu && cgo

package nvrtc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
)

func TestChooseArch(t *testing.T) {
	known := []int{75, 80, 86, 90, 100, 120}
	for _, test := range []struct {
		gpu  int
		want string
	}{{75, "sm_75"}, {80, "sm_80"}, {89, "sm_86"}, {90, "sm_90"}, {103, "sm_100"}, {121, "sm_120"},
		{130, "compute_120"}, {110, "compute_100"}} {
		if got, err := chooseArch(test.gpu, known); got != test.want || err != nil {
			t.Errorf("GPU %d: %s, %v, want %s", test.gpu, got, err, test.want)
		}
	}
	if _, err := chooseArch(70, known); err == nil || !strings.Contains(err.Error(), "oldest architecture is sm_75") {
		t.Errorf("GPU 70: %v", err)
	}
	if _, err := chooseArch(70, nil); err == nil {
		t.Error("no architectures are no error")
	}
}

func TestSourceErrors(t *testing.T) {
	c := open(t)
	_, err := Compile(c, "bad.cu", "extern \"C\" __global__ void f(int *p) {\n\t*p = nonsense;\n}\n")
	var e *CompileError
	if !errors.As(err, &e) || e.Name != "bad.cu" || !strings.Contains(err.Error(), "nonsense") ||
		!strings.Contains(e.Log, "2") {
		t.Errorf("a bad source: %v", err)
	}
	m, err := Compile(c, "arguments.cu", gputest.Arguments)
	check(t, err)
	defer m.Close()
	if _, err := m.Kernel("nothing"); err == nil || !strings.Contains(err.Error(), "nothing of arguments.cu") ||
		!strings.Contains(err.Error(), "CUDA_ERROR_NOT_FOUND") {
		t.Errorf("a kernel that is not there: %v", err)
	}
}

func TestCompiledCodeIsKept(t *testing.T) {
	gputest.Need(t)
	folder := filepath.Join(t.TempDir(), "deep", "kernels")
	c := openWith(t, driver.Options{KernelCache: folder})
	again := func(options ...string) []string {
		t.Helper()
		m, err := Compile(c, "arguments.cu", gputest.Arguments, options...)
		check(t, err)
		_, err = m.Kernel("number")
		check(t, errors.Join(err, m.Close()))
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		check(t, err)
		return files
	}
	files := again()
	if len(files) != 1 {
		t.Fatalf("files %q", files)
	}
	good, err := os.ReadFile(files[0])
	check(t, err)
	old := time.Unix(1e9, 0)
	check(t, os.Chtimes(files[0], old, old))
	again()
	if stat, err := os.Stat(files[0]); err != nil || !stat.ModTime().Equal(old) {
		t.Errorf("the file is written again: %v", err)
	}
	damaged := append([]byte(nil), good...)
	damaged[len(damaged)/2] ^= 1
	for _, bad := range [][]byte{damaged, nil} {
		check(t, os.WriteFile(files[0], bad, 0o644))
		again()
		if now, err := os.ReadFile(files[0]); err != nil || len(now) != len(good) {
			t.Errorf("a damaged file is not replaced: %d bytes of %d, %v", len(now), len(good), err)
		}
	}
	if files := again("-DX=1"); len(files) != 2 {
		t.Errorf("other options give no other file: %q", files)
	}
	// Without a writable cache, kernels are compiled in each run.
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o644))
	d := openWith(t, driver.Options{KernelCache: filepath.Join(file, "no folder")})
	m, err := Compile(d, "arguments.cu", gputest.Arguments)
	check(t, err)
	check(t, m.Close())
}

func compiles(t *testing.T, c *driver.Context) {
	t.Helper()
	m, err := Compile(c, "arguments.cu", gputest.Arguments)
	check(t, err)
	check(t, m.Close())
}

func TestFaultOfCachedCode(t *testing.T) {
	c := open(t)
	fault(t, "")
	compiles(t, c)
	compiled := sim.Calls("nvrtcCompileProgram")
	compiles(t, c)
	if n := sim.Calls("nvrtcCompileProgram"); n != compiled {
		t.Errorf("compiled %d times more", n-compiled)
	}
	fault(t, "cuModuleLoadData@1=200") // the driver refuses it
	compiles(t, c)
	if n := sim.Calls("nvrtcCompileProgram"); n != compiled+1 {
		t.Errorf("compiled %d times more, want 1", n-compiled)
	}
}
