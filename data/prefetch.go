package data

import (
	"context"
	"fmt"
	"image"
	"slices"
	"sync"
	"sync/atomic"

	"onlinerna/data/augment"
	"onlinerna/data/random"
)

// Key words of the random sources of different purposes.
const (
	orderSource   = 1
	augmentSource = 2
	mixSource     = 4
)

// slot is the memory of one batch.
type slot struct {
	batch   Batch
	errs    []error      // by row: the error of reading its image
	pending atomic.Int32 // rows still to be made
	done    chan struct{}
}

// rows is a piece of work: the rows [lo, hi) of a slot.
type rows struct {
	slot   *slot
	lo, hi int
}

// run makes the batches of one epoch. One goroutine hands out free slots in the order of the steps, another asks the
// system to read the files of the next step, workers fill rows of them, and the consumer waits for each slot in that
// same order. There are Prefetch+1 slots, which bounds the memory.
type run struct {
	loader  *Loader
	epoch   int
	order   []int32 // nil: the dataset's order
	uses    []int32 // by position in order, how often its image occurs before; nil: once each
	allowed int     // images that may be unreadable

	cancel  context.CancelFunc
	group   sync.WaitGroup
	slots   []*slot
	workers []*worker
	free    chan *slot
	ordered chan *slot
	work    chan rows
}

func (l *Loader) start(ctx context.Context, epoch, fromStep, steps int) *run {
	ctx, cancel := context.WithCancel(ctx)
	r := &run{
		loader: l, epoch: epoch, cancel: cancel,
		allowed: l.Allowed(),
		work:    make(chan rows, 4*l.opt.Workers),
	}
	if l.opt.Shuffle {
		order := random.New(l.opt.Seed, l.opt.Stream, uint64(epoch), orderSource)
		if l.opt.Balanced {
			r.order, r.uses = balancedOrder(l.ds, (l.ds.Len()-1)/l.opt.Repeat+1, &order)
		} else {
			r.order = make([]int32, l.ds.Len())
			order.Perm(r.order)
		}
	}
	own := max(0, steps-fromStep-l.opt.Rank+l.opt.Ranks-1) / l.opt.Ranks
	r.take(min(l.opt.Prefetch+1, own))
	soon := make(chan int, 1)
	r.group.Go(func() { r.readAhead(ctx, soon) })
	r.group.Go(func() {
		defer close(r.work)
		defer close(soon)
		for step := fromStep + l.opt.Rank; step < steps; step += l.opt.Ranks {
			select {
			case s := <-r.free:
				if next := step + l.opt.Ranks; next < steps {
					select {
					case soon <- next:
					default: // the disk is already behind
					}
				}
				r.dispatch(ctx, s, step)
			case <-ctx.Done():
				return
			}
		}
	})
	for _, w := range r.workers {
		r.group.Go(func() {
			for piece := range r.work {
				for n := piece.lo; n < piece.hi && ctx.Err() == nil; n++ {
					w.fill(r, piece.slot, n)
				}
				if piece.slot.pending.Add(int32(piece.lo-piece.hi)) == 0 {
					w.mix(r, &piece.slot.batch)
					piece.slot.done <- struct{}{}
				}
			}
		})
	}
	return r
}

// take borrows slots and workers from the loader.
func (r *run) take(slots int) {
	l := r.loader
	l.mu.Lock()
	defer l.mu.Unlock()
	r.free, r.ordered = make(chan *slot, slots), make(chan *slot, slots)
	for range slots {
		s := pop(&l.spare)
		if s == nil {
			s = newSlot(min(l.opt.Batch, l.ds.Len()), l.tr.Size(), l.ds.Channels(), l.targets, l.inputs)
		}
		r.slots = append(r.slots, s)
		r.free <- s
	}
	for range l.opt.Workers {
		w := pop(&l.workers)
		if w == nil {
			w = newWorker(l.tr, &l.opt, l.targets)
		}
		r.workers = append(r.workers, w)
	}
}

// idleKept bounds a worker's memory between epochs, while workers of other loaders may run.
const idleKept = 4 << 20

