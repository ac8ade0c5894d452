// Package shard spreads the vectors of an [rna.Space] over R ranks: each rank keeps 1/R of every vector's elements and
// does its part of the work. Inner products are summed over the ranks, N numbers for a row of the Gram matrix; a
// combination is gathered from the ranks' parts.
//
// All ranks make the same calls in the same order with vectors that each holds completely, such as weights; all get the
// same results and the same errors.
package shard

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"onlinerna/rna"
	"onlinerna/train/ranks"
)

// space is one rank's part of a space.
type space struct {
	g     *ranks.Group
	dim   int
	bits  int
	chunk int       // elements of a part; the last parts may be shorter or empty
	lo, n int       // the range of this rank
	own   rna.Space // nil where n is 0

	gather Gather
}

// Gather assembles a vector on the ranks' devices without the host; each rank has a part of that many elements. It
// returns false, on all ranks alike, for a vector that it does not support.
type Gather func(dst rna.Sink, part int) (bool, error)

var _ rna.Divided = (*space)(nil)

// Largest is the number of elements of the largest part if that many ranks share vectors of dim elements.
func Largest(dim, ranks int) int { return (dim + ranks - 1) / ranks }

// New makes a space over the ranks of a group, of vectors of dim elements with 32 or 64 bits. own makes the space of
// this rank's parts. With one rank New returns own(dim) itself. gather may be nil: then the host gathers.
func New(g *ranks.Group, dim, bits int, own func(dim int) (rna.Space, error), gather Gather) (rna.Space, error) {
	if g.Single() {
		return own(dim)
	}
	s := &space{g: g, dim: dim, bits: bits, chunk: Largest(dim, g.Size()), gather: gather}
	s.lo = min(dim, g.Rank()*s.chunk)
	s.n = min(dim, s.lo+s.chunk) - s.lo
	var err error
	if s.n > 0 {
		if s.own, err = own(s.n); err == nil && s.own.Bits() != bits {
			err = fmt.Errorf("space of vectors of %d bits, not %d", s.own.Bits(), bits)
		}
	}
	if err := g.Together(err); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *space) Dim() int       { return s.dim }
func (s *space) Bits() int      { return s.bits }
func (s *space) Own() rna.Space { return s.own }

// vector is this rank's part of one; nil for an empty part.
type vector struct {
	space *space
	part  rna.Vector
}

func (s *space) New() (rna.Vector, error) {
	v := &vector{space: s}
	var err error
	if s.own != nil {
		v.part, err = s.own.New()
	}
	if err := s.g.Together(err); err != nil {
		return nil, err
	}
	return v, nil
}

// Part implements rna.Divided.
func (s *space) Part(v rna.Vector) (rna.Vector, error) {
	if v, ok := v.(*vector); ok && v.space == s {
		return v.part, nil
	}
	return nil, fmt.Errorf("vector %T belongs to another space", v)
}

// Gather implements rna.Divided.
func (s *space) Gather(own []float64, failed error) ([][]float64, error) {
	if err := s.g.Together(failed); err != nil {
		return nil, err
	}
	all := make([]float64, s.g.Size()*len(own))
	if err := s.g.GatherParts(raw(all), raw(own)); err != nil {
		return nil, err
	}
	list := make([][]float64, s.g.Size())
	for k := range list {
		list[k] = all[k*len(own) : (k+1)*len(own)]
	}
	return list, nil
}

// raw is the numbers' memory as bytes.
func raw[T float32 | float64](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// Store keeps this rank's part of src. The ranks agree on errors in the elements.
func (s *space) Store(dst rna.Vector, src rna.Source) (float64, error) {
	if src.Len() != s.dim {
		return 0, fmt.Errorf("store of a vector of %d elements in a space of %d", src.Len(), s.dim)
	}
	var err error
	x := []float64{0, math.Inf(-1)} // the maximum, and minus the index of the first element that is not finite
	if s.own != nil {
		x[0], err = s.storeOwn(dst, src)
	}
	if bad := (*rna.NonFiniteError)(nil); errors.As(err, &bad) {
		x[0], x[1], err = 0, -float64(s.lo+bad.Offset), nil
	}
	if err := s.max(x, err); err != nil {
		return 0, err
	}
	if math.IsInf(x[1], -1) {
		return x[0], nil
	}
	at := int(-x[1])
	return 0, s.nonFinite(src, at)
}

// nonFinite is the error for an element; the rank that has it shares its value.
func (s *space) nonFinite(src rna.Source, at int) error {
	value := []float64{0}
	from := at / s.chunk
	var err error
	if s.g.Rank() == from {
		err = readPart(s.partOf(src), value, at-s.lo)
	}
	if err := s.g.Together(err); err != nil {
		return err
	}
	if err := s.g.Broadcast(raw(value), from); err != nil {
		return err
	}
	return &rna.NonFiniteError{Offset: at, Value: value[0]}
}

// readPart reads elements as float64.
func readPart(src rna.Source, dst []float64, off int) error {
	if wide, ok := src.(rna.Source64); ok {
		return wide.ReadAt64(dst, off)
	}
	narrow := make([]float32, len(dst))
	err := src.ReadAt(narrow, off)
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return err
}

func (s *space) storeOwn(dst rna.Vector, src rna.Source) (float64, error) {
	var to rna.Vector
	if dst != nil {
		var err error
		if to, err = s.Part(dst); err != nil {
			return 0, err
		}
	}
	return s.own.Store(to, s.partOf(src))
}

// max sets the elements of x to their maxima over the ranks, unless a rank has failed.
func (s *space) max(x []float64, failed error) error {
	y := append(x, 0)
	if failed != nil {
		y[len(x)] = 1
	}
	if err := s.g.Max64(y); err != nil {
		return err
	}
	copy(x, y)
	return s.failed(y[len(x)], failed)
}

// failed is the error of a rank, if any has one.
func (s *space) failed(some float64, err error) error {
	if some == 0 {
		return nil
	}
	return s.g.Together(err)
}

// MaxAbs implements rna.Space.
func (s *space) MaxAbs(r rna.Residual) (float64, error) {
	x := []float64{0}
	var err error
	if s.own != nil {
		if r, err = s.residual(r); err == nil {
			x[0], err = s.own.MaxAbs(r)
		}
	}
	err = s.max(x, err)
	return x[0], err
}

// residual is this rank's part of r.
func (s *space) residual(r rna.Residual) (part rna.Residual, err error) {
	part.Exp = r.Exp
	if r.X == nil {
		return part, errors.New("residual without a vector")
	}
	if part.X, err = s.Part(r.X); err == nil && r.Y != nil {
		part.Y, err = s.Part(r.Y)
	}
	return part, err
}

// GramRow sums the ranks' partial rows.
func (s *space) GramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	if len(row) != len(with) {
		return fmt.Errorf("row of %d entries for %d residuals", len(row), len(with))
	}
	sums := make([]float64, len(row)+1) // the last one counts the failed ranks
	var err error
	if s.own != nil {
		err = s.gramRow(sums[:len(row)], r, with)
	}
	if err != nil {
		clear(sums)
		sums[len(row)] = 1
	}
	if err := s.g.Sum64(sums).Wait(); err != nil {
		return err
	}
	copy(row, sums)
	return s.failed(sums[len(row)], err)
}

func (s *space) gramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	part, err := s.residual(r)
	if err != nil {
		return err
	}
	parts := make([]rna.Residual, len(with))
	for i := range with {
		if parts[i], err = s.residual(with[i]); err != nil {
			return err
		}
	}
	return s.own.GramRow(row, part, parts)
}
