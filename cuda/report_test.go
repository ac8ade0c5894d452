package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/lazy"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPCI(t *testing.T) {
	dir := t.TempDir()
	for name, ids := range map[string][3]string{
		"0000:01:00.0": {"0x10de", "0x2330", "0x030200"}, // an accelerator
		"0000:02:00.0": {"0x10de", "0x2204", "0x030000"}, // a display controller
		"0000:02:00.1": {"0x10de", "0x1aef", "0x040300"}, // its sound
		"0000:03:00.0": {"0x1002", "0x744c", "0x030000"}, // another maker's
	} {
		for i, file := range []string{"vendor", "device", "class"} {
			write(t, filepath.Join(dir, name, file), ids[i]+"\n")
		}
	}
	if got, want := pciGPUs(dir), []string{"10de:2330 at 0000:01:00.0", "10de:2204 at 0000:02:00.0"}; !slices.Equal(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := pciGPUs(filepath.Join(dir, "none")); got != nil {
		t.Errorf("without a bus: %q", got)
	}
}

func TestKernelModule(t *testing.T) {
	file := filepath.Join(t.TempDir(), "version")
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:  " +
			"gcc 12.3.0\n": "535.183.01",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82  Release Build  (x)  Wed Aug 27 2025\nGCC " +
			"version: 12.3.0 x\n": "580.82",
		"something else": "something else",
	} {
		write(t, file, text)
		if got := kernelModule(file); got != want {
			t.Errorf("%q: version %q, want %q", text, got, want)
		}
	}
	if got := kernelModule(file + ".none"); got != "" {
		t.Errorf("without a driver: %q", got)
	}
}

func TestPrint(t *testing.T) {
	gpu := Info{Name: "NVIDIA X", Major: 9, Memory: 80 << 30, Multiprocessors: 132, MemoryClock: 2_619_000,
		MemoryBus: 5120}
	found := func(l lazy.Library) LibraryReport {
		return LibraryReport{Library: l, Version: "12." + fmt.Sprint(int(l)), File: "/lib/" + fmt.Sprint(int(l))}
	}
	missing := func(l lazy.Library) LibraryReport {
		return LibraryReport{Library: l, Err: &lazy.NotFoundError{Library: l, Names: []string{"libx.so.1"},
			Folders: []string{"/f"}, Install: "do this"}}
	}
	all := []LibraryReport{found(lazy.Driver), found(lazy.CuBLAS), found(lazy.NVRTC), found(lazy.CuDNN)}
	for name, test := range map[string]struct {
		r         Report
		want, not []string
	}{
		"no support": {
			Report{Hardware: []string{"10de:2330 at 0000:01:00.0"}, KernelModule: "580.82"},
			[]string{"not in this build", "NVIDIA GPU 10de:2330", "580.82", "make gpu", "Everything runs on the CPU"},
			nil,
		},
		"all": {
			Report{Built: true, Libraries: all, GPUs: []GPUReport{{Info: gpu, Free: 79 << 30}}},
			[]string{"cuBLAS         12.1  /lib/1",
				"NVIDIA X, sm_90, 132 multiprocessors, 79.0 GiB of 80.0 GiB free, 3352 GB/s",
				"Nets and RNA can run on the GPU"},
			[]string{"missing"},
		},
		"no cuDNN": {
			Report{Built: true, Libraries: []LibraryReport{all[0], all[1], all[2], missing(lazy.CuDNN)},
				GPUs: []GPUReport{{Info: gpu}}},
			[]string{"cuDNN          missing; RNA does without",
				"looked for libx.so.1 in the loader's path, /f\n  do this", "\nRNA can run on the GPU"}, nil,
		},
		"no NCCL, two GPUs": {
			Report{Built: true, Libraries: append(all[:4:4], missing(lazy.NCCL)),
				GPUs: []GPUReport{{Info: gpu}, {Info: gpu}}},
			[]string{"NCCL           missing; one GPU does without", "no NCCL: looked for",
				"Nets and RNA can run on the GPU"}, nil,
		},
		"no NCCL, one GPU": {
			Report{Built: true, Libraries: append(all[:4:4], missing(lazy.NCCL)), GPUs: []GPUReport{{Info: gpu}}},
			[]string{"NCCL           missing; one GPU does without", "Nets and RNA can run on the GPU"},
			[]string{"no NCCL"},
		},
		"no NVRTC": {
			Report{Built: true, Libraries: []LibraryReport{all[0], all[1], missing(lazy.NVRTC), all[3]},
				GPUs: []GPUReport{{Info: gpu}}},
			[]string{"NVRTC          missing\n", "no NVRTC", "Everything runs on the CPU"}, nil,
		},
		"old driver": {
			Report{Built: true, Libraries: []LibraryReport{{Library: lazy.Driver,
				Err: &lazy.DriverError{File: "/d", Version: 11040}}, all[1], all[2], all[3]}},
			[]string{"NVIDIA driver  unusable", "- NVIDIA driver too old: /d supports CUDA 11.4",
				"Everything runs on the CPU"}, nil,
		},
		"no device": {
			Report{Built: true, Libraries: all, Err: errors.New("list failed")},
			[]string{"- list failed", "Everything runs on the CPU"}, nil,
		},
		"busy": {
			Report{Built: true, Libraries: all, GPUs: []GPUReport{{Info: gpu, Err: errors.New("in use")}}},
			[]string{"80.0 GiB, cannot be used", "- in use", "Everything runs on the CPU"}, nil,
		},
	} {
		var b strings.Builder
		if err := test.r.Print(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, b.String())
			}
		}
		for _, not := range test.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("%s: %q in\n%s", name, not, b.String())
			}
		}
	}
}

