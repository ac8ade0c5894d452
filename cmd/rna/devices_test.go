package main

import (
	"strings"
	"testing"

	"onlinerna/cuda/lazy"
	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
)

func TestDevices(t *testing.T) {
	out := mustRun(t, "devices")
	want := []string{"CPU  ", " threads, kernels for ", "GPU support", "PCI bus", "kernel module"}
	if lazy.Built {
		want = append(want, "NVIDIA driver", "cuBLAS", "NVRTC", "cuDNN")
	} else {
		want = append(want, "make gpu", "Everything runs on the CPU")
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("no %q in\n%s", w, out)
		}
	}
}

// winograd reports whether the CPU's convolutions use Winograd's algorithm by default.
func winograd(t *testing.T) bool {
	t.Helper()
	d, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return d.Winograd()
}

// TestDefaultDevice opens devices with default options, as predict and extrapolate do, and with direct convolution.
// Other devices have no such choice.
func TestDefaultDevice(t *testing.T) {
	for _, c := range []struct {
		options deviceOptions
		want    bool
	}{{deviceOptions{threads: 1}, winograd(t)}, {deviceOptions{threads: 1, direct: true}, false}} {
		d, err := openDevice("cpu", c.options)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := device.As[device.Processor](d); !ok || p.Winograd() != c.want {
			t.Errorf("%+v: Winograd's algorithm: %v, want %v", c.options, ok && p.Winograd(), c.want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if _, err := openDevice("reference", c.options); err != nil {
			t.Error(err)
		}
	}
}

func TestChosenDevice(t *testing.T) {
	if lazy.Built {
		t.Skip("a build with GPU support chooses by what it finds")
	}
	var said strings.Builder
	if got := chosenDevice("auto", &said); got != "cpu" || said.Len() > 0 {
		t.Errorf("auto is %s, %q", got, said.String())
	}
}

// Devices other than the CPU have one way to multiply float32, and so has a CPU without AMX.
func TestFloat32Devices(t *testing.T) {
	for _, c := range []struct{ device, way, fails string }{
		{"cpu", "", ""}, {"cpu", "bf16x6", ""}, {"cpu", "direct", ""}, {"reference", "direct", ""},
		{"reference", "bf16x6", "leave --float32 out"}, {"cpu", "bf16x9", "want one of bf16x6, bf16x3, direct"},
		{"cpu", "bf16x3", "AMX"},
	} {
		if c.way == "bf16x3" && simd.Default() == simd.AMX {
			c.fails = ""
		}
		d, err := openDevice(c.device, deviceOptions{threads: 1, float32: c.way})
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			d.Close()
		}
	}
}
