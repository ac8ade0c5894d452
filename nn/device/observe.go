package device

// Work is a unit of a device's work: a kernel, a copy, a call of a library.
type Work struct {
	Name string // of the kernel, or of the library's operation
	// Bytes of the device's memory that are read and written, each counted once: the minimum with perfect caches.
	Read, Write int64
	// FLOP are the multiplications and additions of products, and Product the bytes, among the others, of their
	// operands and results.
	FLOP, Product int64
	Instructions  int64 // of all threads of a kernel; 0 if they were not counted
}

// Bytes are those that are read and those that are written.
func (w Work) Bytes() int64 { return w.Read + w.Write }

// Observer is called with work of a group, or with work of no group, and issues it by calling give, or skips it.
type Observer func(g *Group, w Work, give func() error) error

// Observed is a Device that reports the work that it issues.
type Observed interface {
	Device
	// Observe calls f for all later work, in order; nil stops that. Recorded work is reported during recording, not
	// during runs.
	Observe(f Observer) error
}
