// Package parallel shares blocks of work among goroutines: [Pool] for calls that follow each other within microseconds,
// [For] for single ones.
package parallel

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Pool is a fixed set of workers. The goroutine that calls Run is worker 0. The others spin for a while before they
// sleep, because waking one takes longer than many calls. Run waits for workers that have begun, never for one that the
// scheduler has yet to wake: on busy processors that takes milliseconds. Workers beyond GOMAXPROCS sleep at once:
// spinning would take the others' time. No worker is pinned to a core, and the worker of a block is not fixed.
type Pool struct {
	wake     []chan struct{} // of workers 1, 2, …
	asleep   []paddedFlag
	idle     chan struct{} // the last of the workers that Run waits for has left
	calls    atomic.Int64
	bothEnds bool
	looking  int // workers from this one on sleep at once

	// state is the number of workers besides the caller that are at work, plus shut when no more may join.
	state atomic.Int64
	taken atomic.Int64 // blocks that somebody has taken
	last  atomic.Int64 // with bothEnds: one past the block that the other workers take next

	// The current call. Workers read it after they have joined.
	blocks int64
	body   func(worker, block int)
}

const shut = 1 << 32

// patience is the time that a worker spins for the next call before it sleeps, and that Run spins for the last worker
// to leave: several times the 10 µs that waking one takes (BenchmarkPool). Calls of a step follow each other faster
// than that.
const patience = 50 * time.Microsecond

// paddedFlag has a cache line of its own.
type paddedFlag struct {
	atomic.Bool
	_ [64]byte
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

// NewPool starts workers-1 goroutines. Close ends them.
func NewPool(workers int) *Pool {
	p := &Pool{
		wake: make([]chan struct{}, workers-1), asleep: make([]paddedFlag, workers-1),
		idle: make(chan struct{}, 1), looking: runtime.GOMAXPROCS(0),
	}
	p.state.Store(shut)
	for i := range p.wake {
		wake := make(chan struct{}, 1)
		p.wake[i] = wake
		go p.help(i, wake)
	}
	return p
}

// NewBothEnds is a pool whose caller takes blocks from the first one on while the others take them from the last one
// back: if calls use the same data, each worker finds its part in its caches.
func NewBothEnds(workers int) *Pool {
	p := NewPool(workers)
	p.bothEnds = true
	return p
}

// help is the loop of worker i+1.
func (p *Pool) help(i int, wake chan struct{}) {
	seen := int64(0) // the first call may come before this runs
	called := func() bool { return p.calls.Load() != seen }
	for {
		if i+1 >= p.looking || !watch(called) {
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
}

// Workers is the number of workers, the caller of Run included.
func (p *Pool) Workers() int { return len(p.wake) + 1 }

// Run calls body for each block from 0 to blocks-1, in any order, and returns when all are done. Calls do not nest.
// body gets the number of its worker, for scratch memory.
func (p *Pool) Run(blocks int, body func(worker, block int)) {
	helpers := min(blocks-1, len(p.wake))
	if helpers <= 0 {
		for b := range blocks {
			body(0, b)
		}
		return
	}
	p.blocks, p.body = int64(blocks), body
	p.taken.Store(0)
	p.last.Store(p.blocks)
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
func (p *Pool) work(worker int) {
	for first := 0; ; first++ {
		b := int(p.taken.Add(1) - 1)
		if b >= int(p.blocks) {
			return
		}
		switch {
		case p.bothEnds && worker == 0:
			b = first
		case p.bothEnds:
			b = int(p.last.Add(-1))
		}
		p.body(worker, b)
	}
}

// join reports whether there is a call to join.
func (p *Pool) join() bool {
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

func (p *Pool) leave() {
	if p.state.Add(-1) == shut {
		p.idle <- struct{}{}
	}
}

// Close ends the workers. A second call does nothing.
func (p *Pool) Close() {
	p.calls.Store(-1 << 62)
	for _, w := range p.wake {
		close(w)
	}
	p.wake = nil
}
