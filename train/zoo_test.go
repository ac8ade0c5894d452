package train

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/nn/zoo/zootest"
	"onlinerna/train/average"
	"onlinerna/train/schedule"
)

// narrowNets are names of zootest's nets that differ in the state of a run: with statistics and without, dropout,
// stochastic depth, parameters that layers share, tables of positions. TestZoo of package network has all nets.
func narrowNets() []string {
	if testing.Short() {
		return []string{"efficientnet_narrow", "shufflenet_v2_narrow"}
	}
	return []string{"alexnet_narrow", "beit_narrow", "caformer_narrow", "convnextv2_narrow", "deit_narrow", "densenet_small",
		"dinov3_narrow", "efficientnet_v2_narrow", "inception_v3_narrow", "mobilenetv4_narrow", "mobilevit_timm_narrow",
		"poolformer_narrow", "shufflenet_v2_narrow", "swin_v2_narrow", "vgg_bn_narrow", "xcit_narrow"}
}

// TestZooRanks trains nets on two ranks: they have equal bits, and train as one process that accumulates their batches,
// as far as rounding lets them.
func TestZooRanks(t *testing.T) {
	t.Parallel()
	images := pictures(t, 12, 4, 32)
	for _, name := range narrowNets() {
		t.Run(name, func(t *testing.T) {
			none, rate := 0., .001
			if name == "mobilenetv4_narrow" { // a batch normalisation of three numbers, those of the images, multiplies rounding
				rate = 1e-4
			}
			c := Spec{Data: images, Model: name, ImageSize: zootest.Narrow[name].Size, Batch: 3, Epochs: 1, Seed: 3,
				Optimizer: "sgd", Schedule: schedule.Schedule{Kind: schedule.Constant, Rate: rate},
				RNA: average.Options{Mode: average.Off}, Regularize: Regularize{Dropout: &none, DropPath: &none}}
			one := c
			one.Accumulate = 2
			want := runOn(context.Background(), one, cpuDevice(t, 1), nil, nil)
			if want.err != nil || len(want.losses) != 2 {
				t.Fatal(want.losses, want.err)
			}
			list := together(t, 2, c, cpuOne, nil)
			for k, got := range list {
				if got.err != nil {
					t.Fatalf("rank %d: %v", k, got.err)
				}
				if d := max(apart(got.losses, want.losses), apart(got.params, want.params)); d > 1e-4 {
					t.Errorf("rank %d: losses or parameters differ by %g: losses %v, want %v", k, d, got.losses, want.losses)
				}
				if !slices.Equal(got.params, list[0].params) {
					t.Errorf("rank %d has other bits", k)
				}
			}
		})
	}
}

// TestZooRuns trains nets with RNA and layer decay, stops the run and resumes it: its files equal those of an
// uninterrupted run.
func TestZooRuns(t *testing.T) {
	t.Parallel()
	images := pictures(t, 12, 4, 32)
	for _, name := range narrowNets() {
		t.Run(name, func(t *testing.T) {
			config := func(out string) Spec {
				c := tinyColour(out, images)
				c.Model, c.ImageSize, c.Epochs, c.Batch = name, zootest.Narrow[name].Size, 4, 6
				c.StatsMomentum = .1 // MNASNet's own value takes thousands of steps
				c.LayerDecay = .9
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
