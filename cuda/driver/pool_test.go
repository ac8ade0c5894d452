//go:build gpu && cgo

package driver

import (
	"testing"

	"gorgonia.org/cu"
)

func TestPoolTakesTheSmallestThatFits(t *testing.T) {
	var p pool
	for i, n := range []int64{4096, 512, 1 << 20, 4096, 8192} {
		p.put(block{cu.DevicePtr(i + 1), n})
	}
	for _, test := range []struct{ ask, want int64 }{{4096, 4096}, {3900, 4096}, {3584, 0}, {7000, 0}, {7500, 8192},
		{512, 512}, {2 << 20, 0}} {
		b, ok := p.take(test.ask)
		if b.size != test.want || ok != (test.want != 0) {
			t.Errorf("asked for %d: got %d, want %d", test.ask, b.size, test.want)
		}
	}
	if p.stats.Cached != 1<<20 || len(p.freed) != 1 {
		t.Errorf("left: %+v", p.freed)
	}
}
