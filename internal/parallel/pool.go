// Package parallel shares blocks of work among goroutines: [Pool] for calls that follow each other within microseconds,
// [For] for single ones.
package parallel

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

// Pool is a fixed set of workers. The goroutine that calls Run is worker 0. The others spin for a while before they
// sleep, because waking one takes longer than many calls. Run waits for workers that have begun, never for one that the
// scheduler has yet to wake: on busy processors that takes milliseconds. Workers beyond GOMAXPROCS sleep at once:
// spinning would take the others' time. No worker is pinned to a core.
//
// Each worker begins with a share of neighbouring blocks, the same part of them in all calls, and when that is done
// takes blocks of others' shares. If calls use the same data, a worker finds most of its part in its own caches.
type Pool struct {
	wake    []chan struct{} // of workers 1, 2, …
	asleep  []paddedFlag
	idle    chan struct{} // the last of the workers that Run waits for has left
	calls   atomic.Int64
	looking int // workers from this one on sleep at once

	// state is the number of workers besides the caller that are at work, plus shut when no more may join.
	state atomic.Int64
	taken atomic.Int64 // blocks that somebody has taken or is about to

	// The current call. Workers read it after they have joined.
	blocks int64
	shares []share // of all workers, or of as many as there are blocks
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

// share has the blocks from the number in its lower half to before that in its upper half. It has a cache line of its
// own.
type share struct {
	atomic.Uint64
	_ [56]byte
}

// take removes the first block, or the last one, and returns false if there is none.
func (s *share) take(last bool) (block int, ok bool) {
	for {
		both := s.Load()
		first, end := both&math.MaxUint32, both>>32
		switch {
		case first >= end:
			return 0, false
		case last && s.CompareAndSwap(both, both-1<<32):
			return int(end) - 1, true
		case !last && s.CompareAndSwap(both, both+1):
			return int(first), true
		}
	}
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
		idle: make(chan struct{}, 1), looking: runtime.GOMAXPROCS(0), shares: make([]share, workers),
	}
	p.state.Store(shut)
	for i := range p.wake {
		wake := make(chan struct{}, 1)
		p.wake[i] = wake
		go p.help(i, wake)
	}
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
	p.shares = p.shares[:min(blocks, cap(p.shares))]
	for i := range p.shares {
		first, end := i*blocks/len(p.shares), (i+1)*blocks/len(p.shares)
		p.shares[i].Store(uint64(first) | uint64(end)<<32)
	}
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
	own := worker * len(p.shares) / p.Workers()
	for p.taken.Add(1) <= p.blocks {
		p.body(worker, p.take(own))
	}
}

// take removes the first block of a worker's own share or, if there is none, the last one of another's. Each caller has
// counted a block as taken, so that there is one in the shares that it has yet to look at.
func (p *Pool) take(own int) int {
	for i := own; ; i++ {
		if b, ok := p.shares[i%len(p.shares)].take(i > own); ok {
			return b
		}
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
