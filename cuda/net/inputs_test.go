//go:build gpu && cgo

package net

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/number"
	"onlinerna/data/random"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op/expr"
	"onlinerna/train/network"
)

func init() {
	nn.Register(nn.Architecture{
		Name: "further_inputs", Size: 8, Channels: 3, Classes: 4,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.Conv("conv", x, nn.Conv{Filters: 8, Kernel: 3, Pad: 1})
			x = b.Map("masked", expr.Arg(0).Mul(expr.Arg(1)), x, b.Input("mask", 1, 8, 8))
			x = b.GlobalAvgPool("mean", b.ReLU("relu", b.BatchNorm("bn", x, 1)))
			return b.Linear("fc", b.Concat("both", 1, x, b.Input("table", 3)), 4)
		},
	})
}

// A net with further inputs has the losses and logits of the CPU device, in each precision, also in replayed steps and
// with two lanes.
func TestNetInputs(t *testing.T) {
	gputest.NeedDNN(t)
	run := func(dev device.Device) (all []float64) {
		n, err := network.New(dev, "further_inputs", nn.Config{Mean: []float64{.5}, Std: []float64{.25}}, 1)
		check(t, err)
		defer func() { check(t, n.Close()) }()
		x := &trainer{Network: n}
		x.momentum, err = n.NewParams()
		check(t, err)
		defer x.momentum.Free()
		var last []*network.Pending
		for i := range 6 {
			b, r := batchOf(6, uint64(i)), random.New(uint64(i), 1)
			b.Inputs = map[string][]float32{"mask": make([]float32, 6*64), "table": make([]float32, 6*3)}
			for _, name := range []string{"mask", "table"} {
				for k := range b.Inputs[name] {
					b.Inputs[name][k] = float32(r.Normal())
				}
			}
			p, err := x.Start(b, x.options(.05))
			check(t, err)
			if last = append(last, p); i%2 == 1 {
				for _, p := range last {
					loss, _, err := p.Wait()
					check(t, err)
					all = append(all, loss)
				}
				last = nil
			}
			if i == 5 {
				logits := make([]float32, 4*6)
				_, err := x.Evaluate(b, logits)
				check(t, err)
				for _, v := range logits {
					all = append(all, float64(v))
				}
			}
		}
		return all
	}
	host, err := cpu.New(cpu.Options{Threads: 1})
	check(t, err)
	defer host.Close()
	want := run(host)
	for p, bound := range map[number.Precision]float64{number.Float32: 1e-4, number.BFloat16: .05, number.Float16: .01} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			dev, err := openNet(Options{Precision: p})()
			check(t, err)
			defer func() { check(t, dev.Close()) }()
			for i, x := range run(dev) {
				if !(math.Abs(x-want[i]) <= bound*max(1, math.Abs(want[i]))) {
					t.Errorf("number %d is %g, want %g", i, x, want[i])
				}
			}
		})
	}
}
