//go:build gpu && cgo

package driver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gorgonia.org/cu"
)

// A Context is a GPU in use: the device's primary context and the thread that makes its calls. Its methods may be
// called concurrently.
type Context struct {
	info    Info
	primary cu.CUContext
	opts    Options
	stream  *Stream

	calls  chan call
	thread atomic.Int32 // the owner's thread id
	mu     sync.RWMutex
	closed bool // guarded by mu

	// Used only on the owner thread.
	handles map[handle]struct{}
	pinned  []*HostMemory // of handles
	pool    pool

	capturing *Graph       // the graph that is being captured, or nil
	observer  Observer     // nil: no observer
	since     atomic.Int64 // start of the owner thread's current call, in Unix nanoseconds; 0 between calls
}

// ended is the failure by which this process lost its GPUs: all contexts, open or new, are unusable from then on.
var ended atomic.Pointer[LostError]

// lost is the failure that lost the GPU, or nil.
func (c *Context) lost() *LostError { return ended.Load() }

type call struct {
	f    func() error
	done chan<- outcome
}

type outcome struct {
	err      error
	panicked any
}

// A handle is closed by the context if its owner did not close it. release runs on the owner thread, but not on a lost
// GPU: the functions that free things may never return there.
type handle interface {
	kind() string
	release() error
}

