// Package rankstest tests code that runs over ranks: Run starts ranks as goroutines of one process, and Suite is the
// conformance suite of engines.
package rankstest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"onlinerna/train/ranks"
)

// Run calls f on n ranks, goroutines of this process, and returns when all have returned. An operation times out if a
// rank does not join it.
func Run(t testing.TB, n int, timeout time.Duration, f func(g *ranks.Group) error) {
	t.Helper()
	for k, err := range Errors(t, n, timeout, f) {
		if err != nil {
			t.Errorf("rank %d: %v", k, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// Errors is Run for functions that should fail: it returns each rank's error.
func Errors(t testing.TB, n int, timeout time.Duration, f func(g *ranks.Group) error) []error {
	t.Helper()
	w := &world{size: n, steps: map[int]*step{}}
	w.changed = sync.NewCond(&w.mu)
	errs := make([]error, n)
	var group sync.WaitGroup
	for k := range n {
		group.Go(func() {
			g, err := ranks.Join(&engine{world: w, rank: k}, ranks.Options{Timeout: timeout})
			if err == nil {
				errs[k] = errAborted
				err = f(g)
			}
			errs[k] = err
		})
	}
	group.Wait()
	return errs
}

var errAborted = errors.New("aborted")

// world is the ranks' shared state: the running operations by number.
type world struct {
	size    int
	mu      sync.Mutex
	changed *sync.Cond
	steps   map[int]*step
}

// step is one operation with the ranks' parts.
type step struct {
	parts []any // one for each rank, nil before it joins
	came  int
	done  bool
	err   error
}

type engine struct {
	world *world
	rank  int
	next  int // number of its next operation
	last  *step
}

var _ ranks.Engine = (*engine)(nil)

func (e *engine) Name() string { return "goroutines" }
func (e *engine) Rank() int    { return e.rank }
func (e *engine) Size() int    { return e.world.size }

type reduce[T float32 | float64] struct {
	x  []T
	op ranks.Op
}

type broadcast struct {
	b    []byte
	from int
}

type gather struct{ all, own []byte }

func (e *engine) Reduce32(x []float32, op ranks.Op) ranks.Request {
	return e.join(reduce[float32]{x, op})
}
func (e *engine) Reduce64(x []float64, op ranks.Op) ranks.Request {
	return e.join(reduce[float64]{x, op})
}
func (e *engine) Broadcast(b []byte, from int) ranks.Request { return e.join(broadcast{b, from}) }
func (e *engine) Gather(all, own []byte) ranks.Request       { return e.join(gather{all, own}) }

// join gives this rank's part to its next operation; the last rank computes the result.
func (e *engine) join(part any) ranks.Request {
	w := e.world
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.steps[e.next]
	if s == nil {
		s = &step{parts: make([]any, w.size)}
		w.steps[e.next] = s
	}
	e.next++
	e.last = s
	s.parts[e.rank] = part
	if s.came++; s.came == w.size {
		s.err = s.finish()
		s.done = true
		delete(w.steps, e.next-1)
		w.changed.Broadcast()
	}
	return request{w, s}
}

func (s *step) finish() error {
	switch s.parts[0].(type) {
	case reduce[float32]:
		return combine[float32](s.parts)
	case reduce[float64]:
		return combine[float64](s.parts)
	case broadcast:
		p, err := parts[broadcast](s.parts)
		if err != nil {
			return err
		}
		for _, to := range p {
			if len(to.b) != len(p[0].b) || to.from != p[0].from {
				return errors.New("the ranks' broadcasts differ")
			}
			copy(to.b, p[to.from].b)
		}
	case gather:
		p, err := parts[gather](s.parts)
		if err != nil {
			return err
		}
		for _, to := range p {
			n := len(p[0].own)
			if len(to.own) != n || len(to.all) != n*len(p) {
				return errors.New("the ranks' gathers differ")
			}
			for k, from := range p {
				copy(to.all[k*n:], from.own)
			}
		}
	}
	return nil
}

// parts converts the ranks' parts to those of one kind of operation.
func parts[P any](list []any) ([]P, error) {
	out := make([]P, len(list))
	for k, x := range list {
		p, ok := x.(P)
		if !ok {
			return nil, fmt.Errorf("rank 0 wants %T, rank %d %T", list[0], k, x)
		}
		out[k] = p
	}
	return out, nil
}

func combine[T float32 | float64](list []any) error {
	p, err := parts[reduce[T]](list)
	if err != nil {
		return err
	}
	first := p[0]
	for k, q := range p {
		if len(q.x) != len(first.x) || q.op != first.op {
			return fmt.Errorf("rank 0 wants the %v of %d numbers, rank %d the %v of %d", first.op, len(first.x), k, q.op,
				len(q.x))
		}
	}
	for i := range first.x {
		sum := first.x[i]
		for _, q := range p[1:] {
			if first.op == ranks.Max {
				sum = max(sum, q.x[i])
			} else {
				sum += q.x[i]
			}
		}
		for _, q := range p {
			q.x[i] = sum
		}
	}
	return nil
}

type request struct {
	world *world
	step  *step
}

// Wait implements ranks.Request.
func (r request) Wait(timeout time.Duration) error {
	w := r.world
	late := false
	if timeout > 0 {
		defer time.AfterFunc(timeout, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			late = true
			w.changed.Broadcast()
		}).Stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for !r.step.done && !late {
		w.changed.Wait()
	}
	if !r.step.done {
		return ranks.ErrTimeout
	}
	return r.step.err
}

// Missing implements ranks.Engine.
func (e *engine) Missing(time.Duration) []int {
	w := e.world
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []int
	for k, p := range e.last.parts {
		if p == nil {
			list = append(list, k)
		}
	}
	return list
}

// Abort implements ranks.Engine: it ends only the rank's goroutine.
func (e *engine) Abort() { runtime.Goexit() }

// Close implements ranks.Engine.
func (e *engine) Close() error { return nil }
