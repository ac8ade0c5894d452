package device

// Work is what a device is given to do at a time: a kernel, a copy, a call of a library.
type Work struct {
	Name string // of the kernel, or of what the library is called for
	// Bytes of the device's memory that are read and written, each once: what caches cannot spare.
	Read, Write int64
	// FLOP are the multiplications and additions of products, and Product the bytes, among the others, of their
	// operands and results.
	FLOP, Product int64
}

// Bytes are those that are read and those that are written.
func (w Work) Bytes() int64 { return w.Read + w.Write }

// Observer is told of work of a group, or of what is none's, and gives it to the device by calling give, or does not.
type Observer func(g *Group, w Work, give func() error) error

// Observed is a Device that says what it gives to its hardware.
type Observed interface {
	Device
	// Observe has f told of all work from then on, in order; nil ends that. A recording is told of when it is made, not
	// when it runs.
	Observe(f Observer) error
}
