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

// Budget is how many bytes the workers of loaders take together for images that they decode: one waits for its share,
// and an image that is too large for all of it is an error. Shares go by the size that an image declares. Between
// images workers keep a quarter of it at most, which is a part of it.
type Budget struct {
	bytes int64
	free  *semaphore.Weighted // three quarters
}

// leastBudget is enough for photographs of 50 megapixels.
const leastBudget = 320 << 20

// ErrTooLarge is the cause of an error of an image for which all of a [Budget] is too little.
var ErrTooLarge = errors.New("where there is the option --decode-memory, it gives more")

// NewBudget is a budget of so many bytes for this process. For 0 it is its part of a quarter of what is free, by the
// limits of control groups, too, of which so many processes share the machine: 320 MiB at least, which is enough for
// usual photographs; where nobody says what is free, of 2 GiB.
func NewBudget(bytes int64, processes int) *Budget {
	if bytes <= 0 {
		bytes = max(leastBudget, freeQuarter()/int64(max(1, processes)))
	}
	return &Budget{bytes: bytes, free: semaphore.NewWeighted(bytes - bytes/4)}
}

// unknownBudget is where nobody says how much memory is free.
const unknownBudget = 2 << 30

// freeQuarter looks once: what loaders took would not be free for those that come later.
var freeQuarter = sync.OnceValue(func() int64 {
	free := hostmemory.Free()
	if free == 0 {
		return unknownBudget
	}
	return free / 4
})

// claim waits for a share, which goes back by release.
func (b *Budget) claim(bytes int64) error {
	if most := b.bytes - b.bytes/4; bytes > most {
		return fmt.Errorf("decoding it takes %s by the size that it declares, more than the %s that it may take of "+
			"%s: %w", format.Bytes(bytes), format.Bytes(most), format.Bytes(b.bytes), ErrTooLarge)
	}
	return b.free.Acquire(context.Background(), bytes) // who has a share waits for nobody
}

func (b *Budget) release(bytes int64) { b.free.Release(bytes) }
