package sockets

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
)

// plan holds the operations that rank 0 has started, which bound the frames of the others, and each rank's progress.
type plan struct {
	mu    sync.Mutex
	more  sync.Cond
	begun []head // by rank 0, not yet done by all; a broadcast has the size of its root
	first int    // number of the first of them
	ranks []progress
	over  bool
}

// progress is one rank's progress.
type progress struct {
	next  int      // number of its next operation
	early []uint64 // sizes of its frames for operations that rank 0 has not started
	bytes uint64   // their sum
}

// disagreement means that two ranks run different operations.
type disagreement string

func (d disagreement) Error() string {
	return "the ranks disagree about the next operation: " + string(d)
}

func disagree(first head, k int, h head) error {
	return disagreement(fmt.Sprintf("rank 0 is at a %v of %d bytes, rank %d at a %v of %d", first.kind, first.size, k,
		h.kind, h.size))
}

func (p *plan) start(ranks int) {
	p.more.L = &p.mu
	p.ranks = make([]progress, ranks)
}

// allow waits until the data of a rank's next operation may be read. It returns an error if they do not match rank 0's
// operation, or no operation at all.
func (p *plan) allow(k int, h head) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.kind == bye && h.size != 0 || h.kind == spread && int(h.n) != k && h.size != 8 {
		return fmt.Errorf("a %v of %d bytes: %w", h.kind, h.size, errUnasked)
	}
	r := &p.ranks[k]
	if k == 0 { // this process
		return nil
	}
	for !p.over && r.next >= p.first+len(p.begun) {
		if h.size <= ahead && r.bytes+h.size <= ahead {
			r.bytes += h.size
			r.early = append(r.early, h.size)
			r.next++
			return nil
		}
		p.more.Wait()
	}
	if p.over {
		return net.ErrClosed
	}
	want := p.begun[r.next-p.first]
	r.next++
	if h.kind != want.kind || h.n != want.n || h.size != want.size && (h.kind != spread || int(h.n) == k) {
		return disagree(want, k, h)
	}
	return nil
}

// begin records an operation of rank 0.
func (p *plan) begin(f frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := head{f.kind, f.n, uint64(len(f.data))}
	if f.kind == spread && f.n != 0 {
		h.size = binary.LittleEndian.Uint64(f.data)
	}
	p.begun = append(p.begun, h)
	for k := range p.ranks {
		if r := &p.ranks[k]; len(r.early) > 0 {
			r.bytes -= r.early[0]
			r.early = r.early[1:]
		}
	}
	p.more.Broadcast()
}

// done removes the first operation after all ranks have taken part.
func (p *plan) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = p.begun[1:]
	p.first++
}

// end releases the waiting goroutines.
func (p *plan) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.more.Broadcast()
}
