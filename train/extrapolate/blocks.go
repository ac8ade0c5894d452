package extrapolate

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"onlinerna/rna/kernel"
	"onlinerna/train/safetensors"
)

const (
	// spanLen elements of each file are read at a time, fewer of many files. Sums are taken within a block, then
	// over blocks in a fixed order.
	spanLen = 16 * kernel.Block

	// stageLen elements of all files together are read at a time, at most about.
	stageLen = 4 << 20
)

// span is a part of a tensor.
type span struct {
	column *column
	off, n int
}

// spans cuts tensors of the wanted roles.
func (s *Series) spans(want func(Role) bool) []span {
	most := max(min(spanLen, stageLen/len(s.files)/kernel.Block*kernel.Block), kernel.Block)
	var out []span
	for i := range s.tensors {
		c := &s.tensors[i]
		if !want(c.Role) {
			continue
		}
		for off := 0; off < c.n; off += most {
			out = append(out, span{c, off, min(most, c.n-off)})
		}
	}
	return out
}

// reader holds a worker's views of one span in each file, in the machine's byte order.
type reader struct {
	series *Series
	views  [][]byte
	bufs   [][]byte
}

func (s *Series) reader() *reader {
	return &reader{s, make([][]byte, len(s.files)), make([][]byte, len(s.files))}
}

// load views the span in the files of the given numbers.
func (r *reader) load(sp span, files []int) error {
	size := sp.n * sp.column.DType.Size()
	for _, f := range files {
		if len(r.bufs[f]) < size && (!inPlace || safetensors.Swapped || sp.column.in[f].strides != nil) {
			r.bufs[f] = make([]byte, size)
		}
		b, err := r.series.files[f].elements(r.bufs[f], sp.column.in[f], sp.off, sp.n)
		if err != nil {
			return err
		}
		if safetensors.Swapped {
			b = r.bufs[f][:copy(r.bufs[f], b)]
			safetensors.Swap(b, sp.column.DType)
		}
		r.views[f] = b
	}
	if p := r.series.opt.Progress; p != nil {
		p(int64(size) * int64(len(files)))
	}
	return nil
}

func (s *Series) workers() int {
	if s.opt.Workers > 0 {
		return s.opt.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// forEach calls piece once for each i in [0, n) on up to workers goroutines, and returns the error of the
// smallest i that it was called for. After an error, or when ctx is done, no more are started. Calls with one worker
// number do not overlap.
func forEach(ctx context.Context, n, workers int, piece func(worker, i int) error) error {
	var next, stop atomic.Int64
	var mu sync.Mutex
	var first error
	at := n
	var wg sync.WaitGroup
	for worker := range max(min(n, workers), 1) {
		wg.Go(func() {
			for stop.Load() == 0 && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := guard(func() error { return piece(worker, i) }); err != nil {
					stop.Store(1)
					mu.Lock()
					if i < at {
						at, first = i, err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if first != nil {
		return first
	}
	return context.Cause(ctx)
}

// all lists the numbers of all files.
func (s *Series) all() []int { return numbers(len(s.files)) }

// numbers lists 0 to n−1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
