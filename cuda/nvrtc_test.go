//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onlinerna/cuda/lazy"
	"onlinerna/cuda/sim"
)

func TestChooseArch(t *testing.T) {
	known := []int{75, 80, 86, 90, 100, 120}
	for _, test := range []struct {
		gpu  int
		want string
	}{{75, "sm_75"}, {80, "sm_80"}, {89, "sm_86"}, {90, "sm_90"}, {103, "sm_100"}, {121, "sm_120"}, {130, "compute_120"}, {110, "compute_100"}} {
		if got, err := chooseArch(test.gpu, known); got != test.want || err != nil {
			t.Errorf("GPU %d: %s, %v, want %s", test.gpu, got, err, test.want)
		}
	}
	if _, err := chooseArch(70, known); err == nil || !strings.Contains(err.Error(), "starts at sm_75") {
		t.Errorf("GPU 70: %v", err)
	}
	if _, err := chooseArch(70, nil); err == nil {
		t.Error("no architectures are no error")
	}
}

func TestSourceErrors(t *testing.T) {
	c := open(t)
	_, err := c.Compile("bad.cu", "extern \"C\" __global__ void f(int *p) {\n\t*p = nonsense;\n}\n")
	var e *CompileError
	if !errors.As(err, &e) || e.Name != "bad.cu" || !strings.Contains(err.Error(), "nonsense") || !strings.Contains(e.Log, "2") {
		t.Errorf("a bad source: %v", err)
	}
	m, err := c.Compile("arguments.cu", arguments)
	check(t, err)
	defer m.Close()
	if _, err := m.Kernel("nothing"); err == nil || !strings.Contains(err.Error(), "nothing of arguments.cu") || !strings.Contains(err.Error(), "CUDA_ERROR_NOT_FOUND") {
		t.Errorf("a kernel that is not there: %v", err)
	}
}

func TestCompiledCodeIsKept(t *testing.T) {
	needGPU(t)
	folder := filepath.Join(t.TempDir(), "deep", "kernels")
	c := openWith(t, Options{KernelCache: folder})
	again := func(options ...string) []string {
		t.Helper()
		m, err := c.Compile("arguments.cu", arguments, options...)
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
	// Where nothing can be kept, kernels are compiled all the same.
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o644))
	d := openWith(t, Options{KernelCache: filepath.Join(file, "no folder")})
	m, err := d.Compile("arguments.cu", arguments)
	check(t, err)
	check(t, m.Close())
}

// The kernels compile for the GPUs that matter, whatever GPU is here. With NVIDIA's NVRTC and no driver, as in
// RNA_CUDA_LIBS=folder, this needs no GPU. (NVRTC 13.5 crashes in a process that has the stand-in's driver.)
func TestKernelsCompile(t *testing.T) {
	if err := lazy.NVRTC.Load(); err != nil {
		if os.Getenv(lazy.SearchVariable) != "" && os.Getenv(lazy.SearchVariable) != standIn {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	files, err := fs.Glob(kernels, "kernels/*.cu")
	check(t, err)
	type source struct {
		name, text string
		options    []string
	}
	sources := []source{{"arguments.cu", arguments, nil}}
	for _, path := range files {
		name := filepath.Base(path)
		if name == "rna.cu" {
			b, err := kernels.ReadFile(path)
			check(t, err)
			sources = append(sources, source{name, string(b), nil})
			continue
		}
		for store := range 3 {
			if sim.Active() && store > 0 {
				break // the tests of nets compile them
			}
			text, options, err := netSource(name, store)
			check(t, err)
			sources = append(sources, source{name, text, options})
		}
	}
	archs := []int{80, 90, 100}
	if sim.Active() {
		archs = archs[1:2] // they are all one to it
	}
	for _, arch := range archs {
		for _, x := range sources {
			t.Run(fmt.Sprintf("%s%s/%d", x.name, strings.Join(x.options, ""), arch), func(t *testing.T) {
				t.Parallel()
				p, err := newProgram(Info{Major: arch / 10, Minor: arch % 10}, x.name, x.text, x.options)
				check(t, err)
				image, err := p.compile()
				if err != nil || len(image) == 0 {
					t.Errorf("%d bytes, %v", len(image), err)
				}
				t.Logf("%s for %s by NVRTC %s: %d bytes", x.name, p.arch, p.compiler, len(image))
			})
		}
	}
}
