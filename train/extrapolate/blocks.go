package extrapolate

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna/kernel"
	"onlinerna/train/safetensors"
)

const (
	// spanLen is the number of elements read at a time from each file, fewer for many files. Sums are taken within a
	// block, then over blocks in a fixed order.
	spanLen = 16 * kernel.Block

	// stageLen is the approximate number of elements read at a time from all files together.
	stageLen = 4 << 20

	// maxBuffers bounds the bytes that all workers hold.
	maxBuffers = 512 << 20
)

// spanLen returns the number of elements read at a time from each file. It must not depend on the machine, since it
// affects the rounding.
func (s *Series) spanLen() int {
	return max(min(spanLen, stageLen/len(s.files)/kernel.Block*kernel.Block), kernel.Block)
}

// span is a part of a tensor.
type span struct {
	column *column
	off, n int
}

// spans cuts tensors of the wanted roles into spans.
func (s *Series) spans(want func(Role) bool) []span {
	var out []span
	for i := range s.tensors {
		if c := &s.tensors[i]; want(c.Role) {
			out = append(out, s.cut(c)...)
		}
	}
	return out
}

// cut cuts a tensor into spans.
func (s *Series) cut(c *column) []span {
	var out []span
	for off := 0; off < c.n; off += s.spanLen() {
		out = append(out, span{c, off, min(s.spanLen(), c.n-off)})
	}
	return out
}

// reader holds a worker's views of one span in each file, in the machine's byte order and the working type.
type reader struct {
	series  *Series
	views   [][]byte
	bufs    [][]byte
	wide    [][]byte
	values  []float64
	factors []float64   // scales
	rows    [][]float64 // used by widened
	cut     [][]float64
}

func (s *Series) reader() *reader {
	n := len(s.files)
	return &reader{series: s, views: make([][]byte, n), bufs: make([][]byte, n), wide: make([][]byte, n)}
}

// raw reads the bytes of a span in a file.
func (r *reader) raw(sp span, file int) ([]byte, error) {
	t := sp.column.in[file]
	size := sp.n * t.DType.Size()
	r.bufs[file] = slices.Grow(r.bufs[file][:0], size)[:size]
	b, err := r.series.files[file].elements(r.bufs[file], t, sp.off, sp.n)
	if p := r.series.opt.Progress; p != nil {
		p(int64(size))
	}
	return b, err
}

// load sets the views of a span in the files with the given indices.
func (r *reader) load(sp span, files []int) error {
	for _, f := range files {
		b, err := r.raw(sp, f)
		if err != nil {
			return err
		}
		if t := sp.column.DType; t != sp.column.work() { // eight-bit types: their values are exact in the wider type
			r.values = slices.Grow(r.values[:0], sp.n)[:sp.n]
			if err := safetensors.Decode(r.values, b, t); err != nil {
				return err
			}
			if sp.column.scale != nil {
				if err := r.unscale(r.values, sp, f); err != nil {
					return err
				}
			}
			size := sp.n * sp.column.work().Size()
			r.wide[f] = slices.Grow(r.wide[f][:0], size)[:size]
			b = r.wide[f]
			convert.RoundFinite(b, r.values, sp.column.work().Format())
		} else if safetensors.Swapped {
			safetensors.Swap(b, t)
		}
		r.views[f] = b
	}
	return nil
}

// work returns the type that the kernels use.
func (c *column) work() safetensors.DType {
	if c.scale != nil {
		return safetensors.F64
	}
	if c.DType.Number() && !c.DType.Float() {
		return safetensors.F32
	}
	return c.DType
}

// workers returns the number of goroutines. Each holds a span of every file.
func (s *Series) workers() int {
	n := s.opt.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return max(min(n, maxBuffers/(8*s.spanLen()*len(s.files))), 1)
}

// forEach calls piece once for each i in [0, n) on up to workers goroutines, and returns the error of the smallest
// failing i. After an error, or when ctx is done, it starts no more calls. Calls with the same worker number do not
// overlap.
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
				if err := piece(worker, i); err != nil {
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
