package network

import (
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/nn"
)

// CLIP's ResNets have the places of their attention pooling in a matrix, which is resized, too.
func TestPoolPositions(t *testing.T) {
	dev := cpuDevice(t, 2)
	at := func(size int) *Network {
		n, err := New(dev, "resnet_clip_narrow", nn.Config{Classes: 10, Channels: 3, Size: size}, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	small, path := at(64), filepath.Join(t.TempDir(), "w.safetensors")
	meta := Meta{Model: "resnet_clip_narrow", ImageSize: 64}
	if err := small.SaveWeights(path, small.Params, small.Stats, meta); err != nil {
		t.Fatal(err)
	}
	large := at(128)
	l, err := large.Load(path, LoadOptions{})
	if err != nil || !strings.HasSuffix(l.Resized, " is resized from 2×2 to 4×4 positions") {
		t.Errorf("%q, %v", l.Resized, err)
	}
	for i, p := range large.model.Params {
		if p.Name != "head.pos_embed" {
			continue
		}
		s, w := large.params[i], small.params[i]
		x, y := numbers(t, large.Params)[s.off:s.off+s.n], numbers(t, small.Params)[w.off:w.off+w.n]
		if c := p.Shape[1]; len(x) != 17*c || len(y) != 5*c {
			t.Errorf("%d and %d numbers of %d channels", len(x), len(y), c)
		} else {
			for j := range c { // that of the mean
				if x[j] != y[j] {
					t.Fatalf("element %d is %g, want %g", j, x[j], y[j])
				}
			}
		}
	}
}
