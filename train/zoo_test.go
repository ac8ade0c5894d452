package train

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/nn/zoo/zootest"
)

// TestZooRuns trains a net of each family with RNA, stops the run and resumes it: its files equal those of an
// uninterrupted run.
func TestZooRuns(t *testing.T) {
	t.Parallel()
	images := pictures(t, 12, 4, 32)
	var names []string
	for name := range zootest.Narrow {
		names = append(names, name)
	}
	slices.Sort(names)
	if testing.Short() {
		names = []string{"efficientnet_narrow", "shufflenet_v2_narrow"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			config := func(out string) Spec {
				c := tinyColour(out, images)
				c.Model, c.ImageSize, c.Epochs, c.Batch = name, 64, 4, 6
				c.StatsMomentum = .1 // MNASNet's own value takes thousands of steps
				return c
			}
			dir := t.TempDir()
			dev := cpuDevice(t, 2)
			whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
			trained(t, config(whole), dev)

			ctx, cancel := context.WithCancel(context.Background())
			r := newRun(t, config(parts), dev, atStep(5)(cancel))
			if err := r.Train(ctx); !errors.Is(err, ErrInterrupted) {
				t.Fatal(err)
			}
			r.Close()
			resumed, err := Resume(parts, Deps{Device: dev}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resumed.Close()
			if err := resumed.Train(context.Background()); err != nil {
				t.Fatal(err)
			}
			sameFolders(t, parts, whole)
		})
	}
}
