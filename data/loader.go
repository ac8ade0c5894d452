package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"sync"

	"onlinerna/data/augment"
	"onlinerna/internal/parallel"
)

// LoaderOptions are the parameters of a Loader.
type LoaderOptions struct {
	// Batch is the number of images of a batch. The last batch of an epoch may be smaller.
	Batch int
	// Workers is the number of goroutines that decode; 0 means one a CPU. It does not change the
	// batches.
	Workers int
	// Prefetch is the number of batches made ahead of the one in use; 0 means 2.
	Prefetch int
	// Shuffle gives each epoch an order of its own; without it the order is the dataset's.
	Shuffle bool
	// Balanced gives all classes that have images the same number of images an epoch: an epoch is as long as without it,
	// but has images of small classes several times, each time with another augmentation, and of large ones only some,
	// others in each epoch. It needs Shuffle.
	Balanced bool
	// Seed and Stream choose the order and the augmentation. Loaders of one run with different purposes differ in
	// Stream.
	Seed, Stream uint64
	// Limit ends an epoch after this many batches; 0 means no limit.
	Limit int
	// If Ranks is above 1, the batches of an epoch go in turn to that many loaders, and this one is number Rank.
	// Steps, Images and the steps of Epoch count the batches of all loaders.
	Rank, Ranks int
	// Repeat puts each image that many times in a row, each time with another augmentation; an epoch then has that
	// many times fewer distinct images (repeated augmentation, Hoffer et al. 2020, as torchvision's RASampler). 0 is
	// 1.
	Repeat int
	// Mix mixes the images of batches. The transform must give images without windows: see augment.Options.
	Mix augment.Mix
	// FastDecode decodes JPEGs at 1/2, 1/4 or 1/8 of their size if the transform reduces them by at least as much:
	// see imaging.Resizer.
	FastDecode bool
	// Budget is the memory for decoding, shared by the workers of several loaders; nil is NewBudget(0, 1).
	Budget *Budget
	// Substitute fills the slot of an image that cannot be read with the next in the epoch's order,
	// for training; without it the image is left out.
	Substitute bool
	// MaxBad is the number of an epoch's images that may be unreadable; beyond it the epoch ends with an error. Zero
	// allows none; see UsualBad.
	MaxBad MaxBad
	// Log, if not nil, is told the name and the error of each image that cannot be read, once for
	// each image, on the goroutine that ranges over the epoch.
	Log func(format string, args ...any)
}

// Loader yields the batches of a dataset. It is safe for concurrent use.
type Loader struct {
	ds  Dataset
	tr  augment.Transform
	opt LoaderOptions

	targets int // of an image: 0 for classification
	inputs  []Input

	mu      sync.Mutex
	spare   []*slot   // batches not in use
	workers []*worker // workers not in use
	logged  map[int]bool
}

// NewLoader returns the loader that makes images of ds the same size with tr.
func NewLoader(ds Dataset, tr augment.Transform, opt LoaderOptions) (*Loader, error) {
	switch {
	case ds == nil || tr == nil:
		return nil, errors.New("loader: needs a dataset and a transform")
	case ds.Len() == 0:
		return nil, errors.New("loader: the dataset has no images")
	case ds.Len() > math.MaxInt32:
		return nil, fmt.Errorf("loader: the dataset has %d images, more than 2³¹−1", ds.Len())
	case tr.Size() < 1:
		return nil, fmt.Errorf("loader: image size is %d, must be at least 1", tr.Size())
	case opt.Batch < 1:
		return nil, fmt.Errorf("loader: Batch is %d, must be at least 1", opt.Batch)
	case opt.Workers < 0 || opt.Prefetch < 0 || opt.Limit < 0:
		return nil, fmt.Errorf("loader: Workers %d, Prefetch %d and Limit %d must not be negative",
			opt.Workers, opt.Prefetch, opt.Limit)
	case opt.Workers > parallel.Most:
		return nil, fmt.Errorf("loader: %d workers: at most %d, and no more than there are cores are of use",
			opt.Workers, parallel.Most)
	case opt.Ranks < 0 || opt.Rank < 0 || opt.Rank >= max(1, opt.Ranks):
		return nil, fmt.Errorf("loader: Rank %d of %d", opt.Rank, opt.Ranks)
	case opt.Balanced && !opt.Shuffle:
		return nil, errors.New("loader: Balanced needs Shuffle")
	case opt.Balanced && TaskOf(ds) != Classification:
		return nil, fmt.Errorf("loader: Balanced is for images of one class each, not for %s", TaskOf(ds))
	case opt.Repeat < 0:
		return nil, fmt.Errorf("loader: Repeat is %d, must not be negative", opt.Repeat)
	}
	if err := errors.Join(opt.MaxBad.Check(), opt.Mix.Check()); err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	opt.Repeat = max(1, opt.Repeat)
	if opt.Workers == 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.Prefetch == 0 {
		opt.Prefetch = 2
	}
	opt.Ranks = max(1, opt.Ranks)
	if opt.Budget == nil {
		opt.Budget = NewBudget(0, 1)
	}
	targets := 0
	if TaskOf(ds) != Classification {
		targets = len(ds.Classes())
	}
	return &Loader{ds: ds, tr: tr, opt: opt, targets: targets, inputs: InputsOf(ds), logged: map[int]bool{}}, nil
}

