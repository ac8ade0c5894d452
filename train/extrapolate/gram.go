package extrapolate

import (
	"context"
	"fmt"
	"math"

	"onlinerna/rna/kernel"
	"onlinerna/train/safetensors"
)

// groups is into how many parts the work is cut, each with a sum of its own; fewer where the sums are large. It
// is no matter of the machine, since it shows in the rounding.
const groups = 64

// Measure reads the files once and computes the Gram matrix RᵀR of the residuals. An element that is NaN or infinite is
// an error that names the file and the tensor.
func (s *Series) Measure(ctx context.Context) error {
	spans := s.spans(func(r Role) bool { return r == Weight })
	n := len(s.opt.Pairs)
	size := n * n
	parts := min(groups, max(4, (1<<21)/max(size, 1)), len(spans))
	sums := make([]partial, parts)
	workers := make([]*gramWorker, s.workers())
	err := forEach(ctx, parts, len(workers), func(worker, g int) error {
		if workers[worker] == nil {
			workers[worker] = s.gramWorker()
		}
		w := workers[worker]
		sums[g].gram = make([]float64, size)
		for _, sp := range spans[g*len(spans)/parts : (g+1)*len(spans)/parts] {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := w.add(&sums[g], sp); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range sums[1:] {
		sums[0].merge(p)
	}
	for i := range n {
		for j := range i {
			sums[0].gram[j*n+i] = sums[0].gram[i*n+j]
		}
	}
	s.space = newSpace(s, sums[0])
	return nil
}

// partial is a sum over some spans.
type partial struct {
	gram   []float64 // n×n, the lower triangle
	maxAbs float64   // a bound on the elements
}

func (p *partial) merge(q partial) {
	for i, v := range q.gram {
		p.gram[i] += v
	}
	p.maxAbs = max(p.maxAbs, q.maxAbs)
}

// gramWorker has the buffers of one worker.
type gramWorker struct {
	*reader
	files    []int
	pairs    []kernel.Pair
	products map[kernel.Format]*kernel.Products
	sums     []float64 // the Gram matrix of a block, its lower triangle by rows
}

func (s *Series) gramWorker() *gramWorker {
	w := &gramWorker{reader: s.reader(), files: s.all(), products: map[kernel.Format]*kernel.Products{}}
	for _, p := range s.opt.Pairs {
		w.pairs = append(w.pairs, kernel.Pair{X: p.X, Y: p.Y})
	}
	w.sums = make([]float64, len(w.pairs)*(len(w.pairs)+1)/2)
	return w
}

func (w *gramWorker) add(sum *partial, sp span) error {
	if err := w.load(sp, w.files); err != nil {
		return err
	}
	t := sp.column.DType
	f := t.Format()
	if w.products[f] == nil {
		w.products[f] = kernel.NewProducts(f, len(w.views), w.pairs, true)
	}
	sum.maxAbs = max(sum.maxAbs, largest(t))
	if t == safetensors.F64 {
		for _, view := range w.views {
			m, _ := kernel.Largest(nil, view, f, false)
			sum.maxAbs = max(sum.maxAbs, m)
		}
	}
	n := len(w.pairs)
	for at := 0; at < sp.n; at += kernel.Block {
		count := min(kernel.Block, sp.n-at)
		w.products[f].Block(w.sums, w.views, at, count)
		finite := true
		k := 0
		for i := range n {
			for j := range i + 1 {
				sum.gram[i*n+j] += w.sums[k]
				k++
			}
			if d := w.sums[k-1]; math.IsNaN(d) || math.IsInf(d, 0) {
				finite = false
			}
		}
		if !finite {
			if err := w.blame(sp, at, count); err != nil {
				return err
			}
		}
	}
	return nil
}

// blame finds the element that made the products of a block infinite.
func (w *gramWorker) blame(sp span, at, n int) error {
	size := sp.column.DType.Size()
	values := make([]float64, n)
	for f, view := range w.views {
		kernel.Widen(values, view[at*size:], sp.column.DType.Format())
		for e, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s: element %d of tensor %q is %v: leave this checkpoint out", w.series.files[f].Path, sp.off+at+e, sp.column.Name, v)
			}
		}
	}
	return fmt.Errorf("tensor %q: the squared distance between successive files exceeds the largest finite number", sp.column.Name)
}

// largest bounds the elements of a type, 0 for F64, of which the largest is sought.
func largest(t safetensors.DType) float64 {
	switch t {
	case safetensors.F16:
		return 65504
	case safetensors.F64:
		return 0
	}
	return math.MaxFloat32
}
