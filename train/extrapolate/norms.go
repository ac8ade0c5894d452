package extrapolate

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"onlinerna/train/safetensors"
)

// Norms are 2-norms of one tensor.
type Norms struct {
	Tensor
	Norm  []float64 // in each file
	Moved []float64 // from each file but the last to the next
}

// Norms reads the files once and returns the norms of all floating-point tensors, those with elements that are NaN
// or infinite included.
func (s *Series) Norms(ctx context.Context) ([]Norms, error) {
	var out []Norms
	var columns []*column
	for i := range s.tensors {
		c := &s.tensors[i]
		if !c.DType.Float() {
			continue
		}
		columns = append(columns, c)
		out = append(out, Norms{Tensor: c.Tensor, Norm: make([]float64, len(s.files)), Moved: make([]float64, len(s.files)-1)})
	}
	spans := map[*column][]span{}
	for _, sp := range s.spans(func(Role) bool { return true }) {
		spans[sp.column] = append(spans[sp.column], sp)
	}
	readers := make([]*reader, s.workers())
	err := forEach(ctx, len(columns), len(readers), func(worker, i int) error {
		if readers[worker] == nil {
			readers[worker] = s.reader()
		}
		for _, sp := range spans[columns[i]] {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := readers[worker].squares(&out[i], sp); err != nil {
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

// squares adds the squared norms of a span.
func (r *reader) squares(n *Norms, sp span) error {
	if err := r.load(sp, r.series.all()); err != nil {
		return err
	}
	size := sp.column.DType.Size()
	var now, before [blockLen]float64
	for at := 0; at < sp.n; at += blockLen {
		k := min(blockLen, sp.n-at)
		for f, view := range r.views {
			if err := safetensors.Decode(now[:k], view[at*size:(at+k)*size], sp.column.DType); err != nil {
				return err
			}
			n.Norm[f] += blas64.Implementation().Ddot(k, now[:], 1, now[:], 1)
			if f > 0 {
				for i, v := range now[:k] {
					before[i] -= v
				}
				n.Moved[f-1] += blas64.Implementation().Ddot(k, before[:], 1, before[:], 1)
			}
			before = now
		}
	}
	return nil
}
