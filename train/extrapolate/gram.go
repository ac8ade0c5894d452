package extrapolate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna"
	"onlinerna/rna/kernel"
	"onlinerna/train/safetensors"
)

// groups is the number of parts of the work, each with its own sum; fewer if the sums are large. It must not depend on
// the machine, since it affects the rounding.
const groups = 64

// Measure reads the files once and computes the Gram matrix RᵀR of the residuals. Residuals whose squares exceed the
// range of float64 are scaled by powers of two, for which float64 files are read twice more. A NaN or infinite element
// is an error that names the file and the tensor.
func (s *Series) Measure(ctx context.Context) error {
	if n := len(s.opt.Pairs); n > rna.MaxColumns {
		return fmt.Errorf("%d residuals: at most %d are solved for: leave files out, or average them", n, rna.MaxColumns)
	}
	exps := make([]int, len(s.opt.Pairs))
	sum, err := s.products(ctx, exps)
	if err != nil {
		return err
	}
	if scaled, err := s.scales(ctx, sum, exps); err != nil {
		return err
	} else if scaled {
		if sum, err = s.products(ctx, exps); err != nil {
			return err
		}
	}
	s.space = newSpace(s, sum, exps)
	return nil
}

// Residuals between these powers of two have squares that sum without overflow or harmful underflow.
const (
	minExp = -300
	maxExp = 400
)

// scales sets the exponents of residuals that need one, and reports whether any does.
func (s *Series) scales(ctx context.Context, sum partial, exps []int) (scaled bool, err error) {
	n := len(exps)
	var doubtful []int
	for j := range n {
		if d := sum.gram[j*n+j]; !(d >= math.Ldexp(1, 2*minExp) && d <= math.Ldexp(1, 2*maxExp)) {
			doubtful = append(doubtful, j)
		}
	}
	spans := s.spans(func(r Role) bool { return r == Weight })
	wide := slices.ContainsFunc(spans, func(sp span) bool { return sp.column.DType == safetensors.F64 })
	if doubtful == nil || !wide {
		return false, nil
	}
	workers := make([]*gramWorker, s.workers())
	most := make([][]float64, len(spans))
	err = forEach(ctx, len(spans), len(workers), func(worker, i int) (err error) {
		if workers[worker] == nil {
			workers[worker] = s.gramWorker(exps)
		}
		most[i], err = workers[worker].largestOf(spans[i], doubtful)
		return err
	})
	if err != nil {
		return false, err
	}
	for k, j := range doubtful {
		m := 0.0
		for _, v := range most {
			m = max(m, v[k])
		}
		if _, e := math.Frexp(m); m > 0 && (e < minExp || e > maxExp) {
			exps[j], scaled = e, true
		}
	}
	return scaled, nil
}

