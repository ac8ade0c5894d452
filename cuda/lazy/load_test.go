//go:build gpu && cgo

package lazy_test

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/lazy"
)

// TestMain runs a single named scenario in its own process, because libraries stay loaded.
func TestMain(m *testing.M) {
	if name := os.Getenv("LAZY_SCENARIO"); name != "" {
		if err := scenarios[name](); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Print("ok")
		return
	}
	os.Exit(m.Run())
}

var scenarios = map[string]func() error{
	// cu calls a function before anything is loaded: the trampoline loads the driver and passes the arguments on.
	"first call": func() error {
		n, err := cu.NumDevices()
		if err != nil || n != 41 {
			return fmt.Errorf("%d devices, %v; want 41: one cuInit, and kernels loaded lazily", n, err)
		}
		if n, _ = cu.NumDevices(); n != 41 {
			return fmt.Errorf("%d devices at the second call", n)
		}
		return nil
	},
	// The user's choice of how kernels are loaded stays.
	"eager": func() error {
		if n, err := cu.NumDevices(); err != nil || n != 141 {
			return fmt.Errorf("%d devices, %v; want 141: the driver loads kernels eagerly", n, err)
		}
		return nil
	},
	"arguments": func() error {
		// The first call searches the function, the second one goes to it directly.
		for i := range 2 {
			if err := (cu.TexRef{}).SetMipmapLevelClamp(1.5, -2.25); err != nil {
				return fmt.Errorf("floats, call %d: %w", i, err)
			}
			a, b := uint64(8), 9.5
			params := []unsafe.Pointer{unsafe.Pointer(&a), unsafe.Pointer(&b)}
			if err := (cu.Function{}).Launch(1, 2, 3, 4, 5, 6, 7, cu.NoStream, params); err != nil {
				return fmt.Errorf("arguments on the stack, call %d: %w", i, err)
			}
			if v, err := blas.Version(); v != "40.41.42" || err != nil {
				return fmt.Errorf("cuBLAS, call %d: version %q, %w", i, v, err)
			}
		}
		if f := lazy.Driver.File(); filepath.Base(f) != "libcuda.so.1" || !filepath.IsAbs(f) {
			return fmt.Errorf("the driver's file is %q", f)
		}
		if v := lazy.DriverVersion(); v != 12090 {
			return fmt.Errorf("driver version %d", v)
		}
		return nil
	},
	"no such function": func() error {
		if _, _, err := cu.StreamPriorityRange(); err == nil || err.Error() != "NotFound" {
			return fmt.Errorf("a function that the driver lacks gives %v", err)
		}
		return nil
	},
	"no library": func() error {
		err := lazy.CuBLAS.Load()
		var missing *lazy.NotFoundError
		if err == nil {
			return nil // a machine with CUDA
		}
		if !errors.As(err, &missing) || len(missing.Names) != 3 || missing.Install == "" {
			return fmt.Errorf("%T: %w", err, err)
		}
		if _, err := blas.Version(); err == nil || !strings.Contains(err.Error(), "CUBLAS_STATUS_NOT_INITIALIZED") {
			return fmt.Errorf("cublasGetProperty without cuBLAS gives %v", err)
		}
		return nil
	},
	"damaged": func() error {
		var missing *lazy.NotFoundError
		if err := lazy.CuBLAS.Load(); err != nil && (!errors.As(err, &missing) || len(missing.Reasons) == 0) {
			return fmt.Errorf("the error gives no reason: %w", err)
		}
		return nil
	},
	"too old": func() error {
		var bad *lazy.DriverError
		if err := lazy.Driver.Load(); !errors.As(err, &bad) || bad.Version != 11040 || bad.Code != 0 {
			return fmt.Errorf("%v", err)
		}
		if _, err := cu.NumDevices(); err == nil {
			return errors.New("a driver that is too old is used")
		}
		return nil
	},
	"no device": func() error {
		var bad *lazy.DriverError
		if err := lazy.Driver.Load(); !errors.As(err, &bad) || bad.Code != 100 || bad.Name != "CUDA_ERROR_NO_DEVICE" {
			return fmt.Errorf("%v", err)
		}
		return nil
	},
}

// fakes builds the libraries of testdata/fake.c.
func fakes(t *testing.T) string {
	t.Helper()
	cc := cmp.Or(os.Getenv("CC"), "gcc")
	dir := t.TempDir()
	for name, define := range map[string]string{"libcuda.so.1": "-DCUDA", "libcublas.so.12": "-DCUBLAS"} {
		out, err := exec.Command(cc, "-shared", "-fPIC", "-I../include", define, "-o", filepath.Join(dir, name),
			"testdata/fake.c").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

func TestTrampolines(t *testing.T) {
	dir := fakes(t)
	damaged := t.TempDir()
	for _, name := range []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"} {
		if err := os.WriteFile(filepath.Join(damaged, name), []byte("no library"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string][]string{
		"no library": {lazy.SearchVariable + "="},
		"damaged":    {lazy.SearchVariable + "=" + damaged},
		"too old":    {"FAKE_VERSION=11040"},
		"no device":  {"FAKE_INIT=100"},
		"eager":      {"CUDA_MODULE_LOADING=EAGER"},
	}
	for name := range scenarios {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), lazy.SearchVariable+"="+dir, "LAZY_SCENARIO="+name)
			cmd.Env = append(cmd.Env, env[name]...)
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Equal(out, []byte("ok")) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The binary must start without any of NVIDIA's libraries.
func TestNothingIsLinked(t *testing.T) {
	f, err := elf.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil || len(needed) == 0 {
		t.Fatalf("libraries %q, %v", needed, err)
	}
	for _, l := range needed {
		if strings.HasPrefix(l, "libcu") || strings.HasPrefix(l, "libnv") {
			t.Errorf("the binary needs %s", l)
		}
	}
}
