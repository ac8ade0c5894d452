//go:build gpu

package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// A run computes in the flag's precision, or bfloat16, and keeps it when resumed. Losses are close to those of float32.
func TestPrecisionOnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	args := []string{"train", "--epochs", "1", "--limit-batches", "3", "--limit-val", "1", "--batch", "16", "--rna", "off"}
	var want []float64
	for _, p := range []string{"float32", "", "float16"} {
		out := filepath.Join(dir, "run"+p)
		said := mustRun(t, append(slices.Clone(args), "--device", "cuda", "--precision", p, "--out", out)...)
		name := p
		if p == "" {
			name = "bfloat16"
		}
		if !strings.Contains(said, "device cuda "+name) {
			t.Errorf("%s: %s", name, said)
		}
		c, err := train.ReadSpec(out)
		if err != nil || c.Precision != name {
			t.Errorf("precision %q of %s is recorded, %v", c.Precision, name, err)
		}
		got := losses(t, out)
		if p == "float32" {
			want = got
		}
		for i := range want {
			if len(got) != len(want) || !(math.Abs(got[i]-want[i]) <= .03) || name != "float32" && got[i] == want[i] {
				t.Errorf("%s: losses %v, in float32 %v", name, got, want)
				break
			}
		}
		if said := mustRun(t, "train", "--resume", out); !strings.Contains(said, "device cuda "+name) {
			t.Errorf("resumed from %s: %s", name, said)
		}
	}
	if status, _, said := runRNA(t, "train", "--resume", filepath.Join(dir, "runfloat16"), "--device",
		"cpu"); status != 1 || !strings.Contains(said, "device cpu computes in float32 or bfloat16, not in float16") {
		t.Errorf("resumed on the CPU: status %d, %s", status, said)
	}
	onCPU := []string{"train", "--resume", filepath.Join(dir, "run"), "--device", "cpu"}
	if status, _, said := runRNA(t, onCPU...); status != 1 || !strings.Contains(said,
		"give one of --precision float32, bfloat16") {
		t.Errorf("resumed on the CPU: status %d, %s", status, said)
	}
	if status, said, stderr := runRNA(t, append(onCPU, "--precision", "bfloat16")...); status != 0 ||
		!strings.Contains(said, "device cpu bfloat16") {
		t.Errorf("resumed on the CPU in bfloat16: status %d, %s %s", status, said, stderr)
	}
}

// A ResNet-50 at batch 256 in 16 bits leaves memory free on cards of 24 GB.
func TestArenaOnGPU(t *testing.T) {
	needGPU(t)
	d, err := cuda.OpenNet(0, cuda.NetOptions{Precision: cuda.BFloat16, Deterministic: true,
		Context: cuda.Options{KernelCache: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n, err := network.New(d, "resnet50", nn.Config{Classes: 1000, Channels: 3, Size: 224, Mean: []float64{.5, .5, .5},
		Std: []float64{.2, .2, .2}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	s, err := n.Plan(256)
	if err != nil {
		t.Fatal(err)
	}
	const perParam = 4 + 4 + 4 + 2 // weight, gradient, momentum, narrow weight
	if all := s.Arena + 2*s.Inputs + perParam*n.Params.Len(); all > 20e9 {
		t.Errorf("%d bytes", all)
	} else {
		t.Logf("%d bytes, of them %d in the arena", all, s.Arena)
	}
}

// stopAfter cancels a run after the given number of steps, and only counts them for 0.
type stopAfter struct {
	steps int
	stop  func()
}

func (h *stopAfter) Name() string { return "stop" }

func (h *stopAfter) AfterStep(_ context.Context, s *hook.State) error {
	if s.Steps == h.steps {
		h.stop()
	}
	return nil
}

// A float16 run that starts with too large a loss scale skips steps and logs that; interrupted and resumed it ends with
// the same weights, bit for bit.
func TestFloat16OnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	cache := filepath.Join(kernelCache(), "onlinerna", "cuda")
	open := func() device.LossScaler {
		t.Helper()
		d, err := cuda.OpenNet(0, cuda.NetOptions{Precision: cuda.Float16, Deterministic: true,
			Context: cuda.Options{KernelCache: cache}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d.(device.LossScaler)
	}
	config := train.Spec{Data: "glyphs", Batch: 8, Epochs: 2, StepsLimit: 6, ValLimit: 1, Device: "cuda",
		Precision: "float16", Deterministic: true, Workers: 1}
	config.RNA = average.Options{Mode: average.Offline, Residual: average.Gradients, Start: 1, Window: 2, Batches: 1,
		Averages: []int{}}
	var runs [2][]hook.EpochRecord
	var weights [2][]byte
	for i, stop := range []int{0, 8} {
		c, dev := config, open()
		c.Out = filepath.Join(dir, []string{"whole", "interrupted"}[i])
		if err := dev.SetLossScale(device.LossScale{Scale: 1 << 21, Good: 5}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := train.New(c, train.Deps{Device: dev, Hooks: []hook.Hook{&stopAfter{stop, cancel}}})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Train(ctx)
		if stop > 0 {
			if !errors.Is(err, train.ErrInterrupted) {
				t.Fatalf("%v, want ErrInterrupted", err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err = train.Resume(c.Out, train.Deps{Device: open(), Hooks: []hook.Hook{&stopAfter{}}}, nil); err != nil {
				t.Fatal(err)
			}
			err = r.Train(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = r.History
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if weights[i], err = os.ReadFile(filepath.Join(c.Out, "final.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	if len(runs[0]) != 2 || len(runs[1]) != 2 || runs[0][0].Skipped == 0 || runs[0][0].LossScale >= 1<<21 {
		t.Fatalf("epochs %+v and %+v", runs[0], runs[1])
	}
	for i, e := range runs[0] {
		if f := runs[1][i]; e.Skipped != f.Skipped || e.LossScale != f.LossScale || e.Train != f.Train {
			t.Errorf("epoch %d: %d steps skipped, scale %v, %+v; resumed %d, %v, %+v", i+1, e.Skipped, e.LossScale, e.Train,
				f.Skipped, f.LossScale, f.Train)
		}
	}
	if rna := runs[0][1].RNA; rna == nil || rna.Status != "ok" {
		t.Errorf("RNA by gradients, of which some were not finite: %+v", rna)
	}
	if !bytes.Equal(weights[0], weights[1]) {
		t.Error("the weights differ")
	}
}
