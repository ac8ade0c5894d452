package ranks

import "time"

// An Op combines the ranks' elements.
type Op uint8

// The combining operations.
const (
	Sum Op = iota
	Max
)

func (o Op) String() string { return [...]string{"sum", "largest"}[o] }

// An Engine moves numbers between ranks. All ranks call the operations in the same order with the same sizes. An
// operation starts at once and is done when Wait returns; until then its slices belong to the engine. Several
// goroutines may use an Engine if they keep the order of calls.
type Engine interface {
	// Name is the library and its version.
	Name() string
	Rank() int
	Size() int

	// Reduce32 and Reduce64 combine the vectors of all ranks in place. All ranks get identical bits.
	Reduce32(x []float32, op Op) Request
	Reduce64(x []float64, op Op) Request
	// Broadcast copies the bytes of rank from to all ranks.
	Broadcast(b []byte, from int) Request
	// Gather fills all, of Size × len(own) bytes, with every rank's own in the order of the ranks.
	Gather(all, own []byte) Request

	// Missing lists, after a Wait that timed out, the ranks that do not report within grace that they wait as well.
	Missing(grace time.Duration) []int

	// Abort ends all ranks at once; this process exits with status 1.
	Abort()
	// Close ends the engine once all ranks have called it.
	Close() error
}

// Plain is an Engine with a blocking sum of the library itself, for comparison.
type Plain interface {
	// PlainSum32 sums the vectors of all ranks in place.
	PlainSum32(x []float32) error
}

// A Request is a running operation.
type Request interface {
	// Wait returns when the operation is done. It returns ErrTimeout if that takes longer than a positive timeout: the
	// operation keeps running, and the ranks can only be aborted.
	Wait(timeout time.Duration) error
}
