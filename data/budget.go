package data

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"onlinerna/internal/hostmemory"
	format "onlinerna/internal/text"
)

// Budget bounds the bytes that the workers of loaders together use to decode images. A worker waits for its share,
// which depends on the size that an image declares; an image too large for the whole budget is an error. Buffers that
// workers keep between images take at most a quarter of the budget.
type Budget struct {
	bytes int64
	free  *semaphore.Weighted // three quarters
}

// leastBudget is enough for photographs of 50 megapixels.
const leastBudget = 320 << 20

// ErrTooLarge is the cause of an error for an image that needs more than a whole [Budget].
var ErrTooLarge = errors.New("where there is the option --decode-memory, it gives more")

// NewBudget returns a budget of the given number of bytes for this process. For 0, the processes on the machine share
// a quarter of the free memory, within the limits of control groups; 2 GiB if the free memory is unknown. Each gets
// at least 320 MiB, enough for usual photographs.
func NewBudget(bytes int64, processes int) *Budget {
	if bytes <= 0 {
		bytes = max(leastBudget, freeQuarter()/int64(max(1, processes)))
	}
	return &Budget{bytes: bytes, free: semaphore.NewWeighted(bytes - bytes/4)}
}

// unknownBudget is shared if the free memory is unknown.
const unknownBudget = 2 << 30

// freeQuarter reads the free memory once: memory used by earlier loaders would not count as free later.
var freeQuarter = sync.OnceValue(func() int64 {
	free := hostmemory.Free()
	if free == 0 {
		return unknownBudget
	}
	return free / 4
})

// claim waits for a share, which release gives back.
func (b *Budget) claim(bytes int64) error {
	if most := b.bytes - b.bytes/4; bytes > most {
		return fmt.Errorf("decoding it takes %s by the size that it declares, more than the %s that it may take of "+
			"%s: %w", format.Bytes(bytes), format.Bytes(most), format.Bytes(b.bytes), ErrTooLarge)
	}
	return b.free.Acquire(context.Background(), bytes) // a holder of a share never waits, so there is no deadlock
}

func (b *Budget) release(bytes int64) { b.free.Release(bytes) }
