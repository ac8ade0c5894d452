//go:build gpu && cgo

package driver

import (
	"fmt"
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// A Stream is a queue of work that runs in order, concurrently with other streams.
type Stream struct {
	c *Context
	s cu.Stream
}

// nonBlocking streams do not wait for the null stream, which nothing here uses.
const nonBlocking = 1 // CU_STREAM_NON_BLOCKING

// NewStream makes a stream.
func (c *Context) NewStream() (*Stream, error) {
	s := &Stream{c: c}
	err := c.Do(func() (err error) {
		if s.s, err = cu.MakeStream(nonBlocking); err == nil {
			c.handles[s] = struct{}{}
		}
		return c.check("cuStreamCreate", err, "")
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Context is the stream's context.
func (s *Stream) Context() *Context { return s.c }

// Close frees the stream after its work. A second Close does nothing.
func (s *Stream) Close() error { return s.c.drop(s) }

func (s *Stream) kind() string { return "stream" }

func (s *Stream) release() error {
	return s.c.check("cuStreamDestroy", s.s.Destroy(), "")
}

// Pointer is the CUstream, for calls of a library inside [Stream.Do].
func (s *Stream) Pointer() unsafe.Pointer { return unsafe.Pointer(s.s.C()) }

// Do is [Context.Do] for calls that put work on the stream, which must be open.
func (s *Stream) Do(f func() error) error {
	return s.c.Do(func() error {
		if _, open := s.c.handles[s]; !open {
			return fmt.Errorf("stream: %w", ErrClosed)
		}
		return f()
	})
}

// CopyIn copies src, which has dst's size, to the GPU. From pinned memory the copy is asynchronous: src must not change
// until the stream was waited for. From other memory CopyIn returns after the copy, since the driver may read it late.
func (s *Stream) CopyIn(dst Span, src []byte) error {
	if dst.n != int64(len(src)) {
		return fmt.Errorf("cuda: copy of %d bytes into a span of %d", len(src), dst.n)
	}
	if dst.n == 0 {
		return nil
	}
	return s.Do(func() error {
		to, err := dst.pointer(s.c)
		if err != nil {
			return err
		}
		return s.Give(Work{Name: "copy from the host", Write: dst.n}, func() error {
			err := s.c.check("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(to, unsafe.Pointer(&src[0]), dst.n, s.s),
				Size(dst.n))
			return s.pageable(err, src)
		})
	})
}

// CopyOut copies src to dst, which has its size. Into pinned memory the copy is asynchronous: wait for the stream
// before reading dst. Into other memory CopyOut returns after the copy.
func (s *Stream) CopyOut(dst []byte, src Span) error {
	if src.n != int64(len(dst)) {
		return fmt.Errorf("cuda: copy of a span of %d bytes into %d", src.n, len(dst))
	}
	if src.n == 0 {
		return nil
	}
	return s.Do(func() error {
		from, err := src.pointer(s.c)
		if err != nil {
			return err
		}
		return s.Give(Work{Name: "copy to the host", Read: src.n}, func() error {
			err := s.c.check("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), from, src.n, s.s),
				Size(src.n))
			return s.pageable(err, dst)
		})
	})
}

// pageable completes a copy from or to host memory that was started without error: if that is not pinned, it waits.
func (s *Stream) pageable(err error, host []byte) error {
	if err != nil || s.c.isPinned(host) {
		return err
	}
	return s.c.check("cuStreamSynchronize", s.s.Synchronize(), "for a copy of memory that is not pinned")
}

// Copy copies between spans of the same size that do not overlap.
func (s *Stream) Copy(dst, src Span) error {
	if dst.n != src.n {
		return fmt.Errorf("cuda: copy of a span of %d bytes into one of %d", src.n, dst.n)
	}
	if dst.n == 0 {
		return nil
	}
	return s.Do(func() error {
		to, err := dst.pointer(s.c)
		if err != nil {
			return err
		}
		from, err := src.pointer(s.c)
		if err != nil {
			return err
		}
		return s.Give(Work{Name: "copy", Read: dst.n, Write: dst.n}, func() error {
			return s.c.check("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(to, from, dst.n, s.s), Size(dst.n))
		})
	})
}

// Fill sets every byte of dst.
func (s *Stream) Fill(dst Span, value byte) error {
	if dst.n == 0 {
		return nil
	}
	return s.Do(func() error {
		to, err := dst.pointer(s.c)
		if err != nil {
			return err
		}
		return s.Give(Work{Name: "fill", Write: dst.n}, func() error {
			return s.c.check("cuMemsetD8Async", cu.MemsetD8Async(to, value, dst.n, s.s), Size(dst.n))
		})
	})
}

// Synchronize waits for the stream's work.
func (s *Stream) Synchronize() error {
	return s.Do(func() error { return s.c.check("cuStreamSynchronize", s.s.Synchronize(), "") })
}

// Wait makes later work of the stream wait until the work recorded by e is done.
func (s *Stream) Wait(e *Event) error {
	return s.Do(func() error {
		if err := e.usable(s.c); err != nil {
			return err
		}
		return s.c.check("cuStreamWaitEvent", s.s.Wait(e.e, 0), "")
	})
}

// An Event marks a position in a stream.
type Event struct {
	c *Context
	e cu.Event
}

// NewEvent makes an event. With timing, [Event.Since] can use it.
func (c *Context) NewEvent(timing bool) (*Event, error) {
	flags := cu.EventFlags(0)
	if !timing {
		flags = 1 | 2 // CU_EVENT_BLOCKING_SYNC, so that waiting takes no core, and CU_EVENT_DISABLE_TIMING
	}
	e := &Event{c: c}
	err := c.Do(func() (err error) {
		if e.e, err = cu.MakeEvent(flags); err == nil {
			c.handles[e] = struct{}{}
		}
		return c.check("cuEventCreate", err, "")
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Close frees the event. A second Close does nothing.
func (e *Event) Close() error { return e.c.drop(e) }

func (e *Event) kind() string { return "event" }

func (e *Event) release() error {
	return e.c.check("cuEventDestroy", cu.DestroyEvent(&e.e), "")
}

func (e *Event) usable(c *Context) error {
	if e.c != c {
		return fmt.Errorf("cuda: event of %v used on another context of %v", e.c.info, c.info)
	}
	if _, open := c.handles[e]; !open {
		return fmt.Errorf("event: %w", ErrClosed)
	}
	return nil
}

// Record places the event after the work that is on s.
func (e *Event) Record(s *Stream) error {
	return s.Do(func() error {
		if err := e.usable(s.c); err != nil {
			return err
		}
		return s.c.check("cuEventRecord", e.e.Record(s.s), "")
	})
}

// Synchronize waits until the recorded work is done.
func (e *Event) Synchronize() error {
	return e.c.Do(func() error {
		if err := e.usable(e.c); err != nil {
			return err
		}
		return e.c.check("cuEventSynchronize", e.e.Synchronize(), "")
	})
}

// Since is the time from start to e. Both must have timing and be done.
func (e *Event) Since(start *Event) (d time.Duration, err error) {
	err = e.c.Do(func() error {
		for _, v := range []*Event{start, e} {
			if err := v.usable(e.c); err != nil {
				return err
			}
		}
		ms, err := start.e.Elapsed(e.e)
		d = time.Duration(ms * float64(time.Millisecond))
		return e.c.check("cuEventElapsedTime", err, "")
	})
	return d, err
}
