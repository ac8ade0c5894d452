package convex

import (
	"sync/atomic"
	"testing"
	"time"
)

// Each block is done once a call, whether workers are awake, asleep or late.
func TestPool(t *testing.T) {
	for _, helpers := range []int{1, 3} {
		p := newPool(helpers)
		var counts [16]atomic.Int64
		const calls = 3000
		for call := range calls {
			if call%1000 == 500 {
				time.Sleep(5 * time.Millisecond) // until they sleep
			}
			p.run(len(counts), func(b int) { counts[b].Add(1) })
			if n := counts[call%len(counts)].Load(); n != int64(call+1) {
				t.Fatalf("%d helpers: a block was done %d times in %d calls", helpers, n, call+1)
			}
		}
		p.close()
		for b := range counts {
			if n := counts[b].Load(); n != calls {
				t.Errorf("%d helpers: block %d was done %d times in %d calls", helpers, b, n, calls)
			}
		}
	}
}
