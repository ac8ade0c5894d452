package convex

import (
	"runtime"

	"onlinerna/internal/parallel"
)

// A team goes over the rows of a matrix. The matrix alone determines the blocks of rows, and results of blocks are
// added in order. So results do not depend on the number of processors.
type team struct {
	bounds []int // of blocks
	serial bool

	pool *parallel.Pool // while begun
}

const (
	maxBlocks   = 16
	serialWork  = 1 << 15 // values; below, goroutines cost more than they gain
	minRows     = 32
	gradientBit = 4 // gradients of blocks take at most 1/gradientBit of the matrix's memory
)

func newTeam(m *Matrix) *team {
	blocks := min(maxBlocks, m.n/minRows, m.NonZeros()/m.d/gradientBit)
	blocks = max(blocks, 1)
	t := &team{bounds: make([]int, blocks+1), serial: m.NonZeros() < serialWork}
	for b := range blocks + 1 {
		t.bounds[b] = b * m.n / blocks
	}
	return t
}

func (t *team) blocks() int { return len(t.bounds) - 1 }

// begin keeps workers ready until the function that it returns is called. It need not be called.
func (t *team) begin() (end func()) {
	helpers := min(runtime.GOMAXPROCS(0), t.blocks()) - 1
	if t.serial || helpers < 1 || t.pool != nil {
		return func() {}
	}
	t.pool = parallel.NewPool(helpers + 1)
	return func() {
		t.pool.Close()
		t.pool = nil
	}
}

// each calls f for every block, with the rows [lo, hi) of it.
func (t *team) each(f func(b, lo, hi int)) {
	block := func(_, b int) { f(b, t.bounds[b], t.bounds[b+1]) }
	n := min(runtime.GOMAXPROCS(0), t.blocks())
	switch {
	case t.serial:
		parallel.For(t.blocks(), 1, block)
	case t.pool != nil && n > 1:
		t.pool.Run(t.blocks(), block)
	default:
		parallel.For(t.blocks(), n, block)
	}
}
