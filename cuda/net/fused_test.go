//go:build gpu && cgo

package net

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/network"
)

// small is a small residual net on its own device, both closed at the test's end.
func small(t *testing.T, o Options) (*Device, *network.Network) {
	t.Helper()
	return netOf(t, o, "resnet20")
}

// netOf is a net for small images.
func netOf(t *testing.T, o Options, model string) (*Device, *network.Network) {
	t.Helper()
	o.Context = driver.Options{KernelCache: gputest.KernelCache, ExactMemory: true}
	d, err := Open(0, o)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d, netOn(t, d, model)
}

// netOn is a net for small images on a device.
func netOn(t *testing.T, d device.Device, model string) *network.Network {
	t.Helper()
	n, err := network.New(d, model, nn.Config{Classes: 4, Channels: 3, Size: 8, Mean: []float64{.5},
		Std: []float64{.25}}, 1)
	check(t, err)
	t.Cleanup(func() { check(t, n.Close()) })
	return n
}

// lossGradient returns the loss of a batch, its gradient and the statistics.
func lossGradient(t *testing.T, n *network.Network, batch int) ([][]float64, error) {
	t.Helper()
	loss, _, err := n.Gradient(batchOf(batch, 1), .1)
	if err != nil {
		return nil, err
	}
	all := [][]float64{{loss}, make([]float64, n.Grads.Len()), make([]float64, n.Stats.Len())}
	check(t, n.Grads.ReadAt64(all[1], 0))
	check(t, n.Stats.ReadAt64(all[2], 0))
	return all, nil
}

// asExact checks that each part of got is no further from exact than the same part of other, within a unit in the last
// place of 16 bits.
func asExact(t *testing.T, what string, got, other, exact [][]float64) {
	t.Helper()
	for i, x := range got {
		if one, two := offBy(x, exact[i]), offBy(other[i], exact[i]); !(one <= 1.5*two+0x1p-8) || !(one < .3) {
			t.Errorf("%s, %s: off by %.2g, without fusion by %.2g", what, parts[i], one, two)
		}
	}
}

// results returns the gradient of a small residual net's loss, its statistics and the scores in evaluation.
func results(t *testing.T, o Options) (all [][]float64, graphs []string) {
	t.Helper()
	all, graphs, err := tryResults(t, o)
	check(t, err)
	return all, graphs
}

// tryResults is results that may fail in the gradient and nowhere else.
func tryResults(t *testing.T, o Options) (all [][]float64, graphs []string, err error) {
	t.Helper()
	d, n := small(t, o)
	if all, err = lossGradient(t, n, 6); err != nil {
		return nil, nil, err
	}
	logits := make([]float32, 4*6)
	_, err = n.Evaluate(batchOf(6, 2), logits)
	check(t, err)
	all = append(all, nil)
	for _, l := range logits {
		all[3] = append(all[3], float64(l))
	}
	return all, d.fused(), nil
}

// fused names the graphs of fusions that have plans.
func (d *Device) fused() (graphs []string) {
	for _, p := range d.graphs {
		if p != nil && p.Made() && !slices.Contains(graphs, p.Graph().Name) {
			graphs = append(graphs, p.Graph().Name)
		}
	}
	slices.Sort(graphs)
	return graphs
}

// parts names the entries of results.
var parts = []string{"loss", "gradient", "statistics", "logits"}

// offBy is the distance of x from exact relative to the length of exact.
func offBy(x, exact []float64) float64 {
	sum, size := 0., 0.
	for i, v := range exact {
		sum, size = sum+(x[i]-v)*(x[i]-v), size+v*v
	}
	return math.Sqrt(sum / size)
}

// Operations fused in one graph of cuDNN give the same results as separate ones, no less exact.
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
		if want := "forward + scale + bias + add + relu, forward + scale + bias + relu, forward + sums, input " +
			"gradient + add + relu' + sums, input gradient + norm's relu' + sums"; sim.Active() &&
			strings.Join(graphs, ", ") != want {
			t.Errorf("%v: graphs %q, want %s", p, graphs, want)
		}
		asExact(t, fmt.Sprintf("fused in %v", p), fused, separate, exact)
	}
}

// bottlenecks is a small net of residual blocks with three convolutions, like those of ResNet-50.
const bottlenecks = "bottlenecks"

func init() {
	nn.Register(nn.Architecture{Name: bottlenecks, Size: 8, Channels: 3, Classes: 4,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			norm := func(name string, x *G.Node, c nn.Conv) *G.Node {
				return b.BatchNorm(name+".norm", b.Conv(name, x, c), 1)
			}
			x = b.ReLU("relu", norm("conv", x, nn.Conv{Filters: 16, Kernel: 3, Pad: 1}))
			for i, stride := range []int{1, 1, 2, 1} {
				name := fmt.Sprint("block", i)
				y := b.ReLU(name+".relu1", norm(name+".conv1", x, nn.Conv{Filters: 8, Kernel: 1}))
				y = b.ReLU(name+".relu2", norm(name+".conv2", y, nn.Conv{Filters: 8, Kernel: 3, Pad: 1, Stride: stride}))
				y = norm(name+".conv3", y, nn.Conv{Filters: 32, Kernel: 1})
				if i%2 == 0 {
					x = norm(name+".shortcut", x, nn.Conv{Filters: 32, Kernel: 1, Stride: stride})
				}
				x = b.ReLU(name+".relu3", b.Add(name+".add", y, x))
			}
			return b.Linear("fc", b.GlobalAvgPool("pool", x), b.Config().Classes)
		}})
}

