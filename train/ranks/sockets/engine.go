// Package sockets moves small values between ranks over sockets, by way of rank 0's process: what ranks decide together, where what is large goes
// another way, as gradients between GPUs do. It starts ranks that have nothing else in common.
package sockets

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"onlinerna/train/ranks"
)

// Options say where ranks meet.
type Options struct {
	Network, Address string // "unix" and a file, or "tcp" and host:port; rank 0 listens there
	Rank, Size       int
	Key              string        // that the ranks have in common, and those of other jobs don't
	Name             string        // of the engine
	Timeout          time.Duration // for all to come

	// Lost is called, by a goroutine of the engine, when a rank has ended without a word, or has ended all: there is nothing left to do but to end this
	// process, too, as nil does, with status 1. quiet says that another rank has said, or will say, why.
	Lost func(err error, quiet bool)
}

// engine is a rank.
type engine struct {
	o       Options
	conn    net.Conn
	order   sync.Mutex // of writing: requests are sent in the order of the list
	mu      sync.Mutex // of the list and of failed
	list    []*request
	failed  error
	missing chan []int
}

var _ ranks.Engine = (*engine)(nil)

// request is an operation under way.
type request struct {
	kind kind
	to   []byte
	err  error
	done chan struct{}
}

// Open has the ranks meet. It returns once all have come, or at the end of the time.
func Open(o Options) (ranks.Engine, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(o.Timeout)
	var l net.Listener
	if o.Rank == 0 {
		if l, err = listen(o); err != nil {
			return nil, err
		}
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
	e.conn, err = dial(o, until)
	if l != nil { // rank 0 waits at its own door first: it may be shut soon
		go (&hub{listener: l}).meet(o, until)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(greeting{o.Rank, o.Size, o.Key, host})
	if err == nil {
		err = write(e.conn, frame{kind: hello, data: text})
	}
	r := bufio.NewReaderSize(e.conn, 1<<16)
	var f frame
	if err == nil {
		e.conn.SetReadDeadline(until.Add(time.Second)) // rank 0 says first why
		f, err = read(r, longest)
		e.conn.SetReadDeadline(time.Time{})
	}
	switch {
	case err != nil:
		err = fmt.Errorf("rank %d of %d at %s: rank 0 does not answer, or takes it for one of another job: %w", o.Rank, o.Size, o.Address, err)
	case f.kind == refuse:
		err = errors.New(string(f.data))
	}
	if err != nil {
		e.conn.Close()
		return nil, err
	}
	go e.receive(r)
	return e, nil
}

// listen listens at the address, with tcp on all of the host's.
func listen(o Options) (net.Listener, error) {
	at := o.Address
	if o.Network == "tcp" {
		_, port, err := net.SplitHostPort(at)
		if err != nil {
			return nil, fmt.Errorf("the ranks' address %s: want host:port: %w", at, err)
		}
		at = ":" + port
	}
	l, err := net.Listen(o.Network, at)
	if err != nil {
		return nil, fmt.Errorf("rank 0 cannot listen at %s: %w: choose another port, or is there another rank 0", o.Address, err)
	}
	return l, nil
}

// dial tries until rank 0 is there.
func dial(o Options, until time.Time) (net.Conn, error) {
	at := o.Address
	if _, port, err := net.SplitHostPort(at); o.Network == "tcp" && o.Rank == 0 && err == nil {
		at = net.JoinHostPort("localhost", port)
	}
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

// receive takes what comes from the hub.
func (e *engine) receive(r *bufio.Reader) {
	for {
		f, err := read(r, longest)
		switch {
		case err != nil:
			e.fail(fmt.Errorf("rank 0 at %s has ended", e.o.Address), e.o.Rank != 1)
			return
		case f.kind == lost:
			first := 0
			if f.n == 0 { // which has ended
				first = 1
			}
			e.fail(errors.New(string(f.data)), e.o.Rank != first)
			return
		case f.kind == abort:
			e.fail(errors.New(string(f.data)), true)
			return
		case f.kind == waiting:
			var list []int
			json.Unmarshal(f.data, &list)
			e.missing <- list
			continue
		}
		e.mu.Lock()
		q := e.list[0]
		e.list = e.list[1:]
		e.mu.Unlock()
		if q.kind != f.kind || len(q.to) != len(f.data) {
			q.err = fmt.Errorf("a %v of %d bytes has come for a %v of %d", f.kind, len(f.data), q.kind, len(q.to))
		} else {
			copy(q.to, f.data)
		}
		close(q.done)
		if f.kind == bye {
			return
		}
	}
}

// fail ends the requests, and tells the caller.
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

// send starts an operation whose result goes to a slice.
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
	write(e.conn, f) // receive notices what fails
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
	f := frame{kind: spread, n: uint32(from)}
	if e.o.Rank == from {
		f.data = b
	}
	return e.send(f, b)
}

// Gather implements ranks.Engine.
func (e *engine) Gather(all, own []byte) ranks.Request {
	return e.send(frame{kind: gather, data: own}, all)
}

// Missing implements ranks.Engine.
func (e *engine) Missing(grace time.Duration) []int {
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
		return []int{0} // its process does not answer
	}
}

// Abort implements ranks.Engine.
func (e *engine) Abort() {
	e.order.Lock()
	write(e.conn, frame{kind: abort})
	e.order.Unlock()
	time.Sleep(200 * time.Millisecond) // for rank 0's process to pass it on, where it is this one
	os.Exit(1)
}

// Close implements ranks.Engine.
func (e *engine) Close() error {
	err := e.send(frame{kind: bye}, nil).Wait(0)
	return errors.Join(err, e.conn.Close())
}
