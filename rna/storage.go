package rna

import (
	"fmt"
	"sync"

	"onlinerna/internal/parallel"
	"onlinerna/internal/simd/convert"
	"onlinerna/rna/kernel"
)

const (
	// blockLen elements have one sum.
	blockLen = kernel.Block

	// stageLen elements are copied at a time where memory can't be reached directly.
	stageLen = 32 * blockLen

	// pastCaches bytes exceed the caches; vectors this large are written past the caches.
	pastCaches = 4 << 20
)

// storage is a Space of vectors that the CPU reads by spans of elements.
type storage[T float] struct {
	dim, workers int
	create       func() (cells[T], error)

	// span returns the maximal number of elements of each of the given number of vectors that are taken at a time: whole
	// blocks. Sums are taken within a block, then over blocks in a fixed order, so that neither workers nor the place of
	// vectors change a bit.
	span func(vectors int) int

	// buffered reports that cells need a buffer to be viewed.
	buffered bool
}

// cells are the elements of a stored vector.
type cells[T float] interface {
	Vector

	// view returns the elements [off, off+n), where they lie or copied to buf.
	view(buf []T, off, n int) ([]T, error)

	// put writes src over the elements from off on.
	put(src []T, off int) error
}

var (
	_ Space = (*storage[float32])(nil)
	_ Space = (*storage[float64])(nil)
)

func (s *storage[T]) Dim() int { return s.dim }

func (s *storage[T]) Bits() int { return 8 * s.size() }

// size is the bytes of an element.
func (s *storage[T]) size() int { return s.format().Size() }

func (s *storage[T]) format() convert.Format {
	if _, is32 := any(T(0)).(float32); is32 {
		return convert.Float32
	}
	return convert.Float64
}

// large reports whether n elements exceed the caches.
func (s *storage[T]) large(n int) bool { return n*s.size() >= pastCaches }

// threads is the number of goroutines that may read vectors at a time.
func (s *storage[T]) threads() int { return s.workers }

func (s *storage[T]) New() (Vector, error) {
	v, err := s.create()
	if err != nil {
		return nil, err
	}
	return v, nil
}

// own returns the elements of one of the space's vectors.
func (s *storage[T]) own(v Vector) (cells[T], error) {
	own, ok := v.(cells[T])
	if !ok || own.Len() != s.dim {
		return nil, fmt.Errorf("rna: %T is not a vector of this space of %d float%d elements", v, s.dim, s.Bits())
	}
	return own, nil
}

// spans calls piece for spans [lo, hi) of whole blocks that cover n elements, and returns
// the first error that it gives.
func (s *storage[T]) spans(n, vectors int, piece func(worker, lo, hi int) error) error {
	// Spans are long, for the sake of memory, but enough of them for all workers.
	fair := (n/(4*s.workers) + blockLen - 1) / blockLen * blockLen
	span := min(max(fair, blockLen), s.span(vectors))
	var failed sync.Once
	var failure error
	parallel.For((n+span-1)/span, s.workers, func(worker, i int) {
		if err := piece(worker, i*span, min((i+1)*span, n)); err != nil {
			failed.Do(func() { failure = err })
		}
	})
	return failure
}

// A reading is some vectors' elements of one span, with the worker's buffers.
type reading[T float] struct {
	views [][]byte
	buf   []T
}

func (s *storage[T]) readings(vectors int) []reading[T] {
	rs := make([]reading[T], s.workers)
	for i := range rs {
		rs[i].views = make([][]byte, vectors)
	}
	return rs
}

// load views the elements [lo, hi) of each of vs.
func (s *storage[T]) load(r *reading[T], vs []cells[T], lo, hi int) error {
	n := hi - lo
	if s.buffered && r.buf == nil {
		r.buf = make([]T, len(vs)*min(s.span(len(vs)), s.dim))
	}
	for i, v := range vs {
		var buf []T
		if s.buffered {
			buf = r.buf[i*n : (i+1)*n]
		}
		view, err := v.view(buf, lo, n)
		if err != nil {
			return err
		}
		r.views[i] = bytesOf(view)
	}
	return nil
}

// memory returns n elements of v from off on themselves, or nil when they can't be reached.
func memory[T float](v any, off, n int) []T {
	var m any
	switch any(T(0)).(type) {
	case float32:
		if f, ok := v.(Float32Memory); ok {
			m = f.Float32s(off, n)
		}
	case float64:
		if f, ok := v.(Float64Memory); ok {
			m = f.Float64s(off, n)
		}
	}
	if s, _ := m.([]T); len(s) == n {
		return s
	}
	return nil
}

