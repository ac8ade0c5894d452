package parallel

import (
	"sync/atomic"
	"testing"
)

// Each piece is done once, and no two at a time under one worker number.
func TestFor(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100} {
		for _, workers := range []int{1, 2, 3, 7} {
			done := make([]atomic.Int32, n)
			busy := make([]atomic.Int32, workers)
			For(n, workers, func(worker, i int) {
				if busy[worker].Add(1) != 1 {
					t.Errorf("worker %d does two pieces at a time", worker)
				}
				done[i].Add(1)
				busy[worker].Add(-1)
			})
			for i := range done {
				if got := done[i].Load(); got != 1 {
					t.Errorf("n = %d, %d workers: piece %d was done %d times", n, workers, i, got)
				}
			}
		}
	}
}

func TestWorkers(t *testing.T) {
	if Workers(3) != 3 || Workers(0) < 1 || Workers(-1) < 1 {
		t.Errorf("3 gives %d, 0 gives %d", Workers(3), Workers(0))
	}
}
