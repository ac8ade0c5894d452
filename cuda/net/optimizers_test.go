//go:build gpu && cgo

package net

import (
	"math"
	"slices"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/schedule"
)

// Steps of optimisers with matrix products or an averaged iterate are recorded with the training step: their bits equal
// those of unrecorded steps, and their losses match the CPU's.
func TestNetOptimizers(t *testing.T) {
	gputest.NeedDNN(t)
	for _, name := range []string{"muon", "schedule-free-sgd"} {
		run := func(dev device.Device) (params []float64, loss float64) {
			t.Helper()
			c := smallRun("")
			c.Optimizer, c.Epochs, c.RNA.Mode = name, 2, average.Off
			c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 1e-2}
			r, err := train.New(c, train.Deps{Device: dev})
			check(t, err)
			check(t, r.Train(t.Context()))
			params = make([]float64, r.Net.Params.Len())
			check(t, r.Net.Params.ReadAt64(params, 0))
			check(t, r.Close())
			return params, r.History[len(r.History)-1].SGD.Loss
		}
		var losses []float64
		var all [][]float64
		for _, eager := range []bool{false, true} {
			dev, err := openNet(Options{Eager: eager})()
			check(t, err)
			params, loss := run(dev)
			check(t, dev.Close())
			all, losses = append(all, params), append(losses, loss)
		}
		if !slices.Equal(all[0], all[1]) {
			t.Errorf("%s: steps that are recorded have other bits", name)
		}
		host, err := cpu.New(cpu.Options{Threads: 2})
		check(t, err)
		_, want := run(host)
		check(t, host.Close())
		if got := losses[0]; math.Abs(got-want) > 1e-3*want {
			t.Errorf("%s: the validation loss is %g, the CPU's %g", name, got, want)
		}
	}
}
