//go:build gpu && cgo

package net

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/driver"
)

// Sums over many blocks are deterministic in any order of the blocks and as exact as float64 sums of float32, also for
// numbers whose mean is a thousand times their deviation, and for groups of blocks.
func TestNormOfManyBlocks(t *testing.T) {
	gputest.NeedDNN(t)
	opened, err := openNet(Options{})()
	check(t, err)
	d := opened.(*Device)
	t.Cleanup(func() { check(t, d.Close()) })
	const channels, rows = 20, 7000
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, channels*rows)
	for i := range x {
		x[i] = float32(float64(i%channels)*100 + r.NormFloat64())
	}
	memory := func(n int) driver.Span {
		m, err := d.c.Alloc(int64(n))
		check(t, err)
		t.Cleanup(func() { check(t, m.Close()) })
		return m.All()
	}
	in, stats := memory(4*len(x)), memory(8*channels)
	check(t, d.stream.CopyIn(in, driver.Bytes(x)))
	for _, blocks := range []int{1, 2, blockGroup, blockGroup + 1, 3*blockGroup - 1} {
		for _, packs := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d blocks, packs %v", blocks, packs), func(t *testing.T) {
				pixels := 70 * blocks // most threads have less than a chunk
				if blocks == 2 {
					pixels = 5000
				}
				c := pass{grid: driver.Dim{X: 1, Y: blocks}, block: driver.Dim{X: 32, Y: 8}, packs: packs}
				var first []float32
				for range 2 {
					b := &binding{d: d, work: memory(16 * channels * blocks)}
					b.launch("norm.cu", "nn_moments", c.grid, c.block, in, b.work, b.counters(c), stats, driver.Span{},
						driver.Span{}, 0.,
						int64(pixels), channels, c.packs)
					check(t, b.err)
					check(t, d.c.Do(b.calls[0]))
					got := make([]float32, 2*channels)
					check(t, d.stream.CopyOut(driver.Bytes(got), stats))
					check(t, d.stream.Synchronize())
					if first == nil {
						first = got
					}
					for c := range channels {
						mean, variance := moments64(x[:pixels*channels], channels, c)
						if math.Abs(float64(got[c])-mean) > 1e-7*math.Abs(mean)+1e-7 ||
							math.Abs(float64(got[channels+c])/variance-1) > 1e-6 {
							t.Errorf("channel %d: mean %v, variance %v, want %v, %v", c, got[c], got[channels+c], mean,
								variance)
						}
						if got[c] != first[c] || got[channels+c] != first[channels+c] {
							t.Errorf("channel %d: another result the second time", c)
						}
					}
				}
			})
		}
	}
}

// moments64 returns the mean and the biased variance of a channel.
func moments64(x []float32, channels, c int) (mean, variance float64) {
	n := float64(len(x) / channels)
	for i := c; i < len(x); i += channels {
		mean += float64(x[i]) / n
	}
	for i := c; i < len(x); i += channels {
		variance += (float64(x[i]) - mean) * (float64(x[i]) - mean) / n
	}
	return mean, variance
}