// Steps is the number of batches of an epoch.
func (l *Loader) Steps() int {
	steps := (l.ds.Len()-1)/l.opt.Batch + 1
	if l.opt.Limit > 0 {
		steps = min(steps, l.opt.Limit)
	}
	return steps
}

// Images is the number of images of an epoch.
func (l *Loader) Images() int {
	return min(l.ds.Len(), l.Steps()*l.opt.Batch)
}

// Dataset is the data set.
func (l *Loader) Dataset() Dataset { return l.ds }

// Set is the number of images of the data set, those that no step takes included.
func (l *Loader) Set() int { return l.ds.Len() }

// Between is the number of images of the steps from, …, to-1.
func (l *Loader) Between(from, to int) int {
	n := l.Images()
	return min(n, to*l.opt.Batch) - min(n, from*l.opt.Batch)
}

// Own is the number of images that this loader yields of an epoch from step fromStep on, if all can be read.
func (l *Loader) Own(fromStep int) int {
	n := 0
	for s := fromStep + l.opt.Rank; s < l.Steps(); s += l.opt.Ranks {
		n += l.Between(s, s+1)
	}
	return n
}

// Allowed is the number of images of an epoch that may be unreadable.
func (l *Loader) Allowed() int { return l.opt.MaxBad.Of(l.Images()) }

// Bytes is the memory of the batches in use and prefetched. It excludes the memory for decoding, which depends on the
// sizes of images.
func (l *Loader) Bytes() int64 {
	size, channels := int64(l.tr.Size()), int64(l.ds.Channels())
	beside := int64(3*4 + 4 + 8 + 16 + 4*l.targets) // crops, label, index, error and targets of an image
	for _, in := range l.inputs {
		beside += 4 * int64(in.Len)
	}
	slots := min(int64(l.opt.Prefetch)+1, int64((l.Steps()-1)/l.opt.Ranks+1))
	return slots * int64(min(l.opt.Batch, l.ds.Len())) * (size*size*channels + beside)
}

// Epoch yields the batches of an epoch from step fromStep on: of these every Ranks-th, beginning with number Rank. A
// batch is valid until the next iteration, which recycles its memory. A batch without a readable image is skipped.
// Goroutines prefetch batches; they have ended when the range statement ends. An error comes with a nil batch and
// ends the epoch; if ctx is done it is the cause of ctx. The share of unreadable images counts from fromStep on.
func (l *Loader) Epoch(ctx context.Context, epoch, fromStep int) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		steps := l.Steps()
		if fromStep < 0 || fromStep > steps {
			yield(nil, fmt.Errorf("epoch %d: step %d is outside [0, %d]", epoch, fromStep, steps))
			return
		}
		run := l.start(ctx, epoch, fromStep, steps)
		defer run.stop()
		bad := 0
		for step := fromStep + l.opt.Rank; step < steps; step += l.opt.Ranks {
			s, err := run.next(ctx)
			if err == nil {
				bad, err = run.settle(s, bad)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if s.batch.N > 0 && !yield(&s.batch, nil) {
				return
			}
			run.free <- s
		}
	}
}

// A TooManyBad reports that more images of an epoch are unreadable than MaxBad allows.
type TooManyBad struct{ Bad, Of, Allowed int }

func (e *TooManyBad) Error() string {
	return fmt.Sprintf("%d of %d images so far cannot be read, max-bad allows %d: repair or remove them, or raise it, "+
		"as --max-bad %d, to go on without them", e.Bad, e.Of, e.Allowed, 2*e.Bad)
}

// settle closes a finished batch: it counts and logs the images that could not be read and closes
// the gaps that they left. It returns the new count.
func (r *run) settle(s *slot, bad int) (int, error) {
	l, b := r.loader, &s.batch
	kept := 0
	for n := range b.N {
		if err := s.errs[n]; err != nil {
			bad++
			b.Bad++
			if l.opt.Substitute && b.Index[n] < 0 && bad <= r.allowed {
				return bad, fmt.Errorf("%d of %d images so far cannot be read, and no other image is left to take its "+
					"place, the last of them: %w", bad, l.Images(), err)
			}
			if bad > r.allowed {
				return bad, fmt.Errorf("%w, the last of them: %w",
					&TooManyBad{Bad: bad, Of: l.Images(), Allowed: r.allowed}, err)
			}
			l.log(r.at(b.Step*l.opt.Batch+n), err)
		}
		if b.Index[n] >= 0 {
			b.move(kept, n)
			kept++
		}
	}
	b.truncate(kept)
	return bad, nil
}

// log reports image i unless that was done before.
func (l *Loader) log(i int, err error) {
	l.mu.Lock()
	known := l.logged[i]
	l.logged[i] = true
	l.mu.Unlock()
	if known || l.opt.Log == nil {
		return
	}
	done := "left out"
	if l.opt.Substitute {
		done = "replaced by another"
	}
	l.opt.Log("unreadable image, %s: %v", done, err)
}
