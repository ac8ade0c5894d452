//go:build gpu && cgo

package net

import (
	"fmt"
	"slices"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/number"
)

// gradients are those of a small net, with values made again or not, and the bytes of the arena.
func gradients(t *testing.T, o Options, low bool) (all [][]float64, bytes int) {
	t.Helper()
	_, n := small(t, o)
	n.LowMemory = low
	const batch = 16 // what is smaller is not made again
	all, err := lossGradient(t, n, batch)
	check(t, err)
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
		for i, x := range again {
			if o.Deterministic && !slices.Equal(x, kept[i]) {
				t.Errorf("%v, %s: other bits with LowMemory, off by %.2g", o.Precision, parts[i], offBy(x, kept[i]))
			}
		}
		asExact(t, fmt.Sprintf("LowMemory in %v", o.Precision), again, kept, exact)
	}
}
