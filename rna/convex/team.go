package convex

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A team goes over the rows of a matrix. Rows are cut into blocks by the matrix alone and what blocks give is
// added in order, so that results do not depend on the number of processors.
type team struct {
	bounds []int // of blocks
	serial bool

	pool *pool // while begun
}

const (
	maxBlocks   = 16
	serialWork  = 1 << 15 // values; below, goroutines cost more than they gain
	minRows     = 32
	gradientBit = 4 // gradients of blocks may hold 1/gradientBit of what the matrix does
)

func newTeam(m *Matrix) *team {
	blocks := min(maxBlocks, m.n/minRows, m.NonZeros()/m.d/gradientBit)
	blocks = max(blocks, 1)
	t := &team{bounds: make([]int, blocks+1), serial: m.NonZeros() < serialWork}
	for b := range blocks + 1 {
		t.bounds[b] = b * m.n / blocks
	}
	return t
}

func (t *team) blocks() int { return len(t.bounds) - 1 }

// begin keeps workers ready until the function that it returns is called. It need not be called.
func (t *team) begin() (end func()) {
	helpers := min(runtime.GOMAXPROCS(0), t.blocks()) - 1
	if t.serial || helpers < 1 || t.pool != nil {
		return func() {}
	}
	t.pool = newPool(helpers)
	return func() {
		t.pool.close()
		t.pool = nil
	}
}

// each calls f for every block, with the rows [lo, hi) of it.
func (t *team) each(f func(b, lo, hi int)) {
	block := func(b int) { f(b, t.bounds[b], t.bounds[b+1]) }
	workers := min(runtime.GOMAXPROCS(0), t.blocks())
	switch {
	case t.serial || workers == 1:
		for b := range t.blocks() {
			block(b)
		}
	case t.pool != nil:
		t.pool.run(t.blocks(), block)
	default:
		var next atomic.Int64
		work := func() {
			for b := next.Add(1) - 1; b < int64(t.blocks()); b = next.Add(1) - 1 {
				block(int(b))
			}
		}
		var wg sync.WaitGroup
		for range workers - 1 {
			wg.Go(work)
		}
		work()
		wg.Wait()
	}
}

// A pool is goroutines that stay awake for a while after a call, since the next one follows within microseconds. A
// call waits for those that have begun, never for one that has yet to wake.
type pool struct {
	wake []chan struct{}
	done sync.WaitGroup

	calls atomic.Int64 // what the workers look out for
	state atomic.Int64 // workers at work, plus shut when no more may join
	taken atomic.Int64 // number of blocks
	last  atomic.Int64 // block that a worker took: they begin at the end, the caller at the start, so that
	// both find in their caches what they had the last time

	// The current call. Workers read it after they have joined.
	blocks int64
	body   func(block int)
}

const (
	shut = 1 << 32

	// looks is how often a worker looks for the next call before it sleeps: for some 100 µs.
	looks      = 1 << 16
	politeness = 64 // looks between which others may have the processor
)

func newPool(helpers int) *pool {
	p := &pool{wake: make([]chan struct{}, helpers)}
	p.state.Store(shut)
	for i := range p.wake {
		p.wake[i] = make(chan struct{}, 1)
		p.done.Go(func() { p.help(p.wake[i]) })
	}
	return p
}

func (p *pool) help(wake chan struct{}) {
	seen := int64(0)
	for {
		for i := 0; p.calls.Load() == seen; i++ {
			if i < looks {
				if i%politeness == politeness-1 {
					runtime.Gosched()
				}
				continue
			}
			if _, open := <-wake; !open {
				return
			}
			i = 0
		}
		select {
		case _, open := <-wake:
			if !open {
				return
			}
		default:
		}
		seen = p.calls.Load()
		if p.join() {
			for p.taken.Add(1) <= p.blocks {
				p.body(int(p.last.Add(-1)))
			}
			p.state.Add(-1)
		}
	}
}

// run calls body for each block and returns when all are done.
func (p *pool) run(blocks int, body func(block int)) {
	p.blocks, p.body = int64(blocks), body
	p.taken.Store(0)
	p.last.Store(p.blocks)
	p.state.Store(0)
	p.calls.Add(1)
	for _, w := range p.wake[:min(blocks-1, len(p.wake))] {
		select {
		case w <- struct{}{}:
		default: // it has yet to take the last one
		}
	}
	for b := 0; p.taken.Add(1) <= p.blocks; b++ {
		body(b)
	}
	for p.state.Add(shut); p.state.Load() != shut; {
		runtime.Gosched()
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

func (p *pool) close() {
	for _, w := range p.wake {
		close(w)
	}
	p.calls.Add(1)
	p.done.Wait()
}
