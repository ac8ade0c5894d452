package rna

import (
	"fmt"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna/kernel"
)

// A plan is some residuals over vectors that are named once each, so that a span of each
// vector is read once.
type plan[T float] struct {
	vectors []cells[T]
	pairs   []kernel.Pair
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
		p.pairs = append(p.pairs, kernel.Pair{X: x, Y: y, Exp: r.Exp})
	}
	return p, nil
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
		var x, y [kernel.Run]float64
		for at := lo; at < hi; at += kernel.Run {
			n := min(kernel.Run, hi-at)
			diff := x[:n]
			q := p.pairs[0]
			size := s.size()
			convert.Widen(diff, r.views[q.X][(at-lo)*size:], s.format())
			if q.Y >= 0 {
				convert.Widen(y[:n], r.views[q.Y][(at-lo)*size:], s.format())
				for i, v := range y[:n] {
					diff[i] -= v
				}
			}
			m, _ := convert.Largest(nil, bytesOf(diff), convert.Float64, false)
			most[at/blockLen] = max(most[at/blockLen], m)
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
	if k := len(with); k == 0 || with[k-1] != r {
		with = append(with[:k:k], r)
	}
	sums, err := s.products(with, false)
	if err == nil {
		copy(row, sums)
	}
	return err
}

// gramMatrix returns the lower triangle of the Gram matrix of rs by rows, with the bits of GramRow. It reads each
// vector once.
func (s *storage[T]) gramMatrix(rs []Residual) ([]float64, error) {
	if n := len(rs); n*(n+1)/2*((s.dim+blockLen-1)/blockLen) <= gramSums {
		return s.products(rs, true)
	}
	var gram []float64
	for i := range rs {
		row, err := s.products(rs[:i+1], false)
		if err != nil {
			return nil, err
		}
		gram = append(gram, row...)
	}
	return gram, nil
}

// gramSums is the largest number of block sums that gramMatrix keeps: 64 MB. Tests lower it.
var gramSums = 8 << 20

// products returns the inner products of the last of rs with each of them, or, if full is true, of each with each.
func (s *storage[T]) products(rs []Residual, full bool) ([]float64, error) {
	p, err := s.plan(rs...)
	if err != nil {
		return nil, err
	}
	n := (s.dim + blockLen - 1) / blockLen
	workers := make([]*kernel.Products, s.workers)
	workers[0] = kernel.NewProducts(s.format(), len(p.vectors), p.pairs, full)
	k := workers[0].Len()
	sums := make([]float64, n*k) // by block
	readings := s.readings(len(p.vectors))
	err = s.spans(s.dim, len(p.vectors), func(worker, lo, hi int) error {
		r := &readings[worker]
		if err := s.load(r, p.vectors, lo, hi); err != nil {
			return err
		}
		if workers[worker] == nil {
			workers[worker] = kernel.NewProducts(s.format(), len(p.vectors), p.pairs, full)
		}
		for at := lo; at < hi; at += blockLen {
			workers[worker].Block(sums[at/blockLen*k:][:k], r.views, at-lo, min(blockLen, hi-at))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]float64, k)
	for j := range out {
		out[j] = pairwise(sums, j, k, n)
	}
	return out, nil
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
