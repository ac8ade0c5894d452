//go:build mpi && linux

package mpi

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
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
	spin   = 200 * time.Millisecond // tests follow each other for so long while somebody waits: then the others are at something else
	window = 4                      // operations that are tested at once: a test of one is progress for all
	piece  = 1 << 28                // elements of one call: MPI counts in int
)

// engine hands operations to the thread that calls MPI.
type engine struct {
	lib         *library
	rank, size  int
	comm, probe uintptr // the communicators of operations and of Missing
	calls       chan *call
	waiting     atomic.Int32 // goroutines that wait
	flag        [1]int32     // of a test
}

var (
	_ ranks.Engine = (*engine)(nil)
	_ ranks.Plain  = (*engine)(nil)
)

// call is an operation: what to start on the thread. It holds the memory that C writes to until it is done.
type call struct {
	e       *engine
	name    string
	start   func(request uintptr) (rc uintptr) // 0 for what is done at once
	probe   bool
	request [1]uintptr // MPICH's are half of it
	memory  any
	err     error
	ended   chan struct{}
}

// Open starts MPI with the library that belongs to the launcher, for which all ranks have to come within a time. It may be called once in a process.
func Open(w ranks.World, timeout time.Duration) (ranks.Engine, error) {
	var err error
	e := &engine{calls: make(chan *call, 64)}
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
	return e, nil
}

// pointer is the address of the first element of a slice in the heap, 0 for none.
func pointer[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// thread is the one that calls MPI.
func (e *engine) thread(started chan<- error) {
	runtime.LockOSThread()
	started <- keepSignals(e.init)
	var active []*call
	since := time.Now() // the last operation began or ended
	for {
		if len(active) == 0 {
			active = e.begin(active, <-e.calls)
			since = time.Now()
			continue
		}
		select {
		case c := <-e.calls:
			active = e.begin(active, c)
			since = time.Now()
			continue
		default:
		}
		before := len(active)
		active = e.test(active)
		switch {
		case len(active) < before:
			since = time.Now()
		case e.waiting.Load() > 0 && time.Since(since) < spin:
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			time.Sleep(pause)
		}
	}
}

// init starts MPI.
func (e *engine) init() error {
	l := e.lib
	rc, _, _ := purego.SyscallN(l.initThread, 0, 0, l.funneled, pointer(l.number[:]))
	if int32(rc) != 0 {
		return fmt.Errorf("MPI_Init_thread failed with code %d", int32(rc))
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

// begin starts an operation.
func (e *engine) begin(active []*call, c *call) []*call {
	c.err = e.lib.failed(c.name, c.start(pointer(c.request[:])))
	if c.err != nil || c.request[0] == 0 {
		close(c.ended)
		return active
	}
	return append(active, c)
}

// test is the operations that are still under way.
func (e *engine) test(active []*call) []*call {
	n := 0
	return slices.DeleteFunc(active, func(c *call) bool {
		if n++; n > window && !c.probe {
			return false
		}
		e.flag[0] = 0
		rc, _, _ := purego.SyscallN(e.lib.test, pointer(c.request[:]), pointer(e.flag[:]), e.lib.statusIgnore)
		c.err = e.lib.failed(c.name, rc)
		if c.err == nil && e.flag[0] == 0 {
			return false
		}
		close(c.ended)
		return true
	})
}

// queue hands an operation to the thread.
func (e *engine) queue(c *call) *call {
	c.e, c.ended = e, make(chan struct{})
	e.calls <- c
	return c
}

// Wait implements ranks.Request.
func (c *call) Wait(timeout time.Duration) error {
	c.e.waiting.Add(1)
	defer c.e.waiting.Add(-1)
	var late <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-c.ended:
		return c.err
	case <-late:
		return ranks.ErrTimeout
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

// Abort implements ranks.Engine. Where the thread hangs in the library the process ends by itself, upon which launchers end the others.
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

// Close implements ranks.Engine.
func (e *engine) Close() error {
	return e.queue(&call{name: "MPI_Finalize", start: func(uintptr) uintptr {
		rc, _, _ := purego.SyscallN(e.lib.finalize)
		return rc
	}}).Wait(0)
}
