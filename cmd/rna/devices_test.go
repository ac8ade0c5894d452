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
