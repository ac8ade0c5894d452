package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestPoolRunsEachBlockOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 7} {
		p := newPool(workers)
		for _, blocks := range []int{0, 1, 2, 5, 100} {
			counts := make([]atomic.Int32, blocks)
			p.run(blocks, func(worker, block int) {
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
		p.close()
		p.close()
	}
}

// Workers that have gone to sleep join the next call, and so do those that are about to.
func TestSleepersJoin(t *testing.T) {
	p := newPool(2)
	defer p.close()
	for pause := patience / 4; pause < 40*patience; pause *= 2 {
		time.Sleep(pause)
		var joined atomic.Bool
		deadline := time.Now().Add(10 * time.Second)
		p.run(2, func(worker, _ int) {
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

func TestCloseEndsWorkers(t *testing.T) {
	before := runtime.NumGoroutine()
	d, err := New(Options{Threads: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{Threads: -1}); err == nil {
		t.Error("-1 threads must be an error")
	}
	if d := open(t, 0); d.pool.workers() != runtime.GOMAXPROCS(0) {
		t.Errorf("%d workers by default, want %d", d.pool.workers(), runtime.GOMAXPROCS(0))
	}
}

// A worker that does not get to run must not hold up the others.
func TestRunDoesNotWaitForSleepers(t *testing.T) {
	p := newPool(3)
	defer p.close()
	sleeper := p.wake[1]
	p.wake[1] = make(chan struct{}, 1) // nobody listens
	for range 100 {
		var n atomic.Int32
		p.run(50, func(int, int) { n.Add(1) })
		if n.Load() != 50 {
			t.Fatalf("%d of 50 blocks", n.Load())
		}
	}
	close(sleeper)
}

func TestPoolUnderLoad(t *testing.T) {
	p := newPool(7)
	defer p.close()
	stop := make(chan struct{})
	defer close(stop)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	sums := make([]int, 40)
	for round := range 300 {
		p.run(len(sums), func(_, b int) { sums[b]++ })
		for b, n := range sums {
			if n != round+1 {
				t.Fatalf("round %d: block %d ran %d times", round, b, n)
			}
		}
	}
}
