package cuda

import (
	"errors"
	"time"
)

// RanksOptions configure how this process's GPU works with the GPUs of other processes, over NCCL.
type RanksOptions struct {
	ID         []byte // the ID that one rank made with [NewRanksID]
	Rank, Size int
	// Narrow sends gradients as bfloat16 and sums them in float32.
	Narrow bool
	// Timeout limits how long this process waits for its GPU, whose work may wait for other ranks.
	Timeout time.Duration
	// Failed is called once, from another goroutine: with ErrOverdue after the timeout, or with NCCL's error about
	// another rank. This process may then hang: end it.
	Failed func(err error)
}

// ErrOverdue reports that a GPU did not finish in time.
var ErrOverdue = errors.New("the GPU did not finish in time")
