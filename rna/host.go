package rna

import (
	"fmt"

	"onlinerna/rna/internal/kernel"
	"onlinerna/rna/internal/parallel"
)

const (
	// blockLen elements of three vectors fit a first-level cache. Sums are taken
	// within a block, then over blocks in a fixed order.
	blockLen = 2048

	// stageLen elements are copied at a time where memory can't be reached directly.
	stageLen = 128 * blockLen
)

// host is a Space of Go slices.
type host[T float] struct {
	dim, workers int
}

type hostVector[T float] []T

var (
	_ Space = (*host[float32])(nil)
	_ Space = (*host[float64])(nil)
)

// NewHost32 returns a space of float32 vectors with dim elements in host memory. Workers
// goroutines share the work, GOMAXPROCS of them when it is 0; results do not
// depend on their number.
func NewHost32(dim, workers int) (Space, error) { return newHost[float32](dim, workers) }

// NewHost64 is [NewHost32] for float64 vectors.
func NewHost64(dim, workers int) (Space, error) { return newHost[float64](dim, workers) }

func newHost[T float](dim, workers int) (Space, error) {
	if dim < 1 {
		return nil, fmt.Errorf("rna: space of vectors of %d elements: there must be at least 1", dim)
	}
	return &host[T]{dim: dim, workers: parallel.Workers(workers)}, nil
}

func (h *host[T]) Dim() int { return h.dim }

func (h *host[T]) Bits() int {
	if _, is32 := any(T(0)).(float32); is32 {
		return 32
	}
	return 64
}

func (h *host[T]) New() (Vector, error) { return hostVector[T](make([]T, h.dim)), nil }

func (v hostVector[T]) Len() int                              { return len(v) }
func (v hostVector[T]) ReadAt(dst []float32, off int) error   { return get(dst, v, off) }
func (v hostVector[T]) ReadAt64(dst []float64, off int) error { return get(dst, v, off) }
func (v hostVector[T]) Close() error                          { return nil }

// own returns the elements of one of the space's vectors.
func (h *host[T]) own(v Vector) ([]T, error) {
	own, ok := v.(hostVector[T])
	if !ok || len(own) != h.dim {
		return nil, fmt.Errorf("rna: %T is not a vector of this space of %d float%d elements", v, h.dim, h.Bits())
	}
	return own, nil
}

