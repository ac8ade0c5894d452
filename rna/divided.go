package rna

import (
	"fmt"
	"math"

	"onlinerna/rna/internal/dd"
	"onlinerna/rna/internal/qr"
)

// A Divided space stores a part of each vector in each of several processes, which make the same calls in the same
// order. Its methods and those of its vectors describe whole vectors. A [Window] reads only the process's own parts
// and exchanges N×N numbers with the other processes.
type Divided interface {
	Space

	// Own is the space of this process's parts, nil if it has none.
	Own() Space
	// Part is the part of v that this process has, a vector of Own.
	Part(v Vector) (Vector, error)
	// Gather returns the numbers of every process, the same result on all of them, in memory that the caller may
	// overwrite. Each process passes equally many. If one fails, it fails on all.
	Gather(own []float64, failed error) ([][]float64, error)
}

// rowsOf returns the rows of the window's vectors that this process reads, their number dim and the number of
// goroutines.
func (w *Window) rowsOf(reads []normed) (own []normed, dim, threads int, err error) {
	d, ok := w.space.(Divided)
	if !ok {
		return reads, w.space.Dim(), threadsOf(w.space), nil
	}
	s := d.Own()
	if s == nil {
		return reads, 0, 1, nil
	}
	own = make([]normed, len(reads))
	for i, r := range reads {
		own[i] = normed{exp: r.exp}
		if own[i].vector, err = d.Part(r.vector); err != nil {
			return nil, 0, 1, err
		}
	}
	return own, s.Dim(), threadsOf(s), nil
}

// threadsOf is the number of goroutines that may read a space's vectors at a time.
func threadsOf(s Space) int {
	if s, ok := s.(interface{ threads() int }); ok {
		return s.threads()
	}
	return 1
}

// total adds up the sums of all processes of a divided space, in their order.
func (w *Window) total(sums []dd.Num, failed error) error {
	d, ok := w.space.(Divided)
	if !ok {
		return failed
	}
	own := make([]float64, 2*len(sums))
	for i, s := range sums {
		own[2*i], own[2*i+1] = s.Hi, s.Lo
	}
	all, err := d.Gather(own, failed)
	if err != nil {
		return err
	}
	clear(sums)
	for _, x := range all {
		for i := range sums {
			sums[i] = sums[i].Add(dd.Num{Hi: x[2*i], Lo: x[2*i+1]})
		}
	}
	return nil
}

// merge combines the factors and norms of all processes of a divided space.
func (w *Window) merge(f *qr.Factor, n int, reads []normed, failed error) (*qr.Factor, error) {
	d, ok := w.space.(Divided)
	if !ok {
		return f, failed
	}
	own := make([]float64, 0, n*n+len(reads))
	for j := range n {
		for i := range n {
			own = append(own, f.At(i, j))
		}
	}
	for _, r := range reads {
		own = append(own, r.norm)
	}
	all, err := d.Gather(own, failed)
	if err != nil {
		return nil, err
	}
	whole := qr.New(n)
	for i := range reads {
		reads[i].norm = 0
	}
	for k, x := range all {
		if len(x) != len(own) {
			return nil, fmt.Errorf("rna: process %d of a divided space gave %d numbers, want %d", k, len(x), len(own))
		}
		rows := make([][]float64, n)
		for j := range rows {
			rows[j] = x[j*n : (j+1)*n]
		}
		for i, norm := range x[n*n:] {
			reads[i].norm = math.Hypot(reads[i].norm, norm)
		}
		whole.Fold(rows)
	}
	return whole, nil
}

// dividedTriangle adds up the triangles of the processes' parts.
func dividedTriangle(d Divided, rs []Residual) ([]float64, error) {
	own := make([]float64, len(rs)*(len(rs)+1)/2)
	parts := make([]Residual, len(rs))
	var failed error
	part := func(v Vector) (p Vector) {
		if v != nil && failed == nil {
			p, failed = d.Part(v)
		}
		return p
	}
	if s := d.Own(); s != nil {
		for i, r := range rs {
			parts[i] = Residual{X: part(r.X), Y: part(r.Y), Exp: r.Exp}
		}
		if failed == nil {
			own, failed = triangle(s, parts)
		}
	}
	all, err := d.Gather(own, failed)
	if err != nil {
		return nil, err
	}
	sum := make([]float64, len(all[0]))
	for _, x := range all {
		for i := range sum {
			sum[i] += x[i]
		}
	}
	return sum, nil
}
