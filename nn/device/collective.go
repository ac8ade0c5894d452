package device

import (
	"errors"
	"time"
)

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

// RanksID is a number by which the devices of ranks find each other.
type RanksID [128]byte

// RanksOptions configure how a device works with those of other processes.
type RanksOptions struct {
	ID         RanksID // made by the device of one rank
	Rank, Size int
	// Narrow sends gradients as bfloat16 and sums them in float32.
	Narrow bool
	// Timeout limits how long this process waits for its device, whose work may wait for other ranks.
	Timeout time.Duration
	// Failed is called once, from another goroutine: with ErrOverdue after the timeout, or with an error about another
	// rank. This process may then hang: end it.
	Failed func(err error)
}

// ErrOverdue reports that a device did not finish in time.
var ErrOverdue = errors.New("the device did not finish in time")

// Joining is a Device that becomes a [Collective] with those of other processes.
type Joining interface {
	Device
	// NewRanksID makes an ID for all ranks.
	NewRanksID() (RanksID, error)
	// JoinRanks makes the device one of several ranks. It returns when all ranks have called it, with the name of the
	// library that adds up.
	JoinRanks(o RanksOptions) (string, error)
}
