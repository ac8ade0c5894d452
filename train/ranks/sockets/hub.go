package sockets

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"onlinerna/train/ranks"
)

// hub runs in rank 0's process: all ranks, including rank 0, send it their parts and receive the results.
type hub struct {
	*door
	peers   []*peer
	mu      sync.Mutex
	over    bool   // it ends normally, or has reported the error
	why     string // why the meeting was refused
	waiters []int
	plan    plan
}

// peer is the hub's view of a rank.
type peer struct {
	net.Conn
	name  string
	mu    sync.Mutex // for writing
	queue chan frame // operations
}

// send writes a frame.
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
	go h.accept(func(c net.Conn) {
		g, ok := h.greet(c, &o, until)
		if !ok {
			return
		}
		select {
		case arrivals <- arrival{g, c}:
		case <-done:
			if h.why != "" {
				say(c, frame{kind: refuse, data: []byte(h.why)})
			}
			c.Close()
		}
	})
	refused := "" // without a key anybody can claim to be a rank, so a false claim must not end the others
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
				say(a.c, frame{kind: refuse, data: []byte(why)})
				a.c.Close()
				if o.Key == "" && o.Network == "tcp" {
					refused = "; refused: " + why
					continue
				}
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
			h.refuse(fmt.Sprintf("not all ranks have come to %s in time: missing: rank %s%s; rank 0 listens at %s",
				o.Address, strings.Join(missing, ", "), refused, h.Addr()))
			return
		}
	}
	h.Close()
	h.plan.start(o.Size)
	h.sendAll(frame{kind: hello}, -1) // before any other frame, such as the news that a rank has ended
	for k, p := range h.peers {
		go h.listen(k, p)
	}
	h.serve()
}

// refuse tells the connected ranks, and those being greeted, the reason, and ends.
func (h *hub) refuse(why string) {
	h.why = why
	for _, p := range h.peers {
		if p != nil {
			say(p, frame{kind: refuse, data: []byte(why)})
		}
	}
	h.Close()
}

// listen reads a rank's frames.
func (h *hub) listen(k int, p *peer) {
	err := h.hear(k, p, bufio.NewReaderSize(p.Conn, 1<<16))
	why := fmt.Appendf(nil, "rank %d on %s has ended", k, p.name)
	if errors.As(err, new(disagreement)) {
		h.tell(frame{kind: lost, n: uint32(len(h.peers)), data: []byte(err.Error())}, -1)
		return
	}
	if errors.Is(err, errUnasked) || errors.Is(err, errNoRank) {
		why = fmt.Appendf(nil, "rank %d on %s: %v", k, p.name, err)
		p.send(frame{kind: lost, n: uint32(k), data: why})
		p.Close()
	}
	h.tell(frame{kind: lost, n: uint32(k), data: why}, k)
}

func (h *hub) hear(k int, p *peer, r io.Reader) error {
	for {
		at, err := readHead(r)
		if err != nil {
			return err
		}
		switch {
		case at.kind == waiting && at.size == 0:
			h.wait(k, time.Duration(at.n)*time.Millisecond)
		case at.kind == abort && at.size == 0:
			h.tell(frame{kind: abort, n: uint32(k), data: fmt.Appendf(nil, "rank %d on %s has ended all", k, p.name)}, k)
			return nil
		case at.kind.operation():
			if err := h.plan.allow(k, at); err != nil {
				return err
			}
			f, err := at.body(r, at.size)
			if err != nil {
				return err
			}
			if k == 0 {
				h.plan.begin(f)
			}
			p.queue <- f
		default:
			return fmt.Errorf("a %v of %d bytes: %w", at.kind, at.size, errUnasked)
		}
	}
}

// tell tells all ranks but one, once, how the run ends.
func (h *hub) tell(f frame, but int) {
	h.mu.Lock()
	over := h.over
	h.over = true
	h.mu.Unlock()
	if over {
		return
	}
	h.plan.end()
	h.sendAll(f, but)
}

// sendAll sends a frame to all ranks but one, to rank 0 last: rank 0 may then exit, and with it the hub. listen notices
// ranks that have ended.
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

// wait records that a rank waits in vain. After the first rank's grace all waiting ranks learn which ranks do not wait.
func (h *hub) wait(k int, grace time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(h.waiters, k) {
		return
	}
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

// serve does the operations in order until the end.
func (h *hub) serve() {
	parts := make([]frame, len(h.peers))
	for {
		for k, p := range h.peers {
			parts[k] = <-p.queue
		}
		h.plan.done()
		result, err := do(parts)
		if err != nil {
			h.tell(frame{kind: lost, n: uint32(len(h.peers)), data: []byte(err.Error())}, -1)
			return
		}
		if result.kind == bye {
			h.mu.Lock()
			h.over = true
			h.mu.Unlock()
			h.plan.end()
		}
		h.sendAll(result, -1)
		if result.kind == bye {
			return
		}
	}
}

// do combines the ranks' parts.
func do(parts []frame) (frame, error) {
	first := parts[0]
	for k, f := range parts[1:] {
		if f.kind != first.kind || f.n != first.n || first.kind != spread && len(f.data) != len(first.data) {
			return frame{}, disagree(head{first.kind, first.n, uint64(len(first.data))}, k+1,
				head{f.kind, f.n, uint64(len(f.data))})
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
		root := parts[first.n]
		for k, f := range parts {
			if k != int(first.n) && (len(f.data) != 8 || binary.LittleEndian.Uint64(f.data) != uint64(len(root.data))) {
				return frame{}, fmt.Errorf("the ranks disagree about a broadcast: rank %d sends %d bytes, rank %d wants others",
					first.n, len(root.data), k)
			}
		}
		return root, nil
	case gather:
		all := frame{kind: gather}
		for _, f := range parts {
			all.data = append(all.data, f.data...)
		}
		return all, nil
	}
	return frame{kind: first.kind}, nil
}
