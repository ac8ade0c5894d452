package move

import (
	"math/rand/v2"
	"slices"
	"testing"
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
