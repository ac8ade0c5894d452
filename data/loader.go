package data

import (
	"context"
	"iter"
)

// DefaultMaxBad is the usual share of an epoch's images that may be unreadable.
const DefaultMaxBad = 0.01

// LoaderOptions says how a Loader makes batches.
type LoaderOptions struct {
	// Batch is the number of images of a batch. The last one of an epoch keeps what is left.
	Batch int
	// Workers is the number of goroutines that decode; 0 means one a CPU. It
	// does not change the batches.
	Workers int
	// Prefetch is the number of batches made ahead of the one in use; 0 means 2.
	Prefetch int
	// Shuffle gives each epoch an order of its own; without it the order is the dataset's.
	Shuffle bool
	// Seed and Stream choose the order and the augmentation. Loaders of one run
	// that serve different ends differ in Stream.
	Seed, Stream uint64
	// Limit ends an epoch after this many batches; 0 means no limit.
	Limit int
	// Substitute fills the slot of an image that cannot be read with the next in the
	// epoch's order, for training; without it the image is left out.
	Substitute bool
	// MaxBad is the share of an epoch's images that may be unreadable before the
	// epoch ends with an error. Zero allows none; DefaultMaxBad is usual.
	MaxBad float64
	// Log, if not nil, is told the name and the error of each image that cannot
	// be read, once for each image, on the goroutine that ranges over the epoch.
	Log func(format string, args ...any)
}

// Loader yields the batches of a dataset.
type Loader struct {
	ds  Dataset
	tr  Transform
	opt LoaderOptions
}

// Steps is the number of batches of an epoch.
func (l *Loader) Steps() int {
	steps := (l.ds.Len() + l.opt.Batch - 1) / l.opt.Batch
	if l.opt.Limit > 0 {
		steps = min(steps, l.opt.Limit)
	}
	return steps
}

// Epoch yields the batches of an epoch from step fromStep on. A batch is valid
// until the next iteration, which recycles its memory. Batches are made ahead,
// by goroutines that have ended when the range statement ends. After an error,
// which comes with a nil batch, nothing follows; that of a done ctx is its cause.
// Different epochs may be ranged over at the same time.
func (l *Loader) Epoch(ctx context.Context, epoch, fromStep int) iter.Seq2[*Batch, error] {
	panic("filled next")
}
