package cpu

import (
	"runtime"
	"sync/atomic"
	"time"
)

// pool is a fixed set of workers. The goroutine that calls run is worker 0; the others look for calls for a while
// and then sleep: to wake one takes longer than many a call. run waits for workers that have begun, never for
// one that the scheduler has yet to wake: where other goroutines keep the processors busy, that takes milliseconds.
type pool struct {
	wake   []chan struct{} // of workers 1, 2, …
	asleep []paddedFlag
	idle   chan struct{} // the last of the workers that run waits for has left
	calls  atomic.Int64

	// state is the number of workers besides the caller that are at work, plus shut when no more may join.
	state atomic.Int64
	next  atomic.Int64 // first block that nobody has taken

	// The current call. Workers read it after they have joined.
	blocks int64
	body   func(worker, block int)
}

const shut = 1 << 32

// patience is for how long a worker looks for the next call before it sleeps, and run for the last worker to leave.
const patience = 50 * time.Microsecond

// paddedFlag is alone in its line of cache.
type paddedFlag struct {
	atomic.Bool
	_ [cacheLine]byte
}

// watch waits for ready, but not longer than patience. Meanwhile other goroutines may run.
func watch(ready func() bool) bool {
	if ready() {
		return true
	}
	start := time.Now()
	for {
		for range 100 {
			if ready() {
				return true
			}
		}
		if time.Since(start) > patience {
			return false
		}
		runtime.Gosched()
	}
}

func newPool(workers int) *pool {
	p := &pool{
		wake: make([]chan struct{}, workers-1), asleep: make([]paddedFlag, workers-1),
		idle: make(chan struct{}, 1),
	}
	p.state.Store(shut)
	for i := range p.wake {
		wake := make(chan struct{}, 1)
		p.wake[i] = wake
		go func() {
			seen := int64(0) // the first call may come before this runs
			called := func() bool { return p.calls.Load() != seen }
			for {
				if !watch(called) {
					p.asleep[i].Store(true)
					if !called() {
						if _, ok := <-wake; !ok {
							return
						}
					}
					p.asleep[i].Store(false)
				}
				if seen = p.calls.Load(); seen < 0 {
					return
				}
				if p.join() {
					p.work(i + 1)
					p.leave()
				}
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
	p.state.Store(0)
	p.calls.Add(1)
	for i, w := range p.wake[:helpers] {
		if !p.asleep[i].Load() {
			continue
		}
		select {
		case w <- struct{}{}:
		default: // it has yet to wake from the last call
		}
	}
	p.work(0)
	if p.state.Add(shut) > shut {
		watch(func() bool { return p.state.Load() == shut })
		<-p.idle
	}
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

// join says whether there is a call to join.
func (p *pool) join() bool {
	for {
		s := p.state.Load()
		if s >= shut {
			return false
		}
		if p.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

func (p *pool) leave() {
	if p.state.Add(-1) == shut {
		p.idle <- struct{}{}
	}
}

// close ends the workers.
func (p *pool) close() {
	p.calls.Store(-1 << 62)
	for _, w := range p.wake {
		close(w)
	}
	p.wake = nil
}
