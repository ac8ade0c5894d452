//go:build gpu && cgo

package space

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"onlinerna/cuda/driver"
	"onlinerna/rna"
)

// residual is a Residual of rna.cu.
type residual struct {
	x, y uint64
	exp  int64
}

const residualBytes = int64(unsafe.Sizeof(residual{}))

// A residualTable is a list of residuals in GPU memory, for each piece.
type residualTable struct {
	all   driver.Span
	count int
}

// residuals writes the table of rs.
func (s *Space) residuals(rs []rna.Residual) (t residualTable, err error) {
	t.count = len(rs)
	xs, ys := make([]*vector, len(rs)), make([]*vector, len(rs))
	for j, r := range rs {
		if r.X == nil {
			return t, errors.New("cuda: residual without a vector")
		}
		if xs[j], err = s.own(r.X); err != nil {
			return t, err
		}
		if r.Y == nil {
			continue
		}
		if ys[j], err = s.own(r.Y); err != nil {
			return t, err
		}
	}
	err = s.c.Do(func() error {
		var rows []residual
		for i := range xs[0].pieces {
			for j, r := range rs {
				row := residual{exp: int64(r.Exp)}
				var err error
				if row.x, err = xs[j].pieces[i].address(s.c, 0); err != nil {
					return err
				}
				if ys[j] != nil {
					if row.y, err = ys[j].pieces[i].address(s.c, 0); err != nil {
						return err
					}
				}
				rows = append(rows, row)
			}
		}
		t.all, err = s.upload(unsafe.Pointer(&rows[0]), residualBytes*int64(len(rows)))
		return err
	})
	return t, err
}

// reads counts the bytes of n elements of the residuals' vectors, each vector once.
func reads(n int, rs ...rna.Residual) driver.Elsewhere {
	all := map[rna.Vector]bool{}
	for _, r := range rs {
		all[r.X] = true
		if r.Y != nil {
			all[r.Y] = true
		}
	}
	return driver.Elsewhere{Read: 4 * int64(n) * int64(len(all))}
}

// rows returns residuals [lo, hi) for piece i.
func (t residualTable) rows(i, lo, hi int) driver.Span {
	return t.all.Span(residualBytes*int64(i*t.count+lo), residualBytes*int64(hi-lo))
}

// MaxAbs returns the largest absolute value of r's elements, Exp ignored.
func (s *Space) MaxAbs(r rna.Residual) (float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Exp = 0
	t, err := s.residuals([]rna.Residual{r})
	if err != nil {
		return 0, s.settle(err)
	}
	f, err := s.search(func() error {
		for i, off := 0, 0; off < s.dim; i, off = i+1, off+s.opts.piece {
			n := min(s.opts.piece, s.dim-off)
			grid, block := s.grid(n)
			if err := s.stream.Launch(s.kernels.max, grid, block, 0, t.rows(i, 0, 1), int64(0), int64(n),
				s.found.All().Part(0, 0), reads(n, r)); err != nil {
				return err
			}
		}
		return nil
	})
	return math.Float64frombits(f.most), err
}

// GramRow sets row[j] to the inner product of r and with[j].
func (s *Space) GramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	if len(row) != len(with) {
		return fmt.Errorf("cuda: row has %d entries for %d residuals", len(row), len(with))
	}
	if len(row) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// r comes first and is not read again if it is among the others, as in a window's own row.
	all, at := []rna.Residual{r}, make([]int, len(with))
	for j, w := range with {
		if w != r {
			at[j] = len(all)
			all = append(all, w)
		}
	}
	got := make([]float64, len(all))
	if err := s.settle(s.c.In("RNA Gram row", func() error { return s.products1(got, all) })); err != nil {
		return err
	}
	for j := range row {
		row[j] = got[at[j]]
	}
	return nil
}

// products1 sets out to the products of the first residual with each: it sums each span on the GPU and the spans
// pairwise.
func (s *Space) products1(out []float64, rs []rna.Residual) error {
	t, err := s.residuals(rs)
	if err != nil {
		return err
	}
	spans := func(elements int) int { return (elements + s.opts.span - 1) / s.opts.span }
	total := 0
	for off := 0; off < s.dim; off += s.opts.piece {
		total += spans(min(s.opts.piece, s.dim-off))
	}
	parts := make([]float64, total*len(out))
	all, err := s.products.span(8 * int64(len(parts)))
	if err != nil {
		return err
	}
	err = s.c.Do(func() error {
		first := 0
		for i, off := 0, 0; off < s.dim; i, off = i+1, off+s.opts.piece {
			n := min(s.opts.piece, s.dim-off)
			grid := driver.Dim{X: spans(n), Y: (len(rs) + columns - 1) / columns}
			row := 8 * int64(len(out))
			to := all.Span(row*int64(first), row*int64(grid.X))
			if err := s.stream.Launch(s.kernels.products, grid, driver.Dim{X: productThreads}, 0, t.rows(i, 0, len(rs)),
				int32(len(rs)), int64(n),
				int64(s.opts.span), to.Written(), reads(n, rs...)); err != nil {
				return err
			}
			first += grid.X
		}
		if err := s.stream.CopyOut(driver.Bytes(parts), all); err != nil {
			return err
		}
		return s.stream.Synchronize()
	})
	if err != nil {
		return err
	}
	for j := range out {
		out[j] = pairwise(parts[j:], len(out), total)
	}
	return nil
}

// pairwise sums n elements, step apart, by recursive halving.
func pairwise(v []float64, step, n int) float64 {
	if n == 1 {
		return v[0]
	}
	half := n / 2
	return pairwise(v, step, half) + pairwise(v[half*step:], step, n-half)
}