// Residual blocks like those of ResNet-50 run fused, too.
func TestFusionOfBottlenecks(t *testing.T) {
	gputest.NeedDNN(t)
	gradient := func(o Options) ([][]float64, []string) {
		d, n := netOf(t, o, bottlenecks)
		all, err := lossGradient(t, n, 8)
		check(t, err)
		return all, d.fused()
	}
	reference, err := lossGradient(t, netOn(t, device.NewReference(op.Float32), bottlenecks), 8)
	check(t, err)
	exact, _ := gradient(Options{Precision: number.Float32, Deterministic: true})
	for i, x := range exact { // its weights have another order
		if off := offBy(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(reference[i]))); !(off < 1e-4) {
			t.Errorf("%s: off by %.2g from the reference device's", parts[i], off)
		}
	}
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		separate, _ := gradient(Options{Precision: p, Fuse: FuseNever})
		fused, graphs := gradient(Options{Precision: p, Fuse: FuseAlways})
		if want := "forward + sums, input gradient + add + relu' + sums, input gradient + norm's relu' + sums"; sim.Active() && strings.Join(graphs, ", ") != want {
			t.Errorf("%v: graphs %q, want %s", p, graphs, want)
		}
		asExact(t, fmt.Sprintf("fused in %v", p), fused, separate, exact)
	}
}

// A NaN shows in the loss and in the scores although fusions apply ReLUs, and so does an overflow of float16.
func TestNaNOfFusions(t *testing.T) {
	gputest.NeedDNN(t)
	run := func(p number.Precision, model string, weights ...float64) (loss float64, logits []float32,
		graphs []string) {
		d, n := netOf(t, Options{Precision: p, Fuse: FuseAlways}, model)
		check(t, n.Params.WriteAt64(weights, 0))
		loss, _, err := n.Gradient(batchOf(8, 1), .1)
		check(t, err)
		logits = make([]float32, 4*8)
		_, err = n.Evaluate(batchOf(8, 2), logits)
		check(t, err)
		return loss, logits, d.fused()
	}
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		for _, model := range []string{"resnet20", bottlenecks} {
			loss, logits, graphs := run(p, model, math.NaN())
			if !math.IsNaN(loss) || !slices.ContainsFunc(logits, func(x float32) bool { return x != x }) {
				t.Errorf("%v, %s: a weight of NaN gives a loss of %v and scores %v, with %q", p, model, loss,
					logits[:4], graphs)
			}
		}
	}
	if loss, _, graphs := run(number.Float16, bottlenecks, slices.Repeat([]float64{6e4}, 8)...); !math.IsNaN(loss) &&
		!math.IsInf(loss, 0) {
		t.Errorf("weights of 60000 give a loss of %v, with %q", loss, graphs)
	}
}

// If the plans of some fusions fail, the others still run.
func TestFaultOfFusedPlans(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	gradient := func(o Options) ([][]float64, error) {
		_, n := netOf(t, o, bottlenecks)
		return lossGradient(t, n, 8)
	}
	exact, err := gradient(Options{Precision: number.Float32, Deterministic: true})
	check(t, err)
	separate, err := gradient(Options{Precision: number.Float16, Fuse: FuseNever})
	check(t, err)
	tried := 0
	for from := 1; ; from += 7 {
		var plan []string
		for i := range 4 {
			plan = append(plan, fmt.Sprintf("cudnnBackendExecute@%d=5000", from+i))
		}
		check(t, sim.Fault(strings.Join(plan, ";")))
		got, err := gradient(Options{Precision: number.Float16, Fuse: FuseAlways})
		check(t, sim.Fault(""))
		if err != nil { // a plan failed in a step, too late to replace it
			break
		}
		asExact(t, fmt.Sprintf("without plans from %d on", from), got, separate, exact)
		tried++
	}
	if tried < 4 {
		t.Errorf("%d steps without some of the plans", tried)
	}
}

// A program may compute only statistics: then only the sums read the last convolution's result.
func TestFusionOfStatistics(t *testing.T) {
	gputest.NeedDNN(t)
	stats := func(p number.Precision, fuse Fuse) []float64 {
		_, n := small(t, Options{Precision: p, Fuse: fuse})
		check(t, n.UpdateStats(batchOf(6, 1), 1))
		all := make([]float64, n.Stats.Len())
		check(t, n.Stats.ReadAt64(all, 0))
		return all
	}
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		if off := offBy(stats(p, FuseAlways), stats(p, FuseNever)); !(off < .1) {
			t.Errorf("%v: off by %.2g", p, off)
		}
	}
}
