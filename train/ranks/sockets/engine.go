// Package sockets moves small values between ranks through rank 0's process: the ranks' joint decisions, when large
// data takes another way, such as gradients between GPUs. Ranks need nothing else in common to start.
package sockets

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"onlinerna/internal/text"
	"onlinerna/train/ranks"
)

// Options configure the meeting of the ranks.
type Options struct {
	Network, Address string // "unix" and a file, or "tcp" and host:port; rank 0 listens there
	Rank, Size       int
	Listen           string        // the host where rank 0 listens with tcp, "" for that of Address
	Key              string        // the job's secret: ranks must prove that they know it; "" accepts every connection
	Job              string        // identifies the job among others; no secret
	Name             string        // of the engine
	Timeout          time.Duration // for all ranks to connect
	Patience         time.Duration // time for a connection to identify itself; 0 means 10 s

	// Lost is called by a goroutine of the engine when a rank has ended unexpectedly or has aborted all. It must end this
	// process; nil exits with status 1. quiet means that another rank reports the reason.
	Lost func(err error, quiet bool)
}

// engine is a rank.
type engine struct {
	o       Options
	conn    net.Conn
	order   sync.Mutex // for writing: requests are sent in the order of the list
	mu      sync.Mutex // guards the list and failed
	list    []*request
	failed  error
	missing chan []int
}

var _ ranks.Engine = (*engine)(nil)

// request is a running operation.
type request struct {
	kind kind
	to   []byte
	err  error
	done chan struct{}
}

// Open connects the ranks. It returns once all have connected, or at the timeout.
func Open(o Options) (ranks.Engine, error) { return open(o, listen) }

func open(o Options, listen func(Options) (net.Listener, error)) (ranks.Engine, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(o.Timeout)
	var h *hub
	at := o.Address
	if o.Rank == 0 {
		l, err := listen(o)
		if err != nil {
			return nil, err
		}
		h, at = &hub{door: &door{Listener: l}}, l.Addr().String()
	}
	e := &engine{o: o, missing: make(chan []int, 1)}
	if e.o.Lost == nil {
		e.o.Lost = func(err error, quiet bool) {
			if !quiet {
				fmt.Fprintln(os.Stderr, "rna:", err)
			}
			os.Exit(1)
		}
	}
	var r *bufio.Reader
	for {
		e.conn, err = dial(o, at, until)
		if h != nil { // rank 0 connects to itself first: the listener may close soon
			go h.meet(o, until)
			h = nil
		}
		if err != nil {
			return nil, err
		}
		r = bufio.NewReaderSize(e.conn, 1<<16)
		e.conn.SetReadDeadline(until.Add(time.Second)) // rank 0 reports the reason first
		if err = introduce(e.conn, r, &o, host); !errors.Is(err, errTurnedAway) || time.Until(until) < 100*time.Millisecond {
			break
		}
		e.conn.Close()
		time.Sleep(100 * time.Millisecond)
	}
	var f frame
	if err == nil {
		f, err = readShort(r)
		e.conn.SetReadDeadline(time.Time{})
	}
	switch {
	case err != nil:
		err = fmt.Errorf("rank %d of %d at %s: %w", o.Rank, o.Size, o.Address, err)
	case f.kind == refuse:
		err = errors.New(text.Printable(string(f.data)))
	case f.kind != hello:
		err = fmt.Errorf("rank %d of %d at %s: a %v from rank 0, which nothing asked for", o.Rank, o.Size, o.Address, f.kind)
	}
	if err != nil {
		e.conn.Close()
		return nil, err
	}
	go e.receive(r)
	return e, nil
}

