//go:build gpu && cgo

package net

import (
	"fmt"
	"slices"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/number"
)

// gradients returns the gradients of a small net, with activations recomputed if low, and the bytes of the arena.
func gradients(t *testing.T, o Options, low bool) (all [][]float64, bytes int) {
	t.Helper()
	_, n := small(t, o)
	n.LowMemory = low
	const batch = 16 // smaller activations are not recomputed
	all, err := lossGradient(t, n, batch)
	check(t, err)
	s, err := n.Plan(batch)
	check(t, err)
	return all, s.Arena
}

// Training with recomputation gives the same bits on a deterministic device; otherwise it is as exact.
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
			exact = kept // the first results are in float32
		}
		if float64(least) > .95*float64(most) {
			t.Errorf("%v: an arena of %d bytes, of %d without LowMemory", o.Precision, least, most)
		}
		for i, x := range again {
			if o.Deterministic && !slices.Equal(x, kept[i]) {
				t.Errorf("%v, %s: other bits with LowMemory, off by %.2g", o.Precision, parts[i], offBy(x, kept[i]))
			}
		}
		asExact(t, fmt.Sprintf("LowMemory in %v", o.Precision), again, kept, exact)
	}
}
