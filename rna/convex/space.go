package convex

import (
	"fmt"
	"math"

	"onlinerna/rna"
	"onlinerna/rna/convex/internal/kern"
)

// A space keeps vectors so short that one processor is done with them before others have woken.
type space struct {
	dim  int
	kern *kern.Set

	left, right []float64 // differences
	sum         []float64
}

var _ rna.Space = (*space)(nil)

// shortVectors is the length up to which a space is faster than those of package rna.
const shortVectors = 1 << 15

func newWindow(dim, columns int) (*rna.Window, error) {
	if dim <= shortVectors {
		return rna.NewWindow(newSpace(dim), columns)
	}
	s, err := rna.NewHost64(dim, 0)
	if err != nil {
		return nil, err
	}
	return rna.NewWindow(s, columns)
}

func newSpace(dim int) *space {
	scratch := make([]float64, 3*dim)
	return &space{dim: dim, kern: kern.Default(), left: scratch[:dim], right: scratch[dim : 2*dim],
		sum: scratch[2*dim:]}
}

// A cell is one of a space's vectors.
type cell struct{ rna.Slice64 }

func (c *cell) Close() error { return nil }

func (s *space) Dim() int  { return s.dim }
func (s *space) Bits() int { return 64 }

func (s *space) New() (rna.Vector, error) { return &cell{make(rna.Slice64, s.dim)}, nil }

// own returns the elements of one of the space's vectors.
func (s *space) own(v rna.Vector) ([]float64, error) {
	c, ok := v.(*cell)
	if !ok || len(c.Slice64) != s.dim {
		return nil, fmt.Errorf("convex: %T is not a vector of this space of %d elements", v, s.dim)
	}
	return c.Slice64, nil
}

func (s *space) Store(dst rna.Vector, src rna.Source) (float64, error) {
	if src.Len() != s.dim {
		return 0, fmt.Errorf("convex: store of a vector of %d elements in a space of %d", src.Len(), s.dim)
	}
	from, ok := src.(rna.Slice64)
	if !ok {
		from = s.left
		if err := read(from, src); err != nil {
			return 0, err
		}
	}
	most := maxAbs(from)
	if !(most <= math.MaxFloat64) {
		for i, v := range from {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, &rna.NonFiniteError{Offset: i, Value: v}
			}
		}
	}
	if dst == nil {
		return most, nil
	}
	to, err := s.own(dst)
	copy(to, from)
	return most, err
}

// read copies a vector, in float64 where it has that.
func read(dst []float64, src rna.Source) error {
	if wide, ok := src.(rna.Source64); ok {
		return wide.ReadAt64(dst, 0)
	}
	narrow := make([]float32, len(dst))
	err := src.ReadAt(narrow, 0)
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return err
}

// residual returns the elements of r, which may be written to scratch.
func (s *space) residual(scratch []float64, r rna.Residual) ([]float64, error) {
	x, err := s.own(r.X)
	if err != nil || r.Y == nil && r.Exp == 0 {
		return x, err
	}
	if r.Y == nil {
		copy(scratch, x)
	} else {
		y, err := s.own(r.Y)
		if err != nil {
			return nil, err
		}
		for i, v := range x {
			scratch[i] = v - y[i]
		}
	}
	if r.Exp != 0 {
		for i, v := range scratch {
			scratch[i] = math.Ldexp(v, -r.Exp)
		}
	}
	return scratch, nil
}

func (s *space) MaxAbs(r rna.Residual) (float64, error) {
	r.Exp = 0
	x, err := s.residual(s.left, r)
	return maxAbs(x), err
}

// maxAbs is the largest absolute value, where NaN counts as the largest: the order of float64s without their sign is
// that of their bits.
func maxAbs(x []float64) float64 {
	const sign = 1 << 63
	var a, b uint64
	i := 0
	for ; i+2 <= len(x); i += 2 {
		a = max(a, math.Float64bits(x[i])&^sign)
		b = max(b, math.Float64bits(x[i+1])&^sign)
	}
	if i < len(x) {
		a = max(a, math.Float64bits(x[i])&^sign)
	}
	return math.Float64frombits(max(a, b))
}

func (s *space) GramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	if len(row) != len(with) {
		return fmt.Errorf("convex: %d products into a row of %d", len(with), len(row))
	}
	x, err := s.residual(s.left, r)
	if err != nil {
		return err
	}
	for j, other := range with {
		y, err := s.residual(s.right, other)
		if err != nil {
			return err
		}
		row[j] = s.kern.Dot(&x[0], &y[0], s.dim)
	}
	return nil
}

func (s *space) Combine(dst rna.Sink, terms []rna.Term) error {
	if dst.Len() != s.dim {
		return fmt.Errorf("convex: combination of vectors of %d elements into one of %d", s.dim, dst.Len())
	}
	to, ok := dst.(rna.Slice64)
	if !ok {
		to = s.sum
	}
	clear(to)
	for _, t := range terms {
		v, err := s.own(t.Vector)
		if err != nil {
			return err
		}
		s.kern.Combine2(&to[0], &v[0], 1, t.Coef, s.dim)
	}
	if ok {
		return nil
	}
	if wide, ok := dst.(rna.Sink64); ok {
		return wide.WriteAt64(to, 0)
	}
	narrow := make([]float32, s.dim)
	for i, v := range to {
		narrow[i] = float32(v)
	}
	return dst.WriteAt(narrow, 0)
}
