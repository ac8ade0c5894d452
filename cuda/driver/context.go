//go:build gpu && cgo

package driver

import (
	"errors"
	"fmt"
	"os"
	"runtime"
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
	device  cu.Device
	primary cu.CUContext
	opts    Options
	stream  *Stream

	calls  chan call
	thread atomic.Int32 // the owner's thread id
	mu     sync.RWMutex
	closed bool // guarded by mu

	// The owner thread's own.
	handles map[handle]struct{}
	pinned  []*HostMemory // of handles
	pool    pool

	capturing *Graph       // the work of a stream is captured for it
	observer  Observer     // nil: nobody wants to know
	since     atomic.Int64 // in nanoseconds of Unix, when the call began that the owner thread is at; 0 for none
}

// ended is the failure that took GPUs from this process: no context, open or new, is of use from then on.
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

// A handle is what a context closes when its owner did not. release runs on the owner thread, and not on a lost GPU, where functions
// that give things back may wait for ever.
type handle interface {
	kind() string
	release() error
}

// Open opens GPU number ordinal. A driver that is missing or unusable is a [*lazy.NotFoundError] or
// [*lazy.DriverError], a number that is not there a [*NoDeviceError]. After a GPU was lost it is [ErrLost].
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

// own is the owner thread: it makes the device's primary context current and runs calls until they end.
func (c *Context) own(opened chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its current context with it
	c.thread.Store(int32(unix.Gettid()))
	err := c.retain()
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

// run answers next, also when its function panics or, as a test's FailNow does, ends the goroutine: then another
// thread becomes the owner.
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
			p = "cuda: runtime.Goexit, as of a test's FailNow, inside Do"
			go c.takeOver(next, p)
			return
		}
		next.done <- outcome{panicked: p}
	}()
	err := next.f()
	returned = true
	next.done <- outcome{err: err}
}

// takeOver makes a thread the owner after the one before has ended, and answers the call that ended it.
func (c *Context) takeOver(next call, panicked any) {
	runtime.LockOSThread()
	c.thread.Store(int32(unix.Gettid()))
	if err := cu.SetCurrentContext(c.primary); err != nil {
		panicked = errors.Join(fmt.Errorf("%v", panicked), driverError("cuCtxSetCurrent", err, c.info.String()))
	}
	next.done <- outcome{panicked: panicked}
	c.serve()
}

// here reports whether the caller is the owner thread.
func (c *Context) here() bool { return int32(unix.Gettid()) == c.thread.Load() }

func (c *Context) retain() error {
	device, err := cu.GetDevice(c.info.Ordinal)
	if err != nil {
		return driverError("cuDeviceGet", err, c.info.String())
	}
	primary, err := device.RetainPrimaryCtx()
	if err != nil {
		return driverError("cuDevicePrimaryCtxRetain", err, c.info.String())
	}
	if err := cu.SetCurrentContext(primary); err != nil {
		return errors.Join(driverError("cuCtxSetCurrent", err, c.info.String()),
			driverError("cuDevicePrimaryCtxRelease", device.ReleasePrimaryCtx(), ""))
	}
	c.device, c.primary = device, primary
	return nil
}

// release gives the primary context back.
func (c *Context) release() error {
	return errors.Join(driverError("cuCtxSetCurrent", cu.SetCurrentContext(cu.CUContext{}), "no context"),
		driverError("cuDevicePrimaryCtxRelease", c.device.ReleasePrimaryCtx(), c.info.String()))
}

// Info describes the GPU.
func (c *Context) Info() Info { return c.info }

// Stream is the context's own stream, closed with it. Use it where one stream is enough.
func (c *Context) Stream() *Stream { return c.stream }

// Do runs f on the owner thread, where the device's context is current, and returns its error. The context's and its
// handles' methods may be called inside. It fails with [ErrLost] on a lost context and [ErrClosed] on a closed one, without
// running f. A panic of f
// goes on in the caller.
func (c *Context) Do(f func() error) error {
	return c.enter(func() error {
		if lost := c.lost(); lost != nil {
			return lost
		}
		return f()
	})
}

// enter runs f on the owner thread, whatever the context's state but closed.
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

// check turns an error of package cu into what the caller gets, and notes when it lost the context.
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

// Waiting is since when the owner thread is at a call: that may wait for the GPU, or for other processes. It is the zero time where it is at none, and may be called
// by any goroutine.
func (c *Context) Waiting() time.Time {
	if ns := c.since.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// Options are those of [Open].
func (c *Context) Options() Options { return c.opts }

// Capturing says, inside [Context.Do], whether work is captured instead of done.
func (c *Context) Capturing() bool { return c.capturing != nil }

// Verdict is the failure of the GPU behind an error of a library, if there is one: a kernel's failure shows as the library's, and the
// driver knows better.
func (c *Context) Verdict() error {
	if c.capturing != nil {
		return nil // nothing was to run
	}
	return c.Synchronize()
}

// Close waits for the GPU, gives everything back and ends the owner thread. Handles that are still open, but for what
// the context made itself, are closed and counted in the error. A second Close does nothing.
func (c *Context) Close() error {
	if c.here() {
		return errors.New("cuda: Close of a context inside its Do")
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
	for h := range c.handles {
		left[h.kind()]++
		errs = append(errs, c.forget(h))
	}
	for kind, n := range left {
		errs = append(errs, fmt.Errorf("cuda: context closed with %d × %s left open", n, kind))
	}
	if c.lost() == nil {
		errs = append(errs, c.trim(), c.release())
	}
	return errors.Join(errs...)
}

// forget releases h, once. On a lost GPU nothing is given back: that goes with the process.
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

// drop is Close of a handle.
func (c *Context) drop(h handle) error {
	err := c.enter(func() error {
		if c.capturing != nil {
			return fmt.Errorf("cuda: Close of %s inside a capture", h.kind())
		}
		return c.forget(h)
	})
	if err == ErrClosed { // the context closed it
		return nil
	}
	return err
}
