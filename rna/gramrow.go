package rna

import (
	"fmt"

	"onlinerna/rna/internal/kernel"
)

// A plan is some residuals over vectors that are named once each, so that a span of each
// vector is read once.
type plan[T float] struct {
	vectors []cells[T]
	pairs   []pair
}

// A pair is a residual, 2^-exp (x − y), by numbers of vectors; y is -1 where there is none.
type pair struct {
	x, y, exp int
}

// plan returns the plan of rs.
func (s *storage[T]) plan(rs ...Residual) (*plan[T], error) {
	p := &plan[T]{}
	numbers := map[Vector]int{}
	number := func(v Vector) (int, error) {
		if v == nil {
			return -1, nil
		}
		own, err := s.own(v)
		if err != nil {
			return 0, err
		}
		i, known := numbers[own]
		if !known {
			i = len(p.vectors)
			numbers[own] = i
			p.vectors = append(p.vectors, own)
		}
		return i, nil
	}
	for _, r := range rs {
		if r.X == nil {
			return nil, fmt.Errorf("rna: residual without a vector")
		}
		x, err := number(r.X)
		if err != nil {
			return nil, err
		}
		y, err := number(r.Y)
		if err != nil {
			return nil, err
		}
		p.pairs = append(p.pairs, pair{x: x, y: y, exp: r.Exp})
	}
	return p, nil
}

// block writes the residual's elements from at on to dst.
func block[T float](dst []float64, p pair, views [][]T, at int) {
	if x := views[p.x][at : at+len(dst)]; p.y >= 0 {
		kernel.Diff(dst, x, views[p.y][at:at+len(dst)])
	} else {
		kernel.Widen(dst, x)
	}
	if p.exp != 0 {
		kernel.Shift(dst, -p.exp)
	}
}

// dots sets out[j] to the inner product of a and the elements from at on of residual j.
func dots[T float](out, a []float64, pairs []pair, views [][]T, at int) {
	to := at + len(a)
	for j := 0; j < len(pairs); {
		if p := pairs[j:]; len(p) >= 4 && chained(p[:4]) {
			v := [5][]T{views[p[0].y][at:to], views[p[0].x][at:to], views[p[1].x][at:to], views[p[2].x][at:to], views[p[3].x][at:to]}
			kernel.DotChain((*[4]float64)(out[j:]), a, &v)
			j += 4
			continue
		}
		switch p := pairs[j]; {
		case p.exp != 0:
			scaled := make([]float64, len(a))
			block(scaled, p, views, at)
			out[j] = kernel.Dot(a, scaled)
		case p.y >= 0:
			out[j] = kernel.DotDiff(a, views[p.x][at:to], views[p.y][at:to])
		default:
			out[j] = kernel.Dot(a, views[p.x][at:to])
		}
		j++
	}
}

// chained says whether each residual's y is the x of the one before it.
func chained(ps []pair) bool {
	for j, p := range ps {
		if p.exp != 0 || p.y < 0 || j > 0 && p.y != ps[j-1].x {
			return false
		}
	}
	return true
}

func (s *storage[T]) MaxAbs(r Residual) (float64, error) {
	r.Exp = 0
	p, err := s.plan(r)
	if err != nil {
		return 0, err
	}
	most := make([]float64, (s.dim+blockLen-1)/blockLen)
	readings := s.readings(len(p.vectors))
	err = s.spans(s.dim, len(p.vectors), func(worker, lo, hi int) error {
		r := &readings[worker]
		if err := s.load(r, p.vectors, lo, hi); err != nil {
			return err
		}
		diff := make([]float64, blockLen)
		for at := lo; at < hi; at += blockLen {
			diff := diff[:min(blockLen, hi-at)]
			block(diff, p.pairs[0], r.views, at-lo)
			most[at/blockLen], _ = kernel.MaxAbs(diff)
		}
		return nil
	})
	m := 0.0
	for _, v := range most {
		m = max(m, v)
	}
	return m, err
}

func (s *storage[T]) GramRow(row []float64, r Residual, with []Residual) error {
	if len(row) != len(with) {
		return fmt.Errorf("rna: row of %d entries for %d residuals", len(row), len(with))
	}
	p, err := s.plan(append([]Residual{r}, with...)...)
	if err != nil {
		return err
	}
	n := (s.dim + blockLen - 1) / blockLen
	k := len(with)
	sums := make([]float64, n*k) // by block
	readings := s.readings(len(p.vectors))
	scratch := make([]float64, min(s.workers, n)*blockLen)
	err = s.spans(s.dim, len(p.vectors), func(worker, lo, hi int) error {
		r := &readings[worker]
		if err := s.load(r, p.vectors, lo, hi); err != nil {
			return err
		}
		diff := scratch[worker*blockLen:][:blockLen]
		for at := lo; at < hi; at += blockLen {
			diff := diff[:min(blockLen, hi-at)]
			block(diff, p.pairs[0], r.views, at-lo)
			dots(sums[at/blockLen*k:][:k], diff, p.pairs[1:], r.views, at-lo)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for j := range row {
		row[j] = pairwise(sums, j, k, n)
	}
	return nil
}

// pairwise sums the n elements v[first], v[first+step], … by halves, whose rounding grows with log n
// only.
func pairwise(v []float64, first, step, n int) float64 {
	if n <= 8 {
		sum := 0.0
		for i := range n {
			sum += v[first+i*step]
		}
		return sum
	}
	half := n / 2
	return pairwise(v, first, step, half) + pairwise(v, first+half*step, step, n-half)
}