// products sums the products of residuals, each times 2^-exp.
func (s *Series) products(ctx context.Context, exps []int) (partial, error) {
	spans := s.spans(func(r Role) bool { return r == Weight })
	n := len(s.opt.Pairs)
	size := n * n
	parts := min(groups, max(4, (1<<21)/max(size, 1)), len(spans))
	sums := make([]partial, parts)
	workers := make([]*gramWorker, s.workers())
	rank, ranks := s.opt.Ranks.Rank(), s.opt.Ranks.Size()
	err := forEach(ctx, (parts-rank+ranks-1)/ranks, len(workers), func(worker, g int) error {
		if workers[worker] == nil {
			workers[worker] = s.gramWorker(exps)
		}
		w := workers[worker]
		g = g*ranks + rank
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
	if err = s.opt.Ranks.Together(err); err != nil {
		return partial{}, err
	}
	if err := s.exchange(sums, size); err != nil {
		return partial{}, err
	}
	for _, p := range sums[1:] {
		sums[0].merge(p)
	}
	for i := range n {
		for j := range i {
			sums[0].gram[j*n+i] = sums[0].gram[i*n+j]
		}
	}
	return sums[0], nil
}

// exchange gives all ranks the partial sums of all: part g is computed by rank g mod the number of ranks.
func (s *Series) exchange(sums []partial, size int) error {
	group := s.opt.Ranks
	if group.Single() {
		return nil
	}
	var own []byte
	for g := group.Rank(); g < len(sums); g += group.Size() {
		for _, v := range append(sums[g].gram, sums[g].maxAbs) {
			own = binary.LittleEndian.AppendUint64(own, math.Float64bits(v))
		}
	}
	all, err := group.Gather(own)
	if err != nil {
		return err
	}
	for g := range sums {
		b := all[g%group.Size()][g/group.Size()*8*(size+1):]
		v := make([]float64, size+1)
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		sums[g] = partial{v[:size], v[size]}
	}
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
	products map[convert.Format]*kernel.Products
	sums     []float64 // Gram matrix of a block, lower triangle by rows
}

func (s *Series) gramWorker(exps []int) *gramWorker {
	w := &gramWorker{reader: s.reader(), files: s.all(), products: map[convert.Format]*kernel.Products{}}
	for j, p := range s.opt.Pairs {
		w.pairs = append(w.pairs, kernel.Pair{X: p.X, Y: p.Y, Exp: exps[j]})
	}
	w.sums = make([]float64, len(w.pairs)*(len(w.pairs)+1)/2)
	return w
}

func (w *gramWorker) add(sum *partial, sp span) error {
	if err := w.load(sp, w.files); err != nil {
		return err
	}
	t := sp.column.work()
	f := t.Format()
	if w.products[f] == nil {
		w.products[f] = kernel.NewProducts(f, len(w.views), w.pairs, true)
	}
	sum.maxAbs = max(sum.maxAbs, largest(t))
	if t == safetensors.F64 {
		for _, view := range w.views {
			m, _ := convert.Largest(nil, view, f, false)
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

// largestOf returns the largest element of each given residual in a span.
func (w *gramWorker) largestOf(sp span, residuals []int) ([]float64, error) {
	most := make([]float64, len(residuals))
	if err := w.load(sp, w.files); err != nil {
		return nil, err
	}
	t := sp.column.work()
	x, y := make([]float64, kernel.Block), make([]float64, kernel.Block)
	for at := 0; at < sp.n; at += kernel.Block {
		n := min(kernel.Block, sp.n-at)
		for k, j := range residuals {
			convert.Widen(x[:n], w.views[w.pairs[j].X][at*t.Size():], t.Format())
			convert.Widen(y[:n], w.views[w.pairs[j].Y][at*t.Size():], t.Format())
			for i := range n {
				most[k] = max(most[k], math.Abs(x[i]-y[i]))
			}
		}
	}
	return most, nil
}

// blame finds the non-finite element, or difference, if it makes the products of a block infinite. Products of finite
// residuals may be infinite: they are scaled later.
func (w *gramWorker) blame(sp span, at, n int) error {
	if err := w.notFinite(sp, w.files, at, n); err != nil {
		return err
	}
	most, err := w.largestOf(sp, numbers(len(w.pairs)))
	if err != nil {
		return err
	}
	for j, m := range most {
		if math.IsInf(m, 0) {
			p := w.pairs[j]
			return fmt.Errorf("tensor %q: the difference between %s and %s exceeds the largest finite number: leave one of "+
				"them out",
				sp.column.Name, w.series.files[p.Y].Path, w.series.files[p.X].Path)
		}
	}
	return nil
}

// notFinite is an error that names the first element of some files that is not finite, nil for none.
func (r *reader) notFinite(sp span, files []int, at, n int) error {
	values := make([]float64, n)
	for _, f := range files {
		convert.Widen(values, r.views[f][at*sp.column.work().Size():], sp.column.work().Format())
		for e, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s: element %d of tensor %q is %v: leave this checkpoint out", r.series.files[f].Path,
					sp.off+at+e, sp.column.Name, v)
			}
		}
	}
	return nil
}

// largest bounds the elements of a type; 0 for F64, for which the largest element must be searched.
func largest(t safetensors.DType) float64 {
	switch t {
	case safetensors.F16:
		return 65504
	case safetensors.F64:
		return 0
	}
	return math.MaxFloat32
}
