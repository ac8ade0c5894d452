package convex

import (
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"
)

// A team sums over the rows of a matrix. Rows are cut into blocks by the matrix alone and the sums of
// blocks are added in order, so that results do not depend on the number of processors.
type team struct {
	bounds []int // of blocks
	parts  [][]float64
	sums   []float64
	serial bool
}

const (
	maxBlocks   = 16
	serialWork  = 1 << 15 // values; below, goroutines cost more than they gain
	minRows     = 32
	gradientBit = 4 // parts may hold 1/gradientBit of what the matrix does
)

func newTeam(m *Matrix) *team {
	blocks := min(maxBlocks, m.n/minRows, len(m.values)/m.d/gradientBit)
	blocks = max(blocks, 1)
	t := &team{bounds: make([]int, blocks+1), parts: make([][]float64, blocks), sums: make([]float64, blocks)}
	for b := range blocks + 1 {
		t.bounds[b] = b * m.n / blocks
	}
	for b := range t.parts {
		t.parts[b] = make([]float64, m.d)
	}
	t.serial = len(m.values) < serialWork
	return t
}

// each calls f for every block, with the rows [lo, hi) of it.
func (t *team) each(f func(b, lo, hi int)) {
	blocks := len(t.parts)
	workers := min(runtime.GOMAXPROCS(0), blocks)
	if t.serial || workers == 1 {
		for b := range blocks {
			f(b, t.bounds[b], t.bounds[b+1])
		}
		return
	}
	var next atomic.Int64
	work := func() {
		for {
			b := int(next.Add(1)) - 1
			if b >= blocks {
				return
			}
			f(b, t.bounds[b], t.bounds[b+1])
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// sum sets out to the sum of what f adds to its part, and returns the sum of what f returns.
func (t *team) sum(out []float64, f func(part []float64, lo, hi int) float64) float64 {
	t.each(func(b, lo, hi int) {
		clear(t.parts[b])
		t.sums[b] = f(t.parts[b], lo, hi)
	})
	copy(out, t.parts[0])
	for _, p := range t.parts[1:] {
		floats.Add(out, p)
	}
	return floats.Sum(t.sums)
}
