package augment

import (
	"math"
	"testing"

	"onlinerna/data/random"
)

// The mean of λ is 1/2; with a small parameter λ is near 0 or 1.
func TestBeta(t *testing.T) {
	sum, ends := 0., 0
	const n = 2000
	b := Images{N: 2, Height: 1, Width: 1, Channels: 1, Pix: []uint8{0, 255}, Labels: []int32{0, 1},
		Other: make([]int32, 2)}
	var spare []uint8
	for i := range n {
		r := random.New(9, uint64(i))
		share := Mix{Mixup: .2}.Apply(b, &r, &spare)
		sum += share
		if math.Abs(share-.5) > .4 {
			ends++
		}
	}
	if mean := sum / n; math.Abs(mean-.5) > .04 || ends < n/2 {
		t.Errorf("mean %g, %d of %d near the ends", mean, ends, n)
	}
}
