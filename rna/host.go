package rna

import (
	"fmt"

	"onlinerna/internal/parallel"
	"onlinerna/internal/simd"
)

// NewHost32 returns a space of float32 vectors with dim elements in host memory. Workers
// goroutines share the work, GOMAXPROCS of them when it is 0; results do not
// depend on their number.
func NewHost32(dim, workers int) (Space, error) { return newHost[float32](dim, workers) }

// NewHost64 is [NewHost32] for float64 vectors.
func NewHost64(dim, workers int) (Space, error) { return newHost[float64](dim, workers) }

// hostSpan elements of vectors in memory are taken at a time, at most.
const hostSpan = 16 * blockLen

func newHost[T float](dim, workers int) (Space, error) {
	if err := checkDim(dim); err != nil {
		return nil, err
	}
	return &storage[T]{
		dim:     dim,
		workers: parallel.Workers(workers),
		create:  func() (cells[T], error) { return &hostVector[T]{make([]T, dim)}, nil },
		span:    func(int) int { return hostSpan },
	}, nil
}

func checkDim(dim int) error {
	if err := simd.Err(); err != nil {
		return err
	}
	if dim < 1 {
		return fmt.Errorf("rna: space of vectors of %d elements: there must be at least 1", dim)
	}
	return nil
}

// A hostVector is a Go slice.
type hostVector[T float] struct{ elements []T }

func (v *hostVector[T]) Len() int                              { return len(v.elements) }
func (v *hostVector[T]) ReadAt(dst []float32, off int) error   { return get(dst, v.elements, off) }
func (v *hostVector[T]) ReadAt64(dst []float64, off int) error { return get(dst, v.elements, off) }
func (v *hostVector[T]) Close() error                          { return nil }

func (v *hostVector[T]) view(_ []T, off, n int) ([]T, error) { return part(v.elements, off, n), nil }

func (v *hostVector[T]) put(src []T, off int) error { return put(v.elements, src, off) }
