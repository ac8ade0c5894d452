package cuda

import (
	"errors"
	"time"
)

// RanksOptions say how the GPU of this process works with those of other processes, over NCCL.
type RanksOptions struct {
	ID         []byte // that one rank has made, by [NewRanksID]
	Rank, Size int
	// Narrow has gradients sent as bfloat16. They are added up in float32.
	Narrow bool
	// Timeout is how long this process may wait for its GPU, whose work may wait for other ranks.
	Timeout time.Duration
	// Failed is called, once, by another goroutine, with ErrOverdue after that time, or with what NCCL says of another rank. This process may hang then: it is
	// to be ended.
	Failed func(err error)
}

// ErrOverdue says that a GPU was not done in time.
var ErrOverdue = errors.New("the GPU was not done in time")
