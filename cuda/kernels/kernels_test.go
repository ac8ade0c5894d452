//go:build gpu && cgo

package kernels_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"onlinerna/cuda/internal/gputest"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nvrtc"
	"onlinerna/cuda/sim"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m)) }

// The kernels compile for the GPUs that matter, whatever GPU is here. With NVIDIA's NVRTC and no driver, as in
// RNA_CUDA_LIBS=folder, this needs no GPU. (NVRTC 13.5 crashes in a process that has the stand-in's driver.)
func TestKernelsCompile(t *testing.T) {
	gputest.NeedLibrary(t, lazy.NVRTC)
	names, err := kernels.Names()
	gputest.Check(t, err)
	type source struct {
		name, text string
		options    []string
	}
	var sources []source
	for _, name := range names {
		if name == "rna.cu" {
			sources = append(sources, source{name, kernels.RNA(), nil})
			continue
		}
		for store := range 3 {
			if sim.Active() && store > 0 {
				break // the tests of nets compile them
			}
			text, options, err := kernels.Net(name, store)
			gputest.Check(t, err)
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
				image, compiler, err := nvrtc.Image(arch, x.name, x.text, x.options...)
				if err != nil || len(image) == 0 {
					t.Fatalf("%d bytes, %v", len(image), err)
				}
				t.Logf("%s for sm_%d by NVRTC %s: %d bytes", x.name, arch, compiler, len(image))
			})
		}
	}
}
