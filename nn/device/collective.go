package device

// Collective is a Device that may be one of several, each of which belongs to a rank, a process, and that adds up
// vectors over them: behind the kernels that make them, beside those that follow.
type Collective interface {
	Device
	// Ranks is what it has with the others; nil where it goes alone.
	Ranks() Ranks
}

// Ranks are what devices of several ranks do together. All make the same calls, in the same order.
type Ranks interface {
	Reducer
	// Gather sets the elements of a vector to those of the ranks: rank k's are so many, from k times that on.
	Gather(v Vector, part int) error
}

// A Reducer adds up a gradient over ranks. A step is Guard, a Sum of each part of the gradient, and Wait, in the same
// order on all ranks. Guard and Sum return at once where they can: the device goes on with the backward pass behind
// them. On a device that records steps they are called when one is recorded, and what they issue is recorded with it.
type Reducer interface {
	// Guard makes a number that is NaN or infinite on one rank so on all, by the time that Wait is done.
	Guard(number Region) error
	// Sum begins to add up a part of a gradient over the ranks, in place: what made it is issued.
	Sum(grad Vector, part Span) error
	// Wait has what follows see the sums.
	Wait() error
}

// Sliced is a Vector with parts that are copied as fast as the whole.
type Sliced interface {
	Vector
	// Slice is n elements from off on, which are to be there.
	Slice(off, n int) Slice
}

// Slice is a part of a vector.
type Slice interface {
	Len() int
	ReadAt(dst []float32, off int) error
	WriteAt(src []float32, off int) error
}