func (s *storage[T]) Store(dst Vector, src Source) (float64, error) {
	if src.Len() != s.dim {
		return 0, fmt.Errorf("rna: store of a vector of %d elements in a space of %d", src.Len(), s.dim)
	}
	var to cells[T]
	if dst != nil {
		var err error
		if to, err = s.own(dst); err != nil {
			return 0, err
		}
	}
	if from := memory[T](src, 0, s.dim); from != nil {
		return s.take(to, from, 0)
	}
	stage := make([]T, min(s.dim, stageLen))
	most := 0.0
	for off := 0; off < s.dim; off += stageLen {
		part := stage[:min(stageLen, s.dim-off)]
		if err := read(part, src, off); err != nil {
			return 0, fmt.Errorf("rna: read of %d elements at offset %d: %w", len(part), off, err)
		}
		m, err := s.take(to, part, off)
		if err != nil {
			return 0, err
		}
		most = max(most, m)
	}
	return most, nil
}

// take checks that the elements are finite, and copies from to to's elements from off on unless to is nil.
func (s *storage[T]) take(to cells[T], from []T, off int) (float64, error) {
	n := (len(from) + blockLen - 1) / blockLen
	most := make([]float64, n) // by the first block of a span
	bad := make([]int, n)
	err := s.spans(len(from), 1, func(_, lo, hi int) (err error) {
		b := lo / blockLen
		var dst []T
		if to != nil && !s.buffered {
			if dst, err = to.view(nil, off+lo, hi-lo); err != nil {
				return err
			}
		}
		most[b], bad[b] = convert.Largest(bytesOf(dst), bytesOf(from[lo:hi]), s.format(), s.large(s.dim))
		if bad[b]++; to == nil || dst != nil || bad[b] > 0 {
			return nil
		}
		return to.put(from[lo:hi], off+lo)
	})
	if err != nil {
		return 0, err
	}
	m := 0.0
	for b := range n {
		if bad[b] > 0 {
			i := b*blockLen + bad[b] - 1
			return 0, &NonFiniteError{Offset: off + i, Value: float64(from[i])}
		}
		m = max(m, most[b])
	}
	return m, nil
}

// read fills dst from src, in float64 where both have it.
func read[T float](dst []T, src Source, off int) error {
	switch d := any(dst).(type) {
	case []float32:
		return src.ReadAt(d, off)
	case []float64:
		if wide, ok := src.(Source64); ok {
			return wide.ReadAt64(d, off)
		}
	}
	narrow := make([]float32, len(dst))
	if err := src.ReadAt(narrow, off); err != nil {
		return err
	}
	cast(dst, narrow)
	return nil
}

func (s *storage[T]) Combine(dst Sink, terms []Term) error {
	if dst.Len() != s.dim {
		return fmt.Errorf("rna: combination of vectors of %d elements into one of %d", s.dim, dst.Len())
	}
	vs := make([]cells[T], len(terms))
	coef := make([]float64, len(terms))
	for k := range terms {
		var err error
		if vs[k], err = s.own(terms[k].Vector); err != nil {
			return err
		}
		coef[k] = terms[k].Coef
	}
	readings := s.readings(len(vs))
	workers := make([]*combiner, s.workers)
	// sum writes elements from off on to part.
	sum := func(part []T, off int, past bool) error {
		return s.spans(len(part), len(vs), func(worker, lo, hi int) error {
			r := &readings[worker]
			if err := s.load(r, vs, off+lo, off+hi); err != nil {
				return err
			}
			if workers[worker] == nil {
				workers[worker] = &combiner{Combination: kernel.NewCombination(s.format(), coef)}
			}
			c := workers[worker]
			for at := lo; at < hi; at += kernel.Run {
				acc := c.acc[:min(kernel.Run, hi-at)]
				c.Sum(acc, r.views, at-lo)
				convert.Round(bytesOf(part[at:at+len(acc)]), acc, s.format(), past)
			}
			return nil
		})
	}
	if whole := memory[T](dst, 0, s.dim); whole != nil {
		return sum(whole, 0, s.large(s.dim))
	}
	stage := make([]T, min(s.dim, stageLen))
	for off := 0; off < s.dim; off += stageLen {
		part := stage[:min(stageLen, s.dim-off)]
		if err := sum(part, off, false); err != nil {
			return err
		}
		if err := write(dst, part, off); err != nil {
			return fmt.Errorf("rna: write of %d elements at offset %d: %w", len(part), off, err)
		}
	}
	return nil
}

// combiner is a worker's combination with its row of sums.
type combiner struct {
	*kernel.Combination
	acc [kernel.Run]float64
}

// write puts src into dst, in float64 where both have it.
func write[T float](dst Sink, src []T, off int) error {
	switch s := any(src).(type) {
	case []float32:
		return dst.WriteAt(s, off)
	case []float64:
		if wide, ok := dst.(Sink64); ok {
			return wide.WriteAt64(s, off)
		}
	}
	narrow := make([]float32, len(src))
	cast(narrow, src)
	return dst.WriteAt(narrow, off)
}
