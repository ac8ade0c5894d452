//go:build gpu && cgo

package driver

// #include <cuda.h>
import "C"

import (
	"errors"
	"fmt"
)

// A Graph is work captured from a stream and launched as a whole.
type Graph struct {
	c     *Context
	exec  C.CUgraphExec
	uses  map[*Memory]struct{} // memory whose addresses the work contains
	stale bool                 // some of that memory was closed
}

// ErrStale reports that a graph uses closed memory: capture it again.
var ErrStale = errors.New("cuda: the graph uses memory that was closed")

// Capture calls f on the owner thread and records the work that f puts on s instead of running it. Numbers that f
// passes are fixed; the content of memory is read at each launch. f must not allocate, wait, or copy from or to memory
// that is not pinned: the driver refuses that, and the capture fails. f may use other streams as long as s waits for
// them.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	g := &Graph{c: s.c, uses: map[*Memory]struct{}{}}
	err := s.Do(func() error {
		if s.c.capturing != nil {
			return errors.New("cuda: captures cannot be nested")
		}
		var whole C.CUgraph
		err := s.c.In("graph capture", func() (err error) {
			whole, err = s.capture(g, f)
			return err
		})
		if err != nil {
			return err
		}
		err = s.c.RetryMemory(func() error {
			return s.c.note(driverCode("cuGraphInstantiateWithFlags", C.cuGraphInstantiateWithFlags(&g.exec, whole, 0),
				""))
		})
		if end := s.c.note(driverCode("cuGraphDestroy", C.cuGraphDestroy(whole), "")); err == nil && end != nil {
			err = end
			_ = C.cuGraphExecDestroy(g.exec) // err reports the failure
		}
		if err == nil {
			s.c.handles[g] = struct{}{}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// capture calls f between the begin and the end of a capture. The capture ends even if f panics.
func (s *Stream) capture(g *Graph, f func() error) (whole C.CUgraph, err error) {
	to := C.CUstream(s.Pointer())
	// The owner thread makes all calls of the context; other threads' calls do not disturb the capture.
	if err := driverCode("cuStreamBeginCapture", C.cuStreamBeginCapture(to, C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
		""); err != nil {
		return nil, s.c.note(err)
	}
	s.c.capturing = g
	defer func() {
		s.c.capturing = nil
		end := driverCode("cuStreamEndCapture", C.cuStreamEndCapture(to, &whole), "")
		if err == nil {
			err = s.c.note(end)
		}
		if err != nil && whole != nil {
			_ = C.cuGraphDestroy(whole) // report err, which came first
			whole = nil
		}
	}()
	// An error until f has returned: f may panic.
	err = errors.New("cuda: the captured function did not return")
	err = f()
	return nil, err
}

// Launch runs the graph's work on s.
func (g *Graph) Launch(s *Stream) error {
	return s.Do(func() error {
		if g.c != s.c {
			return fmt.Errorf("cuda: graph of %v launched on %v", g.c.info, s.c.info)
		}
		if _, open := g.c.handles[g]; !open {
			return fmt.Errorf("graph: %w", ErrClosed)
		}
		if g.stale {
			return ErrStale
		}
		return g.c.In("graph launch", func() error {
			return g.c.RetryMemory(func() error {
				return g.c.note(driverCode("cuGraphLaunch", C.cuGraphLaunch(g.exec, C.CUstream(s.Pointer())), ""))
			})
		})
	})
}

// Valid reports whether the graph can still be launched: it is open and all its memory is.
func (g *Graph) Valid() bool {
	valid := false
	_ = g.c.enter(func() error { // graphs of a closed context are invalid
		_, open := g.c.handles[g]
		valid = open && !g.stale
		return nil
	})
	return valid
}

// Close frees the graph; work under way completes. A second Close does nothing.
func (g *Graph) Close() error { return g.c.drop(g) }

func (g *Graph) kind() string { return "graph" }

func (g *Graph) release() error {
	return g.c.note(driverCode("cuGraphExecDestroy", C.cuGraphExecDestroy(g.exec), ""))
}

// outdate marks the graphs that use m.
func (c *Context) outdate(m *Memory) {
	for h := range c.handles {
		if g, ok := h.(*Graph); ok {
			if _, used := g.uses[m]; used {
				g.stale = true
			}
		}
	}
}
