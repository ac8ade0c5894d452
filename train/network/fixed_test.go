package network

import (
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
)

// Weights prepared once give the logits of weights prepared in each run, bit for bit. After a change that Fixed
// forbids, some logits stay the old ones.
func TestFixed(t *testing.T) {
	const size, classes = 64, 10
	level, err := simd.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []cpu.Options{{Threads: 2}, {Threads: 1, Direct: true}, {Threads: 2, BFloat16: true}} {
		dev, err := cpu.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		for _, arch := range []string{"mobilenet_v3_small_narrow", "regnet_y_narrow", "resnet20", "vit_narrow",
			"convnext_narrow"} {
			open := func(fixed bool) *Network {
				n, err := New(dev, arch, nn.Config{Classes: classes, Channels: 3, Size: size, Mean: []float64{.5, .5, .5},
					Std: []float64{.25, .25, .25}}, 1)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { n.Close() })
				n.Fixed = fixed
				return n
			}
			logits := func(n *Network, images int, seed uint64) []float32 {
				y := make([]float32, images*classes)
				if _, err := n.Evaluate(noise(images, size, seed), y); err != nil {
					t.Fatal(err)
				}
				return y
			}
			fixed, free := open(true), open(false)
			for _, run := range []struct {
				images int
				seed   uint64
			}{{1, 1}, {1, 2}, {3, 3}, {1, 1}, {3, 4}, {1, 5}, {2, 6}, {3, 7}} {
				if got, want := logits(fixed, run.images, run.seed), logits(free, run.images, run.seed); !slices.Equal(got, want) {
					t.Errorf("%s, %+v, %+v: logits %v, and %v without Fixed", arch, o, run, got, want)
				}
			}
			for use, s := range fixed.Programs() {
				if kept := s.Kept > 0; level != simd.Go && kept == strings.HasSuffix(use, "batch 2") {
					t.Errorf("%s, %+v, %s: kernels keep %d bytes", arch, o, use, s.Kept)
				}
			}
			before, several := logits(fixed, 1, 1), logits(fixed, 3, 1)
			for _, n := range []*Network{fixed, free} {
				if err := n.Params.Fill(.01); err != nil {
					t.Fatal(err)
				}
			}
			if after := logits(free, 1, 1); slices.Equal(after, before) {
				t.Fatalf("%s: equal weights give the logits of others", arch)
			} else if level != simd.Go && slices.Equal(logits(fixed, 1, 1), after) {
				t.Errorf("%s, %+v: with Fixed weights are prepared in each run", arch, o)
			}
			if after := logits(free, 3, 1); level != simd.Go && !slices.Equal(after, several) &&
				slices.Equal(logits(fixed, 3, 1), after) {
				t.Errorf("%s, %+v: with Fixed weights are prepared in each run of three images", arch, o)
			}
		}
	}
}
