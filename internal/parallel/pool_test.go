package parallel

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestPoolRunsEachBlockOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 7} {
		testEachBlockOnce(t, workers, NewPool(workers))
	}
}

func testEachBlockOnce(t *testing.T, workers int, p *Pool) {
	t.Helper()
	if p.Workers() != workers {
		t.Errorf("%d workers, want %d", p.Workers(), workers)
	}
	for _, blocks := range []int{0, 1, 2, 5, 100} {
		counts := make([]atomic.Int32, blocks)
		p.Run(blocks, func(worker, block int) {
			if worker < 0 || worker >= workers {
				t.Errorf("worker %d of %d", worker, workers)
			}
			counts[block].Add(1)
		})
		for b := range counts {
			if n := counts[b].Load(); n != 1 {
				t.Errorf("%d workers: block %d of %d ran %d times", workers, b, blocks, n)
			}
		}
	}
	p.Close()
	p.Close()
}

// Workers that have gone to sleep join the next call, and so do those that are about to.
func TestSleepersJoin(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for pause := patience / 4; pause < 40*patience; pause *= 2 {
		time.Sleep(pause)
		var joined atomic.Bool
		deadline := time.Now().Add(10 * time.Second)
		p.Run(2, func(worker, _ int) {
			if worker == 1 {
				joined.Store(true)
			}
			for !joined.Load() && time.Now().Before(deadline) {
				runtime.Gosched()
			}
		})
		if !joined.Load() {
			t.Fatalf("the second worker did not join after a pause of %v", pause)
		}
	}
}

// Each worker begins with its own share, and one that has finished takes the last blocks of another's.
func TestShares(t *testing.T) {
	const workers, blocks = 3, 12
	p := NewPool(workers)
	defer p.Close()
	lists := make([][]int, workers)
	var begun atomic.Int32
	deadline := time.Now().Add(10 * time.Second)
	p.Run(blocks, func(worker, b int) {
		lists[worker] = append(lists[worker], b)
		if len(lists[worker]) == 1 {
			begun.Add(1)
		}
		for worker > 0 && begun.Load() < workers+1 || begun.Load() < workers { // others wait while worker 0 does the rest
			if time.Now().After(deadline) {
				return
			}
			runtime.Gosched()
		}
		if worker == 0 && len(lists[0]) == blocks-workers+1 {
			begun.Add(1)
		}
	})
	want := [][]int{{0, 1, 2, 3, 7, 6, 5, 11, 10, 9}, {4}, {8}}
	if !slices.EqualFunc(lists, want, slices.Equal) {
		t.Errorf("workers took the blocks %v, want %v", lists, want)
	}
	for blocks := range 2 * workers { // fewer than workers too
		var n atomic.Int32
		p.Run(blocks, func(int, int) { n.Add(1) })
		if int(n.Load()) != blocks {
			t.Errorf("%d of %d blocks", n.Load(), blocks)
		}
	}
}

// A worker that does not get to run must not hold up the others.
func TestRunDoesNotWaitForSleepers(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	sleeper := p.wake[1]
	p.wake[1] = make(chan struct{}, 1) // no receiver
	for range 100 {
		var n atomic.Int32
		p.Run(50, func(int, int) { n.Add(1) })
		if n.Load() != 50 {
			t.Fatalf("%d of 50 blocks", n.Load())
		}
	}
	close(sleeper)
}

func TestPoolUnderLoad(t *testing.T) {
	p := NewPool(7)
	defer p.Close()
	stop := make(chan struct{})
	defer close(stop)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for {
				select {
				case <-stop:
					return
				default: //lint:ignore SA5004 it is to be busy
				}
			}
		}()
	}
	sums := make([]int, 40)
	for round := range 300 {
		p.Run(len(sums), func(_, b int) { sums[b]++ })
		for b, n := range sums {
			if n != round+1 {
				t.Fatalf("round %d: block %d ran %d times", round, b, n)
			}
		}
	}
}

// Each block is done once a call, whether workers are awake, asleep or late.
func TestManyCalls(t *testing.T) {
	for _, p := range []*Pool{NewPool(2), NewPool(4)} {
		var counts [16]atomic.Int64
		const calls = 3000
		for call := range calls {
			if call%1000 == 500 {
				time.Sleep(5 * time.Millisecond) // until they sleep
			}
			p.Run(len(counts), func(_, b int) { counts[b].Add(1) })
			for b := range counts {
				if n := counts[b].Load(); n != int64(call+1) {
					t.Fatalf("%d workers: block %d was done %d times in %d calls", p.Workers(), b, n, call+1)
				}
			}
		}
		p.Close()
	}
}

// A call with awake workers, and one with sleeping workers: the gain of spinning.
func BenchmarkPool(b *testing.B) {
	for name, pause := range map[string]time.Duration{"awake": 0, "asleep": 4 * patience} {
		b.Run(name, func(b *testing.B) {
			p := NewPool(runtime.GOMAXPROCS(0))
			defer p.Close()
			blocks := p.Workers()
			for b.Loop() {
				b.StopTimer()
				time.Sleep(pause)
				b.StartTimer()
				p.Run(blocks, func(int, int) { // long enough for the other workers to come
					for start := time.Now(); time.Since(start) < 20*time.Microsecond; {
					}
				})
			}
		})
	}
}
