package sockets

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"onlinerna/train/ranks"
)

// greeting is what a rank says first.
type greeting struct {
	Rank, Size int
	Key, Host  string
}

// hub is in rank 0's process: the ranks, this one too, send it what they have, and get back what comes of it.
type hub struct {
	listener net.Listener
	peers    []*peer
	mu       sync.Mutex
	over     bool   // it ends as it should, or has said why it does not
	why      string // there will be nothing
	waiters  []int
}

// peer is a rank as the hub sees it.
type peer struct {
	net.Conn
	name  string
	mu    sync.Mutex // of writing
	queue chan frame // operations
}

func (p *peer) send(f frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return write(p.Conn, f)
}

// meet accepts the ranks until all are there.
func (h *hub) meet(o Options, until time.Time) {
	h.peers = make([]*peer, o.Size)
	type arrival struct {
		g greeting
		c net.Conn
	}
	arrivals := make(chan arrival)
	done := make(chan bool)
	defer close(done)
	go func() {
		for {
			c, err := h.listener.Accept()
			if err != nil {
				return
			}
			go func() {
				c.SetReadDeadline(until)
				f, err := read(c, stranger)
				var g greeting
				if err != nil || f.kind != hello || json.Unmarshal(f.data, &g) != nil || g.Key != o.Key {
					c.Close() // no rank of these
					return
				}
				c.SetReadDeadline(time.Time{})
				select {
				case arrivals <- arrival{g, c}:
				case <-done:
					if h.why != "" {
						write(c, frame{kind: refuse, data: []byte(h.why)})
					}
					c.Close()
				}
			}()
		}
	}()
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	for here := 0; here < o.Size; {
		select {
		case a := <-arrivals:
			why := ""
			switch {
			case a.g.Size != o.Size:
				why = fmt.Sprintf("rank %d on %s is one of %d, rank 0 of %d", a.g.Rank, a.g.Host, a.g.Size, o.Size)
			case a.g.Rank < 0 || a.g.Rank >= o.Size:
				why = fmt.Sprintf("rank %d on %s: there are %d", a.g.Rank, a.g.Host, o.Size)
			case h.peers[a.g.Rank] != nil:
				why = fmt.Sprintf("rank %d is there twice: on %s and on %s", a.g.Rank, h.peers[a.g.Rank].name, a.g.Host)
			}
			if why != "" {
				write(a.c, frame{kind: refuse, data: []byte(why)})
				a.c.Close()
				h.refuse(why)
				return
			}
			h.peers[a.g.Rank] = &peer{Conn: a.c, name: a.g.Host, queue: make(chan frame, 64)}
			here++
		case <-late.C:
			var missing []string
			for k, p := range h.peers {
				if p == nil {
					missing = append(missing, fmt.Sprint(k))
				}
			}
			h.refuse(fmt.Sprintf("not all ranks have come to %s in time: missing: rank %s", o.Address, strings.Join(missing, ", ")))
			return
		}
	}
	h.listener.Close()
	h.sendAll(frame{kind: hello}, -1) // before anything else, as that one has ended already
	for k, p := range h.peers {
		go h.listen(k, p)
	}
	h.serve()
}

// refuse tells the ranks that are there, and those that are at the door, why there will be nothing, and ends.
func (h *hub) refuse(why string) {
	h.why = why
	for _, p := range h.peers {
		if p != nil {
			write(p, frame{kind: refuse, data: []byte(why)})
		}
	}
	h.listener.Close()
}

// listen takes what a rank sends.
func (h *hub) listen(k int, p *peer) {
	r := bufio.NewReaderSize(p.Conn, 1<<16)
	for {
		f, err := read(r, longest)
		switch {
		case err != nil:
			h.tell(frame{kind: lost, n: uint32(k), data: fmt.Appendf(nil, "rank %d on %s has ended", k, p.name)}, k)
			return
		case f.kind == waiting:
			h.wait(k, time.Duration(f.n)*time.Millisecond)
		case f.kind == abort:
			h.tell(frame{kind: abort, n: uint32(k), data: fmt.Appendf(nil, "rank %d on %s has ended all", k, p.name)}, k)
		default:
			p.queue <- f
		}
	}
}

// tell tells all ranks but one, once, how it ends.
func (h *hub) tell(f frame, but int) {
	h.mu.Lock()
	over := h.over
	h.over = true
	h.mu.Unlock()
	if over {
		return
	}
	h.sendAll(f, but)
}

// sendAll sends a frame to all ranks but one, to rank 0 last: it may end then, and with it the hub. That one of them has ended is noticed by listen.
func (h *hub) sendAll(f frame, but int) {
	var others sync.WaitGroup
	for k, p := range h.peers[1:] {
		if k+1 != but {
			others.Go(func() { p.send(f) })
		}
	}
	others.Wait()
	if but != 0 {
		h.peers[0].send(f)
	}
}

// wait notes that a rank waits in vain. After the first one's grace those that do so are told who does not.
func (h *hub) wait(k int, grace time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiters = append(h.waiters, k)
	if len(h.waiters) > 1 {
		return
	}
	time.AfterFunc(grace, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		var missing []int
		for k := range h.peers {
			if !slices.Contains(h.waiters, k) {
				missing = append(missing, k)
			}
		}
		list, _ := json.Marshal(missing)
		for _, k := range h.waiters {
			go h.peers[k].send(frame{kind: waiting, data: list})
		}
		h.waiters = nil
	})
}

// serve does the operations, in turn, until the end.
func (h *hub) serve() {
	parts := make([]frame, len(h.peers))
	for {
		for k, p := range h.peers {
			parts[k] = <-p.queue
		}
		result, err := do(parts)
		if err != nil {
			h.tell(frame{kind: lost, n: uint32(len(h.peers)), data: []byte(err.Error())}, -1)
			return
		}
		if result.kind == bye {
			h.mu.Lock()
			h.over = true
			h.mu.Unlock()
		}
		h.sendAll(result, -1)
		if result.kind == bye {
			return
		}
	}
}

// do is what comes of the ranks' parts.
func do(parts []frame) (frame, error) {
	first := parts[0]
	for k, f := range parts[1:] {
		if f.kind != first.kind || f.n != first.n || first.kind != spread && len(f.data) != len(first.data) {
			return frame{}, fmt.Errorf("the ranks disagree about what is next: rank 0 is at a %v of %d bytes, rank %d at a %v of %d", first.kind, len(first.data), k+1, f.kind, len(f.data))
		}
	}
	switch first.kind {
	case sum32, max32, sum64, max64:
		op := ranks.Sum
		if first.kind == max32 || first.kind == max64 {
			op = ranks.Max
		}
		for _, f := range parts[1:] {
			if first.kind == sum32 || first.kind == max32 {
				combine[float32](first.data, f.data, op)
			} else {
				combine[float64](first.data, f.data, op)
			}
		}
		return first, nil
	case spread:
		if int(first.n) >= len(parts) {
			return frame{}, errors.New("a broadcast of no rank")
		}
		return parts[first.n], nil
	case gather:
		all := frame{kind: gather}
		for _, f := range parts {
			all.data = append(all.data, f.data...)
		}
		return all, nil
	}
	return frame{kind: first.kind}, nil
}
