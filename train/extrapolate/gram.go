package extrapolate

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

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
	files     []int
	values    [][]float64 // a block of each file
	residuals [][]float64
	block     []float64 // the Gram matrix of a block
}

func (s *Series) gramWorker() *gramWorker {
	w := &gramWorker{reader: s.reader(), files: s.all(), block: make([]float64, len(s.opt.Pairs)*len(s.opt.Pairs))}
	for range s.files {
		w.values = append(w.values, make([]float64, blockLen))
	}
	for range s.opt.Pairs {
		w.residuals = append(w.residuals, make([]float64, blockLen))
	}
	return w
}

func (w *gramWorker) add(sum *partial, sp span) error {
	if err := w.load(sp, w.files); err != nil {
		return err
	}
	t := sp.column.DType
	size := t.Size()
	sum.maxAbs = max(sum.maxAbs, largest(t))
	for at := 0; at < sp.n; at += blockLen {
		n := min(blockLen, sp.n-at)
		for f, view := range w.views {
			if err := safetensors.Decode(w.values[f][:n], view[at*size:(at+n)*size], t); err != nil {
				return err
			}
			if t == safetensors.F64 {
				for _, v := range w.values[f][:n] {
					sum.maxAbs = max(sum.maxAbs, math.Abs(v))
				}
			}
		}
		if !w.products(sum.gram, n) {
			if err := w.blame(sp, at, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// products adds the Gram matrix of the block and says whether it is finite.
func (w *gramWorker) products(gram []float64, n int) bool {
	impl := blas64.Implementation()
	k := len(w.residuals)
	finite := true
	for i, p := range w.series.opt.Pairs {
		r := w.residuals[i][:n]
		x, y := w.values[p.X][:n], w.values[p.Y][:n]
		for e := range r {
			r[e] = x[e] - y[e]
		}
		for j := range i + 1 {
			w.block[i*k+j] = impl.Ddot(n, r, 1, w.residuals[j], 1)
		}
		if d := w.block[i*k+i]; math.IsNaN(d) || math.IsInf(d, 0) {
			finite = false
		}
	}
	for i, v := range w.block {
		gram[i] += v
	}
	return finite
}

// blame finds the element that made the products of a block infinite.
func (w *gramWorker) blame(sp span, at, n int) error {
	for f, values := range w.values {
		for e, v := range values[:n] {
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