// Open opens GPU number ordinal. A missing or unusable driver is a [*lazy.NotFoundError] or [*lazy.DriverError], an
// unknown number a [*NoDeviceError]. After a GPU was lost, Open fails with [ErrLost].
func Open(ordinal int, o Options) (*Context, error) {
	if lost := ended.Load(); lost != nil {
		return nil, lost
	}
	all, err := Devices()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(all) {
		return nil, &NoDeviceError{Asked: ordinal, Devices: all}
	}
	if os.Getenv("RNA_CUDA_MEMORY") == "exact" {
		o.ExactMemory = true
	}
	c := &Context{
		info: all[ordinal], opts: o,
		calls: make(chan call), handles: map[handle]struct{}{},
	}
	c.pool.exact = o.ExactMemory
	opened := make(chan error)
	go c.own(opened)
	if err := <-opened; err != nil {
		return nil, err
	}
	if c.stream, err = c.NewStream(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// own is the owner thread's main function: it makes the device's primary context current and runs calls until Close.
func (c *Context) own(opened chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine and drops its current context
	c.thread.Store(int32(unix.Gettid()))
	c.nameThread()
	err := c.enterPrimary()
	opened <- err
	if err != nil {
		return
	}
	c.serve()
}

func (c *Context) serve() {
	for next := range c.calls {
		c.run(next)
	}
}

// run answers next. If its function panics or ends the goroutine, as a test's FailNow does, another thread becomes
// the owner.
func (c *Context) run(next call) {
	returned := false
	c.since.Store(time.Now().UnixNano())
	defer func() {
		c.since.Store(0)
		if returned {
			return
		}
		p := recover()
		if p == nil {
			p = "cuda: the function given to Do called runtime.Goexit (a test's FailNow does, too)"
			go c.takeOver(next, p)
			return
		}
		next.done <- outcome{panicked: p}
	}()
	err := next.f()
	returned = true
	next.done <- outcome{err: err}
}

// takeOver makes a thread the owner after the previous one has ended, and answers the call that ended it.
func (c *Context) takeOver(next call, panicked any) {
	runtime.LockOSThread()
	c.thread.Store(int32(unix.Gettid()))
	c.nameThread()
	if err := cu.SetCurrentContext(c.primary); err != nil {
		panicked = errors.Join(fmt.Errorf("%v", panicked), driverError("cuCtxSetCurrent", err, c.info.String()))
	}
	next.done <- outcome{panicked: panicked}
	c.serve()
}

// here reports whether the caller is the owner thread.
func (c *Context) here() bool { return int32(unix.Gettid()) == c.thread.Load() }

// primaries holds the primary context of each GPU that was opened, until the process ends: cuBLAS and cuDNN keep state
// of a context beyond their handles, and fail in a second one.
var primaries struct {
	sync.Mutex
	of map[int]cu.CUContext
}

// enterPrimary makes the GPU's primary context current.
func (c *Context) enterPrimary() error {
	primaries.Lock()
	defer primaries.Unlock()
	primary, open := primaries.of[c.info.Ordinal]
	if !open {
		device, err := cu.GetDevice(c.info.Ordinal)
		if err != nil {
			return driverError("cuDeviceGet", err, c.info.String())
		}
		if primary, err = device.RetainPrimaryCtx(); err != nil {
			return driverError("cuDevicePrimaryCtxRetain", err, c.info.String())
		}
		if primaries.of == nil {
			primaries.of = map[int]cu.CUContext{}
		}
		primaries.of[c.info.Ordinal] = primary
	}
	c.primary = primary
	return driverError("cuCtxSetCurrent", cu.SetCurrentContext(primary), c.info.String())
}

// leavePrimary leaves the owner thread without a context.
func (c *Context) leavePrimary() error {
	return driverError("cuCtxSetCurrent", cu.SetCurrentContext(cu.CUContext{}), "no context")
}

// Info describes the GPU.
func (c *Context) Info() Info { return c.info }

// Stream is the context's own stream, closed with it. Use it if one stream is enough.
func (c *Context) Stream() *Stream { return c.stream }

// Do runs f on the owner thread, where the device's context is current, and returns its error. f may call the methods
// of the context and its handles. Do fails with [ErrLost] on a lost context and [ErrClosed] on a closed one, without
// running f. A panic of f continues in the caller.
func (c *Context) Do(f func() error) error {
	return c.enter(func() error {
		if lost := c.lost(); lost != nil {
			return lost
		}
		return f()
	})
}

// enter runs f on the owner thread unless the context is closed; a lost context runs it, too.
func (c *Context) enter(f func() error) error {
	if c.here() {
		return f()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return ErrClosed
	}
	return c.hand(f)
}

func (c *Context) hand(f func() error) error {
	done := make(chan outcome, 1)
	c.calls <- call{f, done}
	out := <-done
	if out.panicked != nil {
		panic(out.panicked)
	}
	return out.err
}

// check turns an error of package cu into this package's error and records whether it lost the context.
func (c *Context) check(call string, err error, detail string) error {
	return c.note(driverError(call, err, detail))
}

func (c *Context) note(err error) error {
	if e, ok := err.(*Error); ok && e.lost() {
		ended.CompareAndSwap(nil, &LostError{e})
		return ended.Load()
	}
	return err
}

// Synchronize waits for all work of the context.
func (c *Context) Synchronize() error {
	return c.Do(func() error { return c.check("cuCtxSynchronize", cu.Synchronize(), "") })
}

// Waiting returns when the owner thread's current call began: it may wait for the GPU or for other processes. Between
// calls it is the zero time. Any goroutine may call it.
func (c *Context) Waiting() time.Time {
	if ns := c.since.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// Options returns the options given to [Open].
func (c *Context) Options() Options { return c.opts }

// Capturing reports, inside [Context.Do], whether work is captured instead of run.
func (c *Context) Capturing() bool { return c.capturing != nil }

// Verdict is the GPU's failure behind a library's error, if there is one: a library reports a kernel's failure as its
// own, and the driver knows the cause.
func (c *Context) Verdict() error {
	if c.capturing != nil {
		return nil // no work to run
	}
	return c.Synchronize()
}

// Close waits for the GPU, frees everything but the driver's primary context, and ends the owner thread. It closes
// handles that are still open and counts them in the error, except those that the context made itself. A second Close
// does nothing.
func (c *Context) Close() error {
	if c.here() {
		return errors.New("cuda: Close was called inside the context's own Do")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.hand(c.shut)
	close(c.calls)
	return err
}

func (c *Context) shut() error {
	var errs []error
	if c.lost() == nil {
		errs = append(errs, c.check("cuCtxSynchronize", cu.Synchronize(), "at the end"))
	}
	if c.stream != nil {
		errs = append(errs, c.forget(c.stream))
	}
	left := map[string]int{}
	open := slices.SortedFunc(maps.Keys(c.handles), func(a, b handle) int {
		return cmp.Compare(last(a), last(b))
	})
	for _, h := range open {
		left[h.kind()]++
		errs = append(errs, c.forget(h))
	}
	for kind, n := range left {
		errs = append(errs, fmt.Errorf("cuda: context closed with %d × %s left open", n, kind))
	}
	if c.lost() == nil {
		errs = append(errs, c.trim(), c.leavePrimary())
	}
	return errors.Join(errs...)
}

// last is 1 for a communicator, 0 for others: NCCL waits for ever for graphs that hold a communicator's operations.
func last(h handle) int {
	if h.kind() == "communicator" {
		return 1
	}
	return 0
}

// forget releases h once. On a lost GPU nothing is freed: the process's end frees it.
func (c *Context) forget(h handle) error {
	if _, open := c.handles[h]; !open {
		return nil
	}
	delete(c.handles, h)
	if c.lost() != nil {
		return nil
	}
	return h.release()
}

// drop closes a handle.
func (c *Context) drop(h handle) error {
	err := c.enter(func() error {
		if c.capturing != nil {
			return fmt.Errorf("cuda: Close of %s inside a capture", h.kind())
		}
		return c.forget(h)
	})
	if err == ErrClosed { // the context has closed the handle already
		return nil
	}
	return err
}
