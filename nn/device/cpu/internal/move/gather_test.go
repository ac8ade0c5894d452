package move

import (
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/nn/op"
)

// TestPlaces has lists with numbers that do not count. Each places sorts two lists.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, extent := range []int{1, 2, 7} {
		for _, n := range []int{0, 1, 40} {
			p := newPlaces(extent, n)
			for range 2 {
				index := make([]int32, n)
				want := make([][]int, extent)
				for k := range index {
					i := r.IntN(extent+4) - 2
					index[k] = int32(i)
					if i >= 0 && i < extent {
						want[i] = append(want[i], k)
					}
				}
				p.sort(index)
				for i := range extent {
					if got := p.of(i); !slices.Equal(got, want[i]) {
						t.Errorf("%v: %d is at %v, want %v", index, i, got, want[i])
					}
				}
			}
		}
	}
}

// TestInBlocks checks that blocks have each element once, and several elements where these are small.
func TestInBlocks(t *testing.T) {
	for _, c := range []struct{ lines, n, steps, blocks int }{
		{1, 1000, 1, 1}, {100, 1000, 1, 7}, {100, 1000, 10, 63}, {1 << 20, 3, 1, 3}, {1, 0, 1, 0}, {0, 5, 1, 1},
	} {
		p := &picking{outer: op.Shape{c.lines}}
		seen := make([]int, c.n)
		phase := p.inBlocks(c.n, c.steps, func(first, end int) {
			for i := first; i < end; i++ {
				seen[i]++
			}
		})
		for block := range phase.Blocks {
			phase.Run(0, block)
		}
		if i := slices.IndexFunc(seen, func(n int) bool { return n != 1 }); phase.Blocks != c.blocks || i >= 0 {
			t.Errorf("%+v: %d blocks; element %d is not there once", c, phase.Blocks, i)
		}
	}
}
