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

// Available says whether the program was built with MPI.
const Available = true

const (
	pause  = 50 * time.Microsecond  // between tests of operations that nobody waits for, or for long
	hot    = 50                     // tests that follow each other at once while somebody waits
	spin   = 200 * time.Millisecond // then other threads may run between tests, for so long: then the other ranks are at something else
	window = 4                      // operations that are tested at once: a test of one is progress for all
	piece  = 1 << 28                // elements of one call: MPI counts in int
)

// engine calls MPI from one goroutine at a time: that which starts an operation or waits for one, or, while nobody waits, one of its own.
type engine struct {
	lib         *library
	rank, size  int
	comm, probe uintptr // the communicators of operations and of Missing

	calling sync.Mutex // by who calls MPI; it is only tried, since a call may take long
	active  []*call    // have begun and are not known to be done
	flag    [1]int32   // of a test

	mu     sync.Mutex
	queued []*call     // to begin, in this order
	closed atomic.Bool // set with mu held: nothing is queued any more

	under   atomic.Int32 // operations that are not known to be done
	waiting atomic.Int32 // goroutines that wait
	asleep  atomic.Bool  // the engine's own goroutine is, until woken
	woken   chan struct{}
	last    chan func() // runs on the thread that has started MPI
}

var (
	_ ranks.Engine = (*engine)(nil)
	_ ranks.Plain  = (*engine)(nil)
)

// call is an operation. It holds the memory that C writes to until it is done.
type call struct {
	e       *engine
	name    string
	start   func(request uintptr) (rc uintptr) // 0 for what is done at once
	probe   bool
	request [1]uintptr // MPICH's are half of it
	memory  any
	err     error
	done    atomic.Bool
}

// Open starts MPI with the library that belongs to the launcher, for which all ranks have to come within a time. It may be called once in a process.
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

// pointer is the address of the first element of a slice in the heap, 0 for none.
func pointer[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// thread starts MPI, and ends it: that has to be the same one.
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
	for _, to := range []*uintptr{&e.comm, &e.probe} { // of e, so in the heap
		rc, _, _ = purego.SyscallN(l.dup, l.world, uintptr(unsafe.Pointer(to)))
		if err := l.failed("MPI_Comm_dup", rc); err != nil {
			return err
		}
	}
	return nil
}

// errClosed is what comes of operations behind Close.
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

// queue begins an operation as soon as nobody else calls MPI.
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

// wake has progress look at what there is to do.
func (e *engine) wake() {
	if e.asleep.CompareAndSwap(true, false) {
		e.woken <- struct{}{}
	}
}

// try calls MPI unless somebody else does: it begins what is queued, and tests one call, or those under way for nil.
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

// end notes that a call is done.
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

// several is requests as one.
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
	if len(own) > math.MaxInt32 { // a rank's part after the other: each is where it belongs already, or is sent by its rank
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

// Missing implements ranks.Engine: ranks that wait in vain tell each other so.
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

// Abort implements ranks.Engine. Where a call hangs in the library the process ends by itself, upon which launchers end the others.
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

// Close implements ranks.Engine. Operations that are under way, and later ones, are errors.
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

// exitC is C's exit, once MPI has been ended.
var exitC atomic.Uintptr

// Exit ends the process. Where MPI was in use, that is by C's exit: MPICH 5 says goodbye to its launcher when that calls what is registered with
// it; the launcher kills the other ranks of one that ends without.
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
