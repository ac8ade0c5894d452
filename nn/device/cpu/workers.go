package cpu

import (
	"sync"
	"sync/atomic"
)

// pool is a fixed set of workers. The goroutine that calls run is worker 0; the others sleep between
// calls.
type pool struct {
	wake []chan struct{} // of workers 1, 2, …
	done sync.WaitGroup  // workers busy in the current call
	next atomic.Int64    // first block that nobody has taken

	blocks int64
	body   func(worker, block int)
}

func newPool(workers int) *pool {
	p := &pool{wake: make([]chan struct{}, workers-1)}
	for i := range p.wake {
		wake := make(chan struct{}, 1)
		p.wake[i] = wake
		go func() {
			for range wake {
				p.work(i + 1)
				p.done.Done()
			}
		}()
	}
	return p
}

// workers is the number of workers, the caller of run included.
func (p *pool) workers() int { return len(p.wake) + 1 }

// run calls body for each block from 0 to blocks-1, in any order, and returns when all are done. Calls do not
// nest. body is told which worker runs it, for scratch memory.
func (p *pool) run(blocks int, body func(worker, block int)) {
	helpers := min(blocks-1, len(p.wake))
	if helpers <= 0 {
		for b := range blocks {
			body(0, b)
		}
		return
	}
	p.blocks, p.body = int64(blocks), body
	p.next.Store(0)
	p.done.Add(helpers)
	for _, w := range p.wake[:helpers] {
		w <- struct{}{}
	}
	p.work(0)
	p.done.Wait()
	p.body = nil
}

// work takes blocks until there are none left.
func (p *pool) work(worker int) {
	for {
		b := p.next.Add(1) - 1
		if b >= p.blocks {
			return
		}
		p.body(worker, int(b))
	}
}

// close ends the workers.
func (p *pool) close() {
	for _, w := range p.wake {
		close(w)
	}
	p.wake = nil
}