// dial retries until rank 0 listens.
func dial(o Options, at string, until time.Time) (net.Conn, error) {
	for {
		c, err := net.DialTimeout(o.Network, at, max(time.Until(until), time.Millisecond))
		if err == nil {
			return c, nil
		}
		if time.Until(until) < 100*time.Millisecond {
			return nil, fmt.Errorf("rank %d of %d: rank 0 is not at %s after %v: %w", o.Rank, o.Size, o.Address, o.Timeout, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// receive reads frames from the hub.
func (e *engine) receive(r *bufio.Reader) {
	for {
		h, err := readHead(r)
		if err == nil && h.kind.operation() {
			if err = e.result(h, r); err == nil {
				if h.kind == bye {
					return
				}
				continue
			}
		}
		var f frame
		if err == nil {
			f, err = h.body(r, short+16*uint64(e.o.Size))
		}
		switch {
		case errors.Is(err, errUnasked) || errors.Is(err, errNoRank):
			e.conn.Close()
			e.fail(fmt.Errorf("rank 0 at %s: %w", e.o.Address, err), false)
			return
		case err != nil:
			e.fail(fmt.Errorf("rank 0 at %s has ended", e.o.Address), e.o.Rank != 1)
			return
		case f.kind == lost:
			first := 0
			if f.n == 0 { // rank f.n has ended
				first = 1
			}
			e.fail(errors.New(text.Printable(string(f.data))), e.o.Rank != first)
			return
		case f.kind == abort:
			e.fail(errors.New(text.Printable(string(f.data))), true)
			return
		case f.kind == waiting:
			var list []int
			json.Unmarshal(f.data, &list)
			select {
			case e.missing <- list:
			default: // nobody waits for it any more
			}
		default:
			e.conn.Close()
			e.fail(fmt.Errorf("rank 0 at %s: a %v: %w", e.o.Address, f.kind, errUnasked), false)
			return
		}
	}
}

// errUnasked is the error of a peer that breaks the protocol.
var errUnasked = errors.New("nothing asked for it")

// result reads the result of the first request into its destination. Any other result is an error of the hub.
func (e *engine) result(h head, r io.Reader) error {
	e.mu.Lock()
	if len(e.list) == 0 {
		e.mu.Unlock()
		return fmt.Errorf("a %v of %d bytes: %w", h.kind, h.size, errUnasked)
	}
	q := e.list[0]
	if q.kind != h.kind || uint64(len(q.to)) != h.size {
		e.mu.Unlock()
		return fmt.Errorf("a %v of %d bytes, for a %v of %d: %w", h.kind, h.size, q.kind, len(q.to), errUnasked)
	}
	e.mu.Unlock()
	if _, err := io.ReadFull(r, q.to); err != nil {
		return err
	}
	e.mu.Lock()
	e.list = e.list[1:]
	e.mu.Unlock()
	close(q.done)
	return nil
}

// fail ends the requests and calls Lost.
func (e *engine) fail(err error, quiet bool) {
	e.mu.Lock()
	e.failed = err
	for _, q := range e.list {
		q.err = err
		close(q.done)
	}
	e.list = nil
	e.mu.Unlock()
	e.o.Lost(err, quiet)
}

// send starts an operation whose result goes to the slice to.
func (e *engine) send(f frame, to []byte) ranks.Request {
	q := &request{kind: f.kind, to: to, done: make(chan struct{})}
	e.order.Lock()
	defer e.order.Unlock()
	e.mu.Lock()
	failed := e.failed
	if failed == nil {
		e.list = append(e.list, q)
	}
	e.mu.Unlock()
	if failed != nil {
		q.err = failed
		close(q.done)
		return q
	}
	write(e.conn, f) // receive notices a failure
	return q
}

// Wait implements ranks.Request.
func (q *request) Wait(timeout time.Duration) error {
	var late <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-q.done:
		return q.err
	case <-late:
		return ranks.ErrTimeout
	}
}

// Name implements ranks.Engine.
func (e *engine) Name() string { return e.o.Name }

// Rank implements ranks.Engine.
func (e *engine) Rank() int { return e.o.Rank }

// Size implements ranks.Engine.
func (e *engine) Size() int { return e.o.Size }

// Reduce32 implements ranks.Engine.
func (e *engine) Reduce32(x []float32, op ranks.Op) ranks.Request {
	return e.send(frame{kind: []kind{sum32, max32}[op], data: raw(x)}, raw(x))
}

// Reduce64 implements ranks.Engine.
func (e *engine) Reduce64(x []float64, op ranks.Op) ranks.Request {
	return e.send(frame{kind: []kind{sum64, max64}[op], data: raw(x)}, raw(x))
}

// Broadcast implements ranks.Engine.
func (e *engine) Broadcast(b []byte, from int) ranks.Request {
	f := frame{kind: spread, n: uint32(from), data: b}
	if e.o.Rank != from {
		f.data = binary.LittleEndian.AppendUint64(nil, uint64(len(b))) // the size for the hub to expect
	}
	return e.send(f, b)
}

// Gather implements ranks.Engine.
func (e *engine) Gather(all, own []byte) ranks.Request {
	return e.send(frame{kind: gather, data: own}, all)
}

// Missing implements ranks.Engine.
func (e *engine) Missing(grace time.Duration) []int {
	select {
	case <-e.missing: // drops an answer that came too late
	default:
	}
	e.order.Lock()
	err := write(e.conn, frame{kind: waiting, n: uint32(grace.Milliseconds())})
	e.order.Unlock()
	if err != nil {
		return nil
	}
	select {
	case list := <-e.missing:
		return list
	case <-time.After(grace + 5*time.Second):
		return []int{0} // rank 0's process does not answer
	}
}

// Abort implements ranks.Engine.
func (e *engine) Abort() {
	e.order.Lock()
	write(e.conn, frame{kind: abort})
	e.order.Unlock()
	time.Sleep(200 * time.Millisecond) // time for the hub to forward it, if this is rank 0's process
	os.Exit(1)
}

// Close implements ranks.Engine.
func (e *engine) Close() error {
	err := e.send(frame{kind: bye}, nil).Wait(0)
	return errors.Join(err, e.conn.Close())
}
