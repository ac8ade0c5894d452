package space

// Options are the options of a [Space]. The zero value is a good choice.
type Options struct {
	// Memory is the most GPU memory that vectors may take, in bytes; 0 is no limit. What does not fit lies in
	// pinned host memory, which the GPU reads over the bus.
	Memory int64

	// Reserve is how much of the GPU's memory vectors leave free, for those who allocate later. 0 is
	// [DefaultReserve].
	Reserve int64

	// piece, span and stage are the elements of a vector that are allocated together, that are multiplied in a block
	// of the Gram products, and that are copied at a time. Results depend on span alone. For tests.
	piece, span, stage int
}

// DefaultReserve is the [Options].Reserve of 256 MiB.
const DefaultReserve = 256 << 20
