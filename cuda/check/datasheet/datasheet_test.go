//go:build gpu && cgo

package datasheet_test

import (
	"errors"
	"strings"
	"testing"

	"onlinerna/cuda"
	"onlinerna/cuda/check/datasheet"
	"onlinerna/cuda/kernels"
	"onlinerna/nn/device"
	"onlinerna/train/bench"
	"onlinerna/train/network"
)

// traffic is the traffic of a training step on a card.
func traffic(t *testing.T, key, model string, batch int, o cuda.NetOptions) (*bench.Traffic, error) {
	t.Helper()
	card, err := cuda.FindCard(key)
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.OpenPaper(card, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	return bench.RunTraffic(t.Context(), d, bench.TrafficOptions{Options: bench.Options{Model: model, Batch: batch},
		Least: d.Least, Card: card.Name, Window: 10})
}

// A step of ResNet-50 has the traffic that docs/gpu.md states. The time of its convolutions agrees with their
// operations, and fusions save passes over activations, each of 5.7 GB. The images' five padding channels are
// multiplied, too.
func TestTraffic(t *testing.T) {
	t.Setenv("RNA_CUDA_FUSE", "timed")
	r, err := traffic(t, "h100", "resnet50", 256, cuda.NetOptions{Precision: cuda.BFloat16})
	if err != nil {
		t.Fatal(err)
	}
	if r.Norm < 40e9 || r.Norm > 45e9 || r.Step.FLOP < 6.2e12 || r.Step.FLOP > 6.5e12 || r.Step.Count > 500 ||
		r.Step.Seconds < .025 || r.Step.Seconds > .03 ||
		r.Likely < .035 || r.Likely > .04 || r.RNA.Read < 2e9 || len(r.Works) != r.Step.Count {
		t.Errorf("norm %d bytes, likely %g s, step %+v, RNA %+v", r.Norm, r.Likely, r.Step, r.RNA)
	}
	t.Setenv("RNA_CUDA_FUSE", "")
	separate, err := traffic(t, "h100", "resnet50", 256, cuda.NetOptions{Precision: cuda.BFloat16})
	if err != nil {
		t.Fatal(err)
	}
	if more := separate.Norm - r.Norm; more < 8e9 || more > 16e9 || separate.Step.Seconds < r.Step.Seconds ||
		separate.Step.FLOP != r.Step.FLOP {
		t.Errorf("without fusions %d bytes of norm, step %+v", separate.Norm, separate.Step)
	}
}

// slow are the kernels that spend more than half of the time that their bytes take on an H100 on instructions, with
// their share: a maximum, or its place, costs several instructions for each element of overlapping windows.
var slow = map[string]float64{"nn_max_pool": .8, "nn_max_pool_grad": 1}

// Instructions take at most half of the time that bytes take, so that loads are never short of instructions.
func TestInstructions(t *testing.T) {
	card, err := cuda.FindCard("h100")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []cuda.Precision{cuda.Float32, cuda.BFloat16, cuda.Float16} {
		r, err := traffic(t, "h100", "resnet50", 256, cuda.NetOptions{Precision: p})
		if err != nil {
			t.Fatal(err)
		}
		counted := 0
		told := map[string]bool{} // one error for each kernel
		for _, w := range r.Works {
			if strings.HasPrefix(w.Name, "cu") || strings.Contains(w.Name, "copy") || w.Name == "fill" || w.FLOP > 0 ||
				w.Read+w.Write < datasheet.Small {
				continue
			}
			if w.Instructions == 0 && !told[w.Name] {
				told[w.Name] = true
				t.Errorf("%v: %s of %s was not counted: make check-ptx counts it", p, w.Name, w.Layer)
			}
			counted++
			share := float64(w.Instructions) / card.Issue() / (float64(w.Read+w.Write) / card.Bandwidth)
			if share > max(.5, slow[w.Name]) && !told[w.Name] {
				told[w.Name] = true
				t.Errorf("%v: instructions of %s take %.2f of its bytes' time", p, w.Name, share)
			}
		}
		if counted < 50 {
			t.Errorf("%v: only %d kernels were counted", p, counted)
		}
	}
	if datasheet.Known.Digest != kernels.Digest() {
		t.Error("instructions.tsv is of other kernels: make check-ptx counts them again")
	}
}

// Too little memory is reported as on a real card.
func TestMemory(t *testing.T) {
	_, err := traffic(t, "rtx4090", "resnet50", 4096, cuda.NetOptions{Precision: cuda.Float16})
	var small *network.MemoryError
	if !errors.As(err, &small) || !strings.Contains(err.Error(), " fits") {
		t.Error(err)
	}
	r, err := traffic(t, "rtx4090", "lenet", 8, cuda.NetOptions{Precision: cuda.Float32, Deterministic: true})
	if err != nil || r.Step.FLOP == 0 {
		t.Error(err)
	}
}

// Memory of an H200 holds more images than convolutions take: conv1's result reaches 2³¹ elements at batch 2,675.
func TestLargestTensor(t *testing.T) {
	o := cuda.NetOptions{Precision: cuda.BFloat16}
	if _, err := traffic(t, "h200", "resnet50", 2675, o); !errors.As(err, new(*device.BoundError)) {
		t.Errorf("batch 2675: %v; want a *device.BoundError", err)
	}
	if _, err := traffic(t, "h200", "resnet50", 2674, o); err != nil {
		t.Error(err)
	}
}
