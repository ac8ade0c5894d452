package cuda

// SpaceOptions are the options of a [Space]. The zero value is a good choice.
type SpaceOptions struct {
	// Memory is the most GPU memory that vectors may take, in bytes; 0 is no limit. What does not fit lies in
	// pinned host memory, which the GPU reads over the bus.
	Memory int64

	// Reserve is how much of the GPU's memory vectors leave free, for those who allocate later. 0 is
	// [DefaultReserve].
	Reserve int64

	// piece and span are the elements of a vector that are allocated together, and of a block of the Gram
	// products. Results depend on span alone. For tests.
	piece, span int
}

// DefaultReserve is the [SpaceOptions].Reserve of 256 MiB.
const DefaultReserve = 256 << 20
