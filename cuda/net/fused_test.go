//go:build gpu && cgo

package net

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/internal/gputest"
	"onlinerna/cuda/number"
	"onlinerna/cuda/sim"
	"onlinerna/nn"
	"onlinerna/train/network"
)

// results are the gradient of a small residual net's loss, its statistics and the scores in evaluation.
func results(t *testing.T, o Options) (all [][]float64, graphs []string) {
	t.Helper()
	o.Context = driver.Options{KernelCache: gputest.KernelCache, ExactMemory: true}
	d, err := Open(0, o)
	check(t, err)
	defer func() { check(t, d.Close()) }()
	n, err := network.New(d, "resnet20", nn.Config{Classes: 4, Channels: 3, Size: 8, Mean: []float64{.5}, Std: []float64{.25}}, 1)
	check(t, err)
	defer func() { check(t, n.Close()) }()
	loss, _, err := n.Gradient(batchOf(6, 1), .1)
	check(t, err)
	logits := make([]float32, 4*6)
	_, err = n.Evaluate(batchOf(6, 2), logits)
	check(t, err)
	all = [][]float64{{loss}, make([]float64, n.Grads.Len()), make([]float64, n.Stats.Len()), nil}
	check(t, n.Grads.ReadAt64(all[1], 0))
	check(t, n.Stats.ReadAt64(all[2], 0))
	for _, l := range logits {
		all[3] = append(all[3], float64(l))
	}
	for _, p := range d.graphs {
		if p != nil && p.Made() && !slices.Contains(graphs, p.Graph().Name) {
			graphs = append(graphs, p.Graph().Name)
		}
	}
	slices.Sort(graphs)
	return all, graphs
}

// Operations that run as one graph of cuDNN's give the results of those that run by themselves, no less exact.
func TestFusions(t *testing.T) {
	gputest.NeedDNN(t)
	exact, graphs := results(t, Options{Precision: number.Float32, Deterministic: true, Fuse: FuseAlways})
	if len(graphs) > 0 {
		t.Errorf("a deterministic device has %q", graphs)
	}
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		separate, graphs := results(t, Options{Precision: p, Fuse: FuseNever})
		if len(graphs) > 0 {
			t.Errorf("%v: fusions %q where none were to be", p, graphs)
		}
		fused, graphs := results(t, Options{Precision: p, Fuse: FuseAlways})
		if want := "forward + scale + bias + add + relu, forward + scale + bias + relu, forward + sums, input gradient + add + relu' + sums"; sim.Active() && strings.Join(graphs, ", ") != want {
			t.Errorf("%v: graphs %q, want %s", p, graphs, want)
		}
		for i, name := range []string{"loss", "gradient", "statistics", "logits"} {
			off := func(x []float64) (sum float64) {
				for k := range x {
					sum += (x[k] - exact[i][k]) * (x[k] - exact[i][k])
				}
				return math.Sqrt(sum)
			}
			size := 0.
			for _, v := range exact[i] {
				size += v * v
			}
			one, two := off(fused[i])/math.Sqrt(size), off(separate[i])/math.Sqrt(size)
			if !(one <= 1.5*two+1e-3) || !(one < .3) {
				t.Errorf("%v, %s: fused off by %.2g, separate by %.2g", p, name, one, two)
			}
		}
	}
}

// The choice between a fusion and separate kernels is timed once and kept; a fusion whose plans do not run gives way.
func TestFusionChoice(t *testing.T) {
	gputest.NeedDNN(t)
	if !sim.Active() {
		t.Skip("the faults are the stand-in's")
	}
	want, _ := results(t, Options{Precision: number.BFloat16, Fuse: FuseNever})
	for _, plan := range []string{"", "cudnnBackendExecute@0=5000", "cudnnBackendCreateDescriptor@0=3000"} {
		check(t, sim.Fault(plan))
		got, _ := results(t, Options{Precision: number.BFloat16})
		check(t, sim.Fault(""))
		if off := math.Abs(got[0][0] - want[0][0]); !(off < .05) {
			t.Errorf("%s: loss %v, want %v", fmt.Sprintf("%q", plan), got[0][0], want[0][0])
		}
	}
	t.Setenv("RNA_CUDA_FUSE", "perhaps")
	if _, err := Open(0, Options{}); err == nil || !strings.Contains(err.Error(), "want always or never") {
		t.Errorf("RNA_CUDA_FUSE=perhaps: %v", err)
	}
}
