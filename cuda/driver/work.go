//go:build gpu && cgo

package driver

// Work is what a call gives to a stream: a kernel, a copy, or what a library does.
type Work struct {
	Name string // of the kernel, or of what the library is called for
	// Bytes of the GPU's memory that are read and written, each once: what caches cannot spare.
	Read, Write int64
	// FLOP are the multiplications and additions of products, and Product the bytes of their operands and results: in a graph of
	// cuDNN's there may be others.
	FLOP, Product int64
}

// An Access is an argument of a kernel that does something else with a span than to read it once.
type Access struct {
	Span
	read, write int64
}

// Written is a span that a kernel writes.
func (s Span) Written() Access { return Access{s, 0, s.n} }

// Updated is a span that a kernel reads and writes.
func (s Span) Updated() Access { return Access{s, s.n, s.n} }

// Part is a span of which a kernel reads and writes so many bytes.
func (s Span) Part(read, write int64) Access { return Access{s, read, write} }

// Elsewhere is the bytes that a kernel reads and writes by addresses that it finds in memory. Among the arguments of a launch it stands
// for no parameter.
type Elsewhere struct{ Read, Write int64 }

// An Observer is told of work, and has to give it to the stream, or not, by calling give.
type Observer func(w Work, give func() error) error

// Observe has f told of all work that is given to the context's streams from then on; nil ends that. What is captured is told
// once, not when it is launched.
func (c *Context) Observe(f Observer) error {
	return c.enter(func() error { c.observer = f; return nil })
}

// Give gives work to the stream: a library's, by give. It is called inside [Context.Do].
func (s *Stream) Give(w Work, give func() error) error {
	if s.c.observer == nil {
		return give()
	}
	return s.c.observer(w, give)
}

// workOf is a launch's.
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
