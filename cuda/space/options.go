package space

// Options are the options of a [Space]. The zero value is a good choice.
type Options struct {
	// Memory limits the GPU memory for vectors in bytes; 0 means no limit. Vectors beyond it lie in pinned host
	// memory, which the GPU reads over the bus.
	Memory int64

	// Reserve is the GPU memory in bytes that vectors leave free for later allocations. 0 means [DefaultReserve].
	Reserve int64

	// For tests: piece, span and stage count the elements of a vector that are allocated together, multiplied in one
	// block of the Gram products, and copied at a time. Results depend only on span.
	piece, span, stage int
}

// DefaultReserve is the default of [Options].Reserve: 256 MiB.
const DefaultReserve = 256 << 20
