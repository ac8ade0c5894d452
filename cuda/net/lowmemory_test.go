//go:build gpu && cgo

package net

import (
	"slices"
	"testing"

	"onlinerna/cuda/internal/gputest"
	"onlinerna/cuda/number"
	"onlinerna/nn"
	"onlinerna/train/network"
)

// gradients are a loss, its gradient and the statistics, with values made again or not, and the bytes of the arena.
func gradients(t *testing.T, o Options, low bool) (all [][]float64, bytes int) {
	t.Helper()
	o.Context.KernelCache = gputest.KernelCache
	d, err := Open(0, o)
	check(t, err)
	defer func() { check(t, d.Close()) }()
	n, err := network.New(d, "resnet20", nn.Config{Classes: 4, Channels: 3, Size: 8, Mean: []float64{.5}, Std: []float64{.25}}, 1)
	check(t, err)
	defer func() { check(t, n.Close()) }()
	n.LowMemory = low
	const batch = 16 // what is smaller is not made again
	loss, _, err := n.Gradient(batchOf(batch, 1), .1)
	check(t, err)
	all = [][]float64{{loss}, make([]float64, n.Grads.Len()), make([]float64, n.Stats.Len())}
	check(t, n.Grads.ReadAt64(all[1], 0))
	check(t, n.Stats.ReadAt64(all[2], 0))
	s, err := n.Plan(batch)
	check(t, err)
	return all, s.Arena
}

// Training that makes values again has the bits of training that keeps them where the device is deterministic; else it is as exact.
func TestLowMemory(t *testing.T) {
	gputest.NeedDNN(t)
	var exact [][]float64
	for _, o := range []Options{
		{Precision: number.Float32, Deterministic: true}, {Precision: number.BFloat16, Deterministic: true},
		{Precision: number.BFloat16, Fuse: FuseAlways},
	} {
		kept, most := gradients(t, o, false)
		again, least := gradients(t, o, true)
		if exact == nil {
			exact = kept // the first are those in float32
		}
		if float64(least) > .95*float64(most) {
			t.Errorf("%v: an arena of %d bytes, of %d without LowMemory", o.Precision, least, most)
		}
		for i, name := range []string{"loss", "gradient", "statistics"} {
			if o.Deterministic && !slices.Equal(again[i], kept[i]) {
				t.Errorf("%v, %s: other bits with LowMemory, off by %.2g", o.Precision, name, offBy(again[i], kept[i]))
			}
			if one, two := offBy(again[i], exact[i]), offBy(kept[i], exact[i]); !(one <= 1.5*two+0x1p-8) || !(one < .3) {
				t.Errorf("%v, %s: off by %.2g with LowMemory, by %.2g without", o.Precision, name, one, two)
			}
		}
	}
}
