package train

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// Initial weights with a number that is not finite are refused.
func TestInitNotFinite(t *testing.T) {
	dev := cpuDevice(t, 1)
	r := newRun(t, tiny(""), dev)
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		if err := r.Net.Params.WriteAt64([]float64{bad}, 5); err != nil {
			t.Fatal(err)
		}
		c := tiny("")
		c.Init = filepath.Join(t.TempDir(), "broken.safetensors")
		if err := r.Net.SaveWeights(c.Init, r.Net.Params, r.Net.Stats, r.Meta(network.SGD)); err != nil {
			t.Fatal(err)
		}
		run, err := New(c, Deps{Device: dev})
		if err == nil {
			run.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.Init) ||
			!strings.Contains(err.Error(), `.weight" has 1 of `) {
			t.Errorf("%g: %v", bad, err)
		}
	}
}

// A hook that leaves a number that is not finite ends the run, and the last checkpoint is of good weights.
func TestHookLeavesNotFinite(t *testing.T) {
	dev := cpuDevice(t, 1)
	c := tiny(filepath.Join(t.TempDir(), "run"))
	r := newRun(t, c, dev, watch{Epoch: func(s *hook.State) error {
		if s.Epoch < 3 {
			return nil
		}
		return s.Net.Params.WriteAt64([]float64{math.NaN()}, 5)
	}})
	err := r.Train(t.Context())
	var diverged *DivergedError
	if !errors.As(err, &diverged) || !strings.Contains(err.Error(), "a weight is not finite") {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Resume(c.Out, Deps{Device: dev, Hooks: []hook.Hook{watch{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Train(t.Context()); err != nil {
		t.Error(err)
	}
}
