package extrapolate

import (
	"context"
	"math"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna/kernel"
)

// Norms are 2-norms of one tensor.
type Norms struct {
	Tensor
	Norm  []float64 // in each file
	Moved []float64 // from each file but the last to the next
}

// Norms reads the files once and returns the norms of all floating-point tensors, including those with NaN or infinite
// elements.
func (s *Series) Norms(ctx context.Context) ([]Norms, error) {
	var out []Norms
	var columns []*column
	for i := range s.tensors {
		c := &s.tensors[i]
		if !c.DType.Number() {
			continue
		}
		columns = append(columns, c)
		out = append(out, Norms{Tensor: c.Tensor, Norm: make([]float64, len(s.files)), Moved: make([]float64,
			len(s.files)-1)})
	}
	spans := map[*column][]span{}
	for _, sp := range s.spans(func(Role) bool { return true }) {
		spans[sp.column] = append(spans[sp.column], sp)
	}
	workers := make([]*normWorker, s.workers())
	err := forEach(ctx, len(columns), len(workers), func(worker, i int) error {
		if workers[worker] == nil {
			workers[worker] = &normWorker{s.reader(), map[convert.Format][]*kernel.Products{}}
		}
		for _, sp := range spans[columns[i]] {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := workers[worker].add(&out[i], sp); err != nil {
				return err
			}
		}
		for _, list := range [][]float64{out[i].Norm, out[i].Moved} {
			for k, v := range list {
				list[k] = math.Sqrt(v)
			}
		}
		return nil
	})
	return out, err
}

// normWorker has the buffers of one worker.
type normWorker struct {
	*reader
	squares map[convert.Format][]*kernel.Products // of each file, then of each difference to the previous file
}

func (w *normWorker) of(f convert.Format) []*kernel.Products {
	if w.squares[f] == nil {
		n := len(w.views)
		for i := range n {
			w.squares[f] = append(w.squares[f], kernel.NewProducts(f, n, []kernel.Pair{{X: i, Y: -1}}, true))
		}
		for i := range n - 1 {
			w.squares[f] = append(w.squares[f], kernel.NewProducts(f, n, []kernel.Pair{{X: i + 1, Y: i}}, true))
		}
	}
	return w.squares[f]
}

// add adds the squared norms of a span.
func (w *normWorker) add(norms *Norms, sp span) error {
	if err := w.load(sp, w.series.all()); err != nil {
		return err
	}
	var square [1]float64
	for at := 0; at < sp.n; at += kernel.Block {
		for i, p := range w.of(sp.column.work().Format()) {
			p.Block(square[:], w.views, at, min(kernel.Block, sp.n-at))
			if i < len(w.views) {
				norms.Norm[i] += square[0]
			} else {
				norms.Moved[i-len(w.views)] += square[0]
			}
		}
	}
	return nil
}