// Net chooses the first of the GPUs with about the most free memory.
func TestFreeGPU(t *testing.T) {
	gpus := func(free ...int64) (all []GPUReport) {
		for i, f := range free {
			all = append(all, GPUReport{Info: Info{Ordinal: i, Memory: 80 << 30}, Free: f << 30})
		}
		return all
	}
	broken := gpus(79, 10)
	broken[0].Err = errors.New("in exclusive use")
	for _, test := range []struct {
		gpus       []GPUReport
		want, busy int
	}{{gpus(79), 0, 0}, {gpus(70, 79), 0, 0}, {gpus(10, 79, 79), 1, 1}, {gpus(1, 2, 70, 60), 2, 2}, {gpus(5, 4), 0, 0},
		{broken, 1, 0}, {nil, -1, 0}} {
		r := Report{GPUs: test.gpus}
		if got := r.Net(); got != test.want || len(r.InUse(got)) != test.busy {
			t.Errorf("GPU %d is taken, behind %d that are in use; want %d and %d: %+v", got, len(r.InUse(got)),
				test.want, test.busy, test.gpus)
		}
	}
}

func TestFind(t *testing.T) {
	all := []Info{{Ordinal: 0, UUID: "GPU-8f3c0000-1"}, {Ordinal: 1, UUID: "GPU-8f3d0000-2"},
		{Ordinal: 2, UUID: "MIG-1234-3"}}
	for name, want := range map[string]int{"GPU-8f3c": 0, "gpu-8F3D0000-2": 1, "MIG-": 2} {
		if got, err := Find(all, name); got != want || err != nil {
			t.Errorf("%s is GPU %d, %v; want %d", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"GPU-8f3": "more than one", "GPU-9": "no GPU that this process sees"} {
		if _, err := Find(all, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
}

// A library for a later CUDA than the driver supports is reported with the remedy.
func TestFits(t *testing.T) {
	l := LibraryReport{Library: lazy.CuDNN, Version: "9.26.0", File: "/l/libcudnn.so.9", CUDA: 13000}
	if err := l.fits(12090); err == nil || !strings.Contains(err.Error(),
		"for CUDA 13, and the driver supports CUDA 12.9: /l/libcudnn.so.9") ||
		!strings.Contains(err.Error(), "nvidia-cudnn-cu12") {
		t.Errorf("%v", err)
	}
	for _, driver := range []int{0, 13000, 13020, 14000} {
		if err := l.fits(driver); err != nil {
			t.Errorf("driver %d: %v", driver, err)
		}
	}
}
