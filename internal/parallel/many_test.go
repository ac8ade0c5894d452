package parallel

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// Each block is done once a call by more workers than processors, and on more processors than there are.
func TestMoreWorkersThanProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 16, 64} {
		runtime.GOMAXPROCS(procs)
		for _, workers := range []int{2, 16, 128} {
			p := NewPool(workers)
			counts := make([]atomic.Int64, 300)
			for call := range 50 {
				if call%10 == 0 {
					time.Sleep(2 * patience) // until they sleep
				}
				p.Run(len(counts), func(_, b int) { counts[b].Add(1) })
				for b := range counts {
					if n := counts[b].Load(); n != int64(call+1) {
						t.Fatalf("%d workers on %d: block %d was done %d times in %d calls", workers, procs, b, n,
							call+1)
					}
				}
			}
			p.Close()
		}
	}
}

// The cost of too many workers: calls like those of a step, with pauses.
func BenchmarkWorkers(b *testing.B) {
	for _, workers := range []int{1, 2, 4, 16, 64} {
		b.Run(fmt.Sprintf("%d of %d", workers, runtime.GOMAXPROCS(0)), func(b *testing.B) {
			p := NewPool(workers)
			defer p.Close()
			sums := make([]float64, 64*64)
			for b.Loop() {
				for call := range 100 {
					p.Run(64, func(_, block int) { sums[64*block] += spin(5000) })
					if call%10 == 0 {
						time.Sleep(10 * time.Microsecond)
					}
					sums[0] += spin(5000)
				}
			}
		})
	}
}

func spin(n int) (s float64) {
	for i := range n {
		s += float64(i) * 1e-9
	}
	return s
}
