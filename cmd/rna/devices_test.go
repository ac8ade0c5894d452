package main

import (
	"strings"
	"testing"

	"onlinerna/cuda/lazy"
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

func TestChosenDevice(t *testing.T) {
	if lazy.Built {
		t.Skip("a build with GPU support chooses by what it finds")
	}
	var said strings.Builder
	if got := chosenDevice("auto", deviceOptions{}, &said); got != "cpu" || said.Len() > 0 {
		t.Errorf("auto is %s, %q", got, said.String())
	}
}
