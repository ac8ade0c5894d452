//go:build mpi && linux

package mpi

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"onlinerna/train/ranks"
)

// Available reports whether the program was built with MPI.
const Available = true

const (
	pause  = 50 * time.Microsecond  // between tests of operations while nobody waits, or during a long wait
	hot    = 50                     // consecutive tests without a pause while somebody waits
	spin   = 200 * time.Millisecond // shorter waits yield between tests; in longer ones the other ranks are busy
	window = 4                      // operations tested at once: one test makes progress on all
	piece  = 1 << 28                // elements of one call: MPI counts in int
)

// engine calls MPI from one goroutine at a time: the one that starts an operation or waits for one, or, while nobody
// waits, the engine's own.
type engine struct {
	lib         *library
	rank, size  int
	comm, probe uintptr // the communicators of operations and of Missing

	calling sync.Mutex // held while calling MPI; only TryLock, since a call may take long
	active  []*call    // started and not known to be done
	flag    [1]int32   // of a test

	mu     sync.Mutex
	queued []*call     // to start, in this order
	closed atomic.Bool // set with mu held: nothing is queued after it

	under   atomic.Int32 // operations not known to be done
	waiting atomic.Int32 // waiting goroutines
	asleep  atomic.Bool  // the engine's own goroutine sleeps until woken
	woken   chan struct{}
	last    chan func() // runs on the thread that started MPI
}

var (
	_ ranks.Engine = (*engine)(nil)
	_ ranks.Plain  = (*engine)(nil)
)

// call is an operation. It owns the memory that C writes to until the operation is done.
type call struct {
	e       *engine
	name    string
	start   func(request uintptr) (rc uintptr) // request 0 if done at once
	probe   bool
	request [1]uintptr // MPICH uses half of it
	memory  any
	err     error
	done    atomic.Bool
}

// Open starts MPI with the launcher's library; all ranks have to join within the timeout. It may be called once in a
// process.
func Open(w ranks.World, timeout time.Duration) (ranks.Engine, error) {
	var err error
	e := &engine{woken: make(chan struct{}, 1), last: make(chan func())}
	if err = keepSignals(func() error { e.lib, err = load(w); return err }); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go e.thread(started)
	select {
	case err = <-started:
	case <-time.After(timeout):
		err = fmt.Errorf("MPI has not started after %v: not all ranks have come", timeout)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.lib.name, err)
	}
	go e.progress()
	return e, nil
}