// blocks calls piece for each block [lo, hi) of a vector of n elements.
func (h *host[T]) blocks(n int, piece func(worker, block, lo, hi int)) {
	parallel.For((n+blockLen-1)/blockLen, h.workers, func(worker, b int) {
		piece(worker, b, b*blockLen, min((b+1)*blockLen, n))
	})
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

func (h *host[T]) Store(dst Vector, src Source) (float64, error) {
	if src.Len() != h.dim {
		return 0, fmt.Errorf("rna: store of a vector of %d elements in a space of %d", src.Len(), h.dim)
	}
	var to []T
	if dst != nil {
		var err error
		if to, err = h.own(dst); err != nil {
			return 0, err
		}
	}
	if from := memory[T](src, 0, h.dim); from != nil {
		return h.check(to, from, 0)
	}
	var stage []T
	if to == nil {
		stage = make([]T, min(h.dim, stageLen))
	}
	most := 0.0
	for off := 0; off < h.dim; off += stageLen {
		n := min(stageLen, h.dim-off)
		part := stage
		if to != nil {
			part = to[off:]
		}
		part = part[:n]
		if err := read(part, src, off); err != nil {
			return 0, fmt.Errorf("rna: read of %d elements at offset %d: %w", n, off, err)
		}
		m, err := h.check(nil, part, off)
		if err != nil {
			return 0, err
		}
		most = max(most, m)
	}
	return most, nil
}

// check looks for elements that are not finite, and copies from to to unless that is nil. Offset is
// that of the first element, for the error.
func (h *host[T]) check(to, from []T, offset int) (float64, error) {
	n := (len(from) + blockLen - 1) / blockLen
	most := make([]T, n)
	bad := make([]int, n)
	h.blocks(len(from), func(_, b, lo, hi int) {
		if to != nil {
			copy(to[lo:hi], from[lo:hi])
		}
		most[b], bad[b] = kernel.MaxAbs(from[lo:hi])
	})
	var m T
	for b := range n {
		if bad[b] >= 0 {
			i := b*blockLen + bad[b]
			return 0, &NonFiniteError{Offset: offset + i, Value: float64(from[i])}
		}
		m = max(m, most[b])
	}
	return float64(m), nil
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
	convert(dst, narrow)
	return nil
}

// pair is a residual's elements: x − y, or x when y is nil, times 2^-exp.
type pair[T float] struct {
	x, y []T
	exp  int
}

func (h *host[T]) pair(r Residual) (p pair[T], err error) {
	p.exp = r.Exp
	if p.x, err = h.own(r.X); err == nil && r.Y != nil {
		p.y, err = h.own(r.Y)
	}
	return p, err
}

// block writes the residual's elements [lo, hi) to dst.
func (p pair[T]) block(dst []float64, lo, hi int) {
	if p.y != nil {
		kernel.Diff(dst, p.x[lo:hi], p.y[lo:hi])
	} else {
		kernel.Widen(dst, p.x[lo:hi])
	}
	if p.exp != 0 {
		kernel.Shift(dst, -p.exp)
	}
}

// dot returns the inner product of a and the residual's elements [lo, hi).
func (p pair[T]) dot(a []float64, lo, hi int) float64 {
	switch {
	case p.exp != 0:
		scaled := make([]float64, hi-lo)
		p.block(scaled, lo, hi)
		return kernel.Dot(a, scaled)
	case p.y != nil:
		return kernel.DotDiff(a, p.x[lo:hi], p.y[lo:hi])
	}
	return kernel.Dot(a, p.x[lo:hi])
}

func (h *host[T]) MaxAbs(r Residual) (float64, error) {
	r.Exp = 0
	p, err := h.pair(r)
	if err != nil {
		return 0, err
	}
	most := make([]float64, (h.dim+blockLen-1)/blockLen)
	h.blocks(h.dim, func(_, b, lo, hi int) {
		diff := make([]float64, hi-lo)
		p.block(diff, lo, hi)
		most[b], _ = kernel.MaxAbs(diff)
	})
	m := 0.0
	for _, v := range most {
		m = max(m, v)
	}
	return m, nil
}

func (h *host[T]) GramRow(row []float64, r Residual, with []Residual) error {
	if len(row) != len(with) {
		return fmt.Errorf("rna: row of %d entries for %d residuals", len(row), len(with))
	}
	p, err := h.pair(r)
	if err != nil {
		return err
	}
	cols := make([]pair[T], len(with))
	for j := range with {
		if cols[j], err = h.pair(with[j]); err != nil {
			return err
		}
	}
	n := (h.dim + blockLen - 1) / blockLen
	sums := make([]float64, n*len(cols))
	scratch := make([]float64, min(h.workers, n)*blockLen)
	h.blocks(h.dim, func(worker, b, lo, hi int) {
		diff := scratch[worker*blockLen:][:hi-lo]
		p.block(diff, lo, hi)
		for j := range cols {
			sums[j*n+b] = cols[j].dot(diff, lo, hi)
		}
	})
	for j := range cols {
		row[j] = pairwise(sums[j*n : (j+1)*n])
	}
	return nil
}

// pairwise sums v by halves, whose rounding grows with log len(v) only.
func pairwise(v []float64) float64 {
	if len(v) <= 8 {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum
	}
	half := len(v) / 2
	return pairwise(v[:half]) + pairwise(v[half:])
}

func (h *host[T]) Combine(dst Sink, terms []Term) error {
	if dst.Len() != h.dim {
		return fmt.Errorf("rna: combination of vectors of %d elements into one of %d", h.dim, dst.Len())
	}
	vs := make([][]T, len(terms))
	for k := range terms {
		var err error
		if vs[k], err = h.own(terms[k].Vector); err != nil {
			return err
		}
	}
	scratch := make([]float64, h.workers*blockLen)
	// sum writes elements from off on to part.
	sum := func(part []T, off int) {
		h.blocks(len(part), func(worker, _, lo, hi int) {
			acc := scratch[worker*blockLen:][:hi-lo]
			clear(acc)
			for k, v := range vs {
				if k == 0 {
					// Not added to zero, which would lose the sign of -0.
					kernel.Scale(acc, terms[k].Coef, v[off+lo:off+hi])
				} else {
					kernel.Add(acc, terms[k].Coef, v[off+lo:off+hi])
				}
			}
			kernel.Narrow(part[lo:hi], acc)
		})
	}
	if whole := memory[T](dst, 0, h.dim); whole != nil {
		sum(whole, 0)
		return nil
	}
	stage := make([]T, min(h.dim, stageLen))
	for off := 0; off < h.dim; off += stageLen {
		part := stage[:min(stageLen, h.dim-off)]
		sum(part, off)
		if err := write(dst, part, off); err != nil {
			return fmt.Errorf("rna: write of %d elements at offset %d: %w", len(part), off, err)
		}
	}
	return nil
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
	convert(narrow, src)
	return dst.WriteAt(narrow, off)
}
