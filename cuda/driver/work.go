//go:build gpu && cgo

package driver

// Work is one call's work on a stream: a kernel, a copy or a library's call.
type Work struct {
	Name string // of the kernel, or of the library's operation
	// Bytes of GPU memory read and written, each counted once: the traffic that no cache can save.
	Read, Write int64
	// FLOP counts the multiplications and additions of matrix products, and Product the bytes of their operands and
	// results. A graph of cuDNN may do other work, too.
	FLOP, Product int64
	Launch        *Launch // of a kernel; nil for other work
}

// A Launch is a kernel's launch with its parameters, 8 bytes each, which are valid until the observer returns.
type Launch struct {
	Kernel      *Kernel
	Grid, Block Dim
	Cells       []uint64
}

// An Access is a kernel argument whose span is not simply read once.
type Access struct {
	Span
	read, write int64
}

// Written is a span that a kernel writes.
func (s Span) Written() Access { return Access{s, 0, s.n} }

// Updated is a span that a kernel reads and writes.
func (s Span) Updated() Access { return Access{s, s.n, s.n} }

// Part is a span that a kernel accesses in part: it reads and writes this many bytes.
func (s Span) Part(read, write int64) Access { return Access{s, read, write} }

// Elsewhere counts the bytes that a kernel reads and writes through addresses stored in memory. It takes no parameter
// among the arguments of a launch.
type Elsewhere struct{ Read, Write int64 }

// An Observer is called for each piece of work. It calls give to run the work, or leaves it out.
type Observer func(w Work, give func() error) error

// Observe calls f for all later work on the context's streams; nil ends that. Captured work is reported once, at the
// capture and not at each launch.
func (c *Context) Observe(f Observer) error {
	return c.enter(func() error { c.observer = f; return nil })
}

// Give runs a library's work, give, on the stream. Call it inside [Context.Do].
func (s *Stream) Give(w Work, give func() error) error {
	if s.c.observer == nil {
		return give()
	}
	return s.c.observer(w, give)
}

// workOf is the work of a launch.
func workOf(kernel string, args []any) (w Work, own []any) {
	w.Name = kernel
	own = make([]any, 0, len(args))
	for _, a := range args {
		switch v := a.(type) {
		case Span:
			w.Read += v.n
		case Access:
			w.Read += v.read
			w.Write += v.write
			a = v.Span
		case Elsewhere:
			w.Read += v.Read
			w.Write += v.Write
			continue
		}
		own = append(own, a)
	}
	return w, own
}