// pointer is the address of a slice's first element on the heap, 0 for none.
func pointer[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// thread starts and ends MPI: both must run on the same thread.
func (e *engine) thread(started chan<- error) {
	runtime.LockOSThread()
	started <- keepSignals(e.init)
	for f := range e.last {
		f()
	}
}

// init starts MPI.
func (e *engine) init() error {
	l := e.lib
	rc, _, _ := purego.SyscallN(l.initThread, 0, 0, l.serialized, pointer(l.number[:]))
	if int32(rc) != 0 {
		return fmt.Errorf("MPI_Init_thread failed with code %d", int32(rc))
	}
	if uintptr(l.number[0]) < l.serialized {
		return errors.New("this library takes calls of one thread alone: it was built without threads")
	}
	rc, _, _ = purego.SyscallN(l.setErrors, l.world, l.errorsReturn)
	if err := l.failed("MPI_Comm_set_errhandler", rc); err != nil {
		return err
	}
	purego.SyscallN(l.rank, l.world, pointer(l.number[1:2]))
	purego.SyscallN(l.size, l.world, pointer(l.number[2:3]))
	e.rank, e.size = int(l.number[1]), int(l.number[2])
	for _, to := range []*uintptr{&e.comm, &e.probe} { // fields of e, so on the heap
		rc, _, _ = purego.SyscallN(l.dup, l.world, uintptr(unsafe.Pointer(to)))
		if err := l.failed("MPI_Comm_dup", rc); err != nil {
			return err
		}
	}
	return nil
}

// errClosed is the error of operations after Close.
var errClosed = errors.New("MPI has been ended: the engine is closed")

// progress tests operations while nobody waits for one.
func (e *engine) progress() {
	for !e.closed.Load() {
		e.asleep.Store(true)
		if e.under.Load() == 0 && !e.closed.Load() || !e.asleep.CompareAndSwap(true, false) {
			<-e.woken
		}
		for e.under.Load() > 0 {
			if e.waiting.Load() == 0 {
				e.try(nil)
			}
			time.Sleep(pause)
		}
	}
}

// queue starts an operation as soon as nobody else calls MPI.
func (e *engine) queue(c *call) *call {
	c.e = e
	e.under.Add(1)
	e.mu.Lock()
	closed := e.closed.Load()
	if !closed {
		e.queued = append(e.queued, c)
	}
	e.mu.Unlock()
	if closed {
		e.end(c, errClosed)
		return c
	}
	e.try(c)
	if !c.done.Load() {
		e.wake()
	}
	return c
}

// wake makes progress check for work.
func (e *engine) wake() {
	if e.asleep.CompareAndSwap(true, false) {
		e.woken <- struct{}{}
	}
}

// try calls MPI unless another goroutine does: it starts the queued operations and tests one call, or all running ones
// if c is nil.
func (e *engine) try(c *call) {
	if !e.calling.TryLock() {
		return
	}
	defer e.calling.Unlock()
	e.mu.Lock()
	queued := e.queued
	e.queued = nil
	e.mu.Unlock()
	for _, q := range queued {
		err := e.lib.failed(q.name, q.start(pointer(q.request[:])))
		if err != nil || q.request[0] == 0 {
			e.end(q, err)
		} else {
			e.active = append(e.active, q)
		}
	}
	if c != nil && (c.done.Load() || c.request[0] == 0) {
		return
	}
	n := 0
	e.active = slices.DeleteFunc(e.active, func(a *call) bool {
		if n++; c != nil && a != c || c == nil && n > window && !a.probe {
			return false
		}
		e.flag[0] = 0
		rc, _, _ := purego.SyscallN(e.lib.test, pointer(a.request[:]), pointer(e.flag[:]), e.lib.statusIgnore)
		err := e.lib.failed(a.name, rc)
		if err == nil && e.flag[0] == 0 {
			return false
		}
		e.end(a, err)
		return true
	})
}

// end marks a call as done.
func (e *engine) end(c *call, err error) {
	c.err = err
	c.done.Store(true)
	e.under.Add(-1)
}

// Wait implements ranks.Request.
func (c *call) Wait(timeout time.Duration) error {
	e := c.e
	e.waiting.Add(1)
	defer e.waiting.Add(-1)
	since := time.Now()
	for n := 0; ; n++ {
		e.try(c)
		if c.done.Load() {
			return c.err
		}
		if n < hot {
			continue
		}
		switch waited := time.Since(since); {
		case timeout > 0 && waited > timeout:
			return ranks.ErrTimeout
		case waited < spin:
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			time.Sleep(pause)
		}
	}
}

// several combines requests into one.
type several []*call

// Wait implements ranks.Request.
func (s several) Wait(timeout time.Duration) error {
	for _, c := range s {
		if err := c.Wait(timeout); err != nil {
			return err
		}
	}
	return nil
}

// Name implements ranks.Engine.
func (e *engine) Name() string { return e.lib.name }

// Rank implements ranks.Engine.
func (e *engine) Rank() int { return e.rank }

// Size implements ranks.Engine.
func (e *engine) Size() int { return e.size }

// Reduce32 implements ranks.Engine.
func (e *engine) Reduce32(x []float32, op ranks.Op) ranks.Request {
	return reduce(e, x, e.lib.float, op)
}

// Reduce64 implements ranks.Engine.
func (e *engine) Reduce64(x []float64, op ranks.Op) ranks.Request {
	return reduce(e, x, e.lib.double, op)
}

func reduce[T float32 | float64](e *engine, x []T, typ uintptr, op ranks.Op) ranks.Request {
	l := e.lib
	how := l.sum
	if op == ranks.Max {
		how = l.max
	}
	var s several
	for part := range slices.Chunk(x, piece) {
		s = append(s, e.queue(&call{name: "MPI_Iallreduce", memory: part, start: func(request uintptr) uintptr {
			rc, _, _ := purego.SyscallN(l.iallreduce, l.inPlace, pointer(part), uintptr(len(part)), typ, how, e.comm, request)
			return rc
		}}))
	}
	return s
}

// PlainSum32 implements ranks.Plain.
func (e *engine) PlainSum32(x []float32) error {
	l := e.lib
	return e.queue(&call{name: "MPI_Allreduce", memory: x, start: func(uintptr) uintptr {
		rc, _, _ := purego.SyscallN(l.allreduce, l.inPlace, pointer(x), uintptr(len(x)), l.float, l.sum, e.comm)
		return rc
	}}).Wait(0)
}

// Broadcast implements ranks.Engine.
func (e *engine) Broadcast(b []byte, from int) ranks.Request {
	l := e.lib
	var s several
	for part := range slices.Chunk(b, piece) {
		s = append(s, e.queue(&call{name: "MPI_Ibcast", memory: part, start: func(request uintptr) uintptr {
			rc, _, _ := purego.SyscallN(l.ibcast, pointer(part), uintptr(len(part)), l.bytes, uintptr(from), e.comm, request)
			return rc
		}}))
	}
	return s
}

// Gather implements ranks.Engine.
func (e *engine) Gather(all, own []byte) ranks.Request {
	l := e.lib
	if len(own) > math.MaxInt32 { // one rank's part at a time: each is in its place already, or its rank sends it
		copy(all[e.rank*len(own):], own)
		var s several
		for k := range e.size {
			s = append(s, e.Broadcast(all[k*len(own):(k+1)*len(own)], k).(several)...)
		}
		return s
	}
	return e.queue(&call{name: "MPI_Iallgather", memory: [][]byte{all, own}, start: func(request uintptr) uintptr {
		n := uintptr(len(own))
		rc, _, _ := purego.SyscallN(l.iallgather, pointer(own), n, l.bytes, pointer(all), n, l.bytes, e.comm, request)
		return rc
	}})
}

// Missing implements ranks.Engine: ranks that wait in vain tell each other.
func (e *engine) Missing(grace time.Duration) []int {
	l := e.lib
	here := make([]*call, e.size)
	for k := range e.size {
		if k == e.rank {
			continue
		}
		for _, send := range []bool{true, false} {
			f, b := l.irecv, make([]byte, 1)
			if send {
				f = l.isend
			}
			c := e.queue(&call{name: "a message", memory: b, probe: true, start: func(request uintptr) uintptr {
				rc, _, _ := purego.SyscallN(f, pointer(b), 1, l.bytes, uintptr(k), 7, e.probe, request)
				return rc
			}})
			if !send {
				here[k] = c
			}
		}
	}
	until := time.Now().Add(grace)
	var list []int
	for k, c := range here {
		if k != e.rank && c.Wait(max(1, time.Until(until))) != nil {
			list = append(list, k)
		}
	}
	return list
}

// Abort implements ranks.Engine. If a call hangs in the library, only this process exits, and the launcher ends the
// others.
func (e *engine) Abort() {
	go func() {
		e.queue(&call{name: "MPI_Abort", start: func(uintptr) uintptr {
			rc, _, _ := purego.SyscallN(e.lib.abort, e.lib.world, 1)
			return rc
		}})
	}()
	time.Sleep(2 * time.Second)
	os.Exit(1)
}

// Close implements ranks.Engine. Running and later operations fail.
func (e *engine) Close() error {
	e.mu.Lock()
	before := e.closed.Swap(true)
	e.mu.Unlock()
	if before {
		return errClosed
	}
	done := make(chan error)
	e.last <- func() {
		e.calling.Lock()
		defer e.calling.Unlock()
		rc, _, _ := purego.SyscallN(e.lib.finalize)
		for _, c := range append(e.active, e.queued...) {
			e.end(c, errClosed)
		}
		e.active, e.queued = nil, nil
		done <- e.lib.failed("MPI_Finalize", rc)
	}
	err := <-done
	e.wake()
	if exit, e := purego.Dlsym(purego.RTLD_DEFAULT, "exit"); e == nil && err == nil {
		exitC.Store(exit)
	}
	return err
}

// exitC is C's exit once MPI has ended.
var exitC atomic.Uintptr

// Exit ends the process, after the use of MPI by C's exit: MPICH 5 says goodbye to its launcher in an exit handler, and
// the launcher kills the other ranks if a rank ends without it.
func Exit(code int) {
	if exit := exitC.Load(); exit != 0 {
		go func() {
			time.Sleep(2 * time.Second)
			os.Exit(code)
		}()
		purego.SyscallN(exit, uintptr(code))
	}
	os.Exit(code)
}
