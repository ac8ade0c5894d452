package device

// Collective is a Device that may belong to one of several ranks, each a process. It adds up vectors over the ranks
// after the kernels that compute them, in parallel with later kernels.
type Collective interface {
	Device
	// Ranks are the collective operations; nil for a single process.
	Ranks() Ranks
}

// Ranks are collective operations of the devices of several ranks. All ranks make the same calls, in the same order.
type Ranks interface {
	Reducer
	// Gather concatenates the ranks' equally long parts: rank k has part k.
	Gather(v Vector, part int) error
}

// A Reducer adds up a gradient over ranks. A step is Guard, a Sum of each part of the gradient, and Wait, in the same
// order on all ranks. Guard and Sum return at once if possible, and the device continues with the backward pass. On a
// device that records steps they are called during recording, and their work is recorded.
type Reducer interface {
	// Guard makes a number that is NaN or infinite on one rank NaN or infinite on all, by the end of Wait.
	Guard(number Region) error
	// Sum starts adding up a part of a gradient over the ranks, in place. The kernels that compute it must have been
	// issued.
	Sum(grad Vector, part Span) error
	// Wait makes later work see the sums.
	Wait() error
}

// Sliced is a Vector with parts that are copied as fast as the whole.
type Sliced interface {
	Vector
	// Slice returns n elements from off on, which must exist.
	Slice(off, n int) Slice
}

// Slice is a part of a vector.
type Slice interface {
	Len() int
	ReadAt(dst []float32, off int) error
	WriteAt(src []float32, off int) error
}