// stop ends the goroutines and returns the slots and workers borrowed by take.
func (r *run) stop() {
	r.cancel()
	r.group.Wait()
	for _, w := range r.workers {
		w.scratch.drop(idleKept)
	}
	l := r.loader
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = append(l.spare, r.slots...)
	l.workers = append(l.workers, r.workers...)
}

func pop[T any](stack *[]*T) *T {
	n := len(*stack)
	if n == 0 {
		return nil
	}
	top := (*stack)[n-1]
	*stack = (*stack)[:n-1]
	return top
}

// dispatch hands the rows of a batch to the workers, in pieces small enough to share the work and
// large enough to make the hand-over cheap.
func (r *run) dispatch(ctx context.Context, s *slot, step int) {
	opt := &r.loader.opt
	n := min(opt.Batch, r.loader.ds.Len()-step*opt.Batch)
	s.reset(r.epoch, step, n)
	r.ordered <- s
	piece := min(16, max(1, n/(4*opt.Workers)))
	for lo := 0; lo < n; lo += piece {
		select {
		case r.work <- rows{s, lo, min(lo+piece, n)}:
		case <-ctx.Done():
			return
		}
	}
}

// next waits for the next batch.
func (r *run) next(ctx context.Context) (*slot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var s *slot
	select {
	case s = <-r.ordered:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case <-s.done:
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// at is the index of the image at a position of the epoch's order.
func (r *run) at(position int) int {
	if r.order == nil {
		return position / r.loader.opt.Repeat
	}
	return int(r.order[position/r.loader.opt.Repeat])
}

// earlier is how often the epoch has the image at a position of its order before.
func (r *run) earlier(position int) int {
	repeat := r.loader.opt.Repeat
	if r.uses == nil {
		return position % repeat
	}
	return int(r.uses[position/repeat])*repeat + position%repeat
}

func newSlot(n, size, channels, targets int, inputs []Input) *slot {
	s := &slot{
		batch: Batch{
			Height: size, Width: size, Channels: channels,
			Images:  make([]uint8, n*size*size*channels),
			Crops:   make([]int32, n*3),
			Labels:  make([]int32, n),
			Index:   make([]int, n),
			targets: targets, Targets: make([]float32, n*targets),
			inputs: inputs, Inputs: make(map[string][]float32, len(inputs)),
		},
		errs: make([]error, n),
		done: make(chan struct{}, 1),
	}
	for _, in := range inputs {
		s.batch.Inputs[in.Name] = make([]float32, n*in.Len)
	}
	return s
}

func (s *slot) reset(epoch, step, n int) {
	b := &s.batch
	b.Epoch, b.Step, b.Bad = epoch, step, 0
	b.First = step * len(s.errs) // one for each image of a whole batch
	b.truncate(n)
	clear(s.errs)
	select {
	case <-s.done: // of an epoch that was left early
	default:
	}
	s.pending.Store(int32(n))
}

// truncate sets the number of images, at most the capacity.
func (b *Batch) truncate(n int) {
	b.N = n
	b.Images = b.Images[:n*b.Height*b.Width*b.Channels]
	b.Crops, b.Labels, b.Index = b.Crops[:3*n], b.Labels[:n], b.Index[:n]
	b.Targets = b.Targets[:n*b.targets]
	for _, in := range b.inputs {
		b.Inputs[in.Name] = b.Inputs[in.Name][:n*in.Len]
	}
}

// move copies row src to dst.
func (b *Batch) move(dst, src int) {
	if dst == src {
		return
	}
	copy(b.image(dst), b.image(src))
	copy(b.Crops[3*dst:3*dst+3], b.Crops[3*src:3*src+3])
	b.Labels[dst], b.Index[dst] = b.Labels[src], b.Index[src]
	copy(b.row(dst), b.row(src))
	for _, in := range b.inputs {
		copy(b.input(in, dst), b.input(in, src))
	}
}

// row is the targets of row n.
func (b *Batch) row(n int) []float32 { return b.Targets[n*b.targets : (n+1)*b.targets] }

func (b *Batch) image(n int) []uint8 {
	size := b.Height * b.Width * b.Channels
	return b.Images[n*size : (n+1)*size]
}

// worker is the state of one decoding goroutine.
type worker struct {
	scratch Scratch
	random  random.Rand
	tr      augment.Transform
	region  Region  // of tr
	spare   []uint8 // an image, for mixing
	targets []float64
}

func newWorker(tr augment.Transform, opt *LoaderOptions, targets int) *worker {
	w := &worker{scratch: *NewScratch(opt.Budget, opt.Workers), tr: tr}
	w.targets = make([]float64, targets)
	w.scratch.open = augment.OpensImages(tr)
	w.scratch.augment.Resizer.Fast = opt.FastDecode
	w.region = func(width, height int) image.Rectangle { return w.tr.Region(width, height, &w.random) }
	return w
}

// fill makes row n of a batch. If the image cannot be read it tries the next ones in the epoch's order, or leaves the
// row out: its index is −1.
func (w *worker) fill(r *run, s *slot, n int) {
	l, total := r.loader, r.loader.ds.Len()
	position := s.batch.Step*l.opt.Batch + n
	for try := range min(r.allowed+1, total) {
		p := (position + try) % total
		err := w.sample(r, &s.batch, n, r.at(p), r.earlier(p))
		if err == nil {
			return
		}
		if try == 0 {
			s.errs[n] = err
		}
		if !l.opt.Substitute {
			break
		}
	}
	s.batch.Index[n] = -1
}

// mix mixes a batch whose rows are all made.
func (w *worker) mix(r *run, b *Batch) {
	opt := &r.loader.opt
	if b.Other = b.Other[:0]; !opt.Mix.Active() || b.N < 2 {
		return
	}
	if cap(b.Other) < b.N {
		b.Other = make([]int32, b.N)
	}
	b.Other = b.Other[:b.N]
	source := random.New(opt.Seed, opt.Stream, uint64(r.epoch), mixSource, uint64(b.Step))
	b.Share = opt.Mix.Apply(augment.Images{N: b.N, Height: b.Height, Width: b.Width, Channels: b.Channels,
		Pix: b.Images, Labels: b.Labels, Other: b.Other}, &source, &w.spare)
	b.mixRows(b.Targets, b.targets)
	for _, in := range b.inputs {
		b.mixRows(b.Inputs[in.Name], in.Len)
	}
}

// mixRows mixes each image's numbers with those of the image before it, as the images.
func (b *Batch) mixRows(v []float32, width int) {
	last := slices.Clone(v[(b.N-1)*width:])
	for n := b.N - 1; n >= 0; n-- {
		row, other := v[n*width:(n+1)*width], last
		if n > 0 {
			other = v[(n-1)*width:]
		}
		for k, x := range row {
			row[k] = float32(b.Share*float64(x) + (1-b.Share)*float64(other[k]))
		}
	}
}

// sample reads image i into row n; repeat counts the image's earlier uses in the epoch.
func (w *worker) sample(r *run, b *Batch, n, i, repeat int) error {
	l := r.loader
	w.random = random.New(l.opt.Seed, l.opt.Stream, uint64(r.epoch), augmentSource, uint64(i))
	if repeat > 0 {
		w.random = random.New(l.opt.Seed, l.opt.Stream, uint64(r.epoch), augmentSource, uint64(i), uint64(repeat))
	}
	return w.read(l.ds, i, b, n)
}

// read reads image i of a set into row n.
func (w *worker) read(ds Dataset, i int, b *Batch, n int) error {
	defer w.scratch.Release()
	img, err := ds.Read(i, w.region, &w.scratch)
	if err != nil {
		return err
	}
	if img.Channels != b.Channels {
		return fmt.Errorf("%s: image has %d channels, its dataset %d", ds.Name(i), img.Channels, b.Channels)
	}
	crop, err := w.tr.Apply(b.image(n), img, &w.random, &w.scratch.augment)
	if err != nil {
		return fmt.Errorf("%s: %w", ds.Name(i), err)
	}
	flip := int32(0)
	if crop.Flip {
		flip = 1
	}
	copy(b.Crops[3*n:], []int32{int32(crop.Top), int32(crop.Left), flip})
	b.Labels[n], b.Index[n] = int32(ds.Label(i)), i
	if b.targets > 0 {
		Targets(ds, i, w.targets)
		for k, x := range w.targets {
			b.row(n)[k] = float32(x)
		}
	}
	return b.readInputs(ds, i, n)
}
