package ranks

import "time"

// An Op says how elements of the ranks are combined.
type Op uint8

// The ways to combine.
const (
	Sum Op = iota
	Max
)

func (o Op) String() string { return [...]string{"sum", "largest"}[o] }

// An Engine moves numbers between ranks. Operations are called in the same order, with the same sizes, on all ranks; they are started at once and
// done when Wait has returned. Slices belong to the engine from the start to then. An Engine may be used by several goroutines, which then have
// to see to the order.
type Engine interface {
	// Name is the library with its version.
	Name() string
	Rank() int
	Size() int

	// Reduce32 and Reduce64 combine the vectors of all ranks, in place. All ranks get equal bits.
	Reduce32(x []float32, op Op) Request
	Reduce64(x []float64, op Op) Request
	// Broadcast copies rank from's bytes to all.
	Broadcast(b []byte, from int) Request
	// Gather sets all, of Size times len(own) bytes, to what the ranks call own, in the order of the ranks.
	Gather(all, own []byte) Request

	// Missing lists, after a Wait that timed out, the ranks that don't say within a time that they wait, too.
	Missing(grace time.Duration) []int

	// Abort ends all ranks at once, this process with status 1.
	Abort()
	// Close ends the engine once all ranks have called it.
	Close() error
}

// Plain is an Engine with a sum that it waits for in the library itself, for comparison.
type Plain interface {
	// PlainSum32 adds up the vectors of all ranks, in place.
	PlainSum32(x []float32) error
}

// A Request is an operation under way.
type Request interface {
	// Wait returns when it is done. It is ErrTimeout if that takes longer than a time above 0: the operation goes on, and the ranks can only
	// be aborted.
	Wait(timeout time.Duration) error
}
