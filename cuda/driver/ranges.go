//go:build gpu && cgo

package driver

import (
	"fmt"

	"onlinerna/cuda/nvtx"
)

// Begin opens a range of the context's work under a name, inside those that are open: a profiler shows the calls up to
// End in it. Without a profiler it does nothing.
func (c *Context) Begin(name string) {
	if nvtx.On() {
		_ = c.enter(func() error { nvtx.Push(name); return nil }) // a closed context has no work
	}
}

// End closes the range that was opened last.
func (c *Context) End() {
	if nvtx.On() {
		_ = c.enter(func() error { nvtx.Pop(); return nil })
	}
}

// In runs f in a range.
func (c *Context) In(name string, f func() error) error {
	c.Begin(name)
	defer c.End()
	return f()
}

// nameThread names the owner thread, the caller, for a profiler.
func (c *Context) nameThread() {
	if nvtx.On() {
		nvtx.NameThread(int(c.thread.Load()), fmt.Sprintf("calls of GPU %d", c.info.Ordinal))
	}
}

// Name names the stream for a profiler.
func (s *Stream) Name(name string) { nvtx.NameStream(s.Pointer(), name) }
