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

// TestInBlocks checks that blocks have each element of each line once, and several of them where these are small.
func TestInBlocks(t *testing.T) {
	for _, c := range []struct{ lines, run, n, steps, blocks int }{
		{1, 1, 1000, 1, 1}, {100, 1, 1000, 1, 7}, {100, 1, 1000, 10, 100}, {50, 1, 1000, 10, 32}, {1, 1 << 20, 3, 1, 3},
		{1, 1, 0, 1, 0}, {1000, 16, 2, 1, 2},
	} {
		p := newPicking([]int{c.n * c.run, 1, c.run}, []int{c.n * c.run, 1, c.run}, op.Shape{c.lines, c.run, c.n}, 2)
		if c.lines > 1 && (p.lines != c.lines || p.run != c.run) {
			t.Errorf("%+v: %d lines of runs of %d", c, p.lines, p.run)
		}
		seen := make([]int, c.lines*c.n)
		phase := p.inBlocks(c.n, c.steps, func(from, to, first, end int) {
			if from != to {
				t.Errorf("%+v: from %d to %d", c, from, to)
			}
			for i := first; i < end; i++ {
				seen[from/c.run+i]++
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
