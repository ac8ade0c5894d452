package shard

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/rna"
)

// piece is the number of elements of each rank's part that are gathered at a time.
const piece = 1 << 20

// Combine combines the vectors' parts on each rank and gathers the whole vector.
func (s *space) Combine(dst rna.Sink, terms []rna.Term) error {
	if dst.Len() != s.dim {
		return fmt.Errorf("combination of vectors of %d elements into one of %d", s.dim, dst.Len())
	}
	if v, ok := dst.(device.Sliced); ok && s.gather != nil {
		if done, err := s.combineThere(v, terms); done || err != nil {
			return err
		}
	}
	if s.bits == 32 {
		return combine(s, dst, terms, func(x []float32) rna.Sink { return rna.Slice32(x) }, dst.WriteAt)
	}
	write := func(x []float64, off int) error {
		narrow := make([]float32, len(x))
		for i, v := range x {
			narrow[i] = float32(v)
		}
		return dst.WriteAt(narrow, off)
	}
	if wide, ok := dst.(rna.Sink64); ok {
		write = wide.WriteAt64
	}
	return combine(s, dst, terms, func(x []float64) rna.Sink { return rna.Slice64(x) }, write)
}

// combineThere combines the parts on a device, which gathers them.
func (s *space) combineThere(dst device.Sliced, terms []rna.Term) (bool, error) {
	var err error
	if s.own != nil {
		err = s.combineOwn(dst.Slice(s.lo, s.n), terms)
	}
	if err := s.g.Together(err); err != nil {
		return false, err
	}
	done, err := s.gather(dst, s.chunk)
	return done, s.g.Together(err)
}

func combine[T float32 | float64](s *space, dst rna.Sink, terms []rna.Term, sink func([]T) rna.Sink,
	write func([]T, int) error) error {
	own := make([]T, s.chunk)
	err := s.combineOwn(sink(own[:s.n]), terms)
	if err := s.g.Together(err); err != nil {
		return err
	}
	m := min(piece, s.chunk)
	all := make([]T, m*s.g.Size())
	for at := 0; at < s.chunk; at += m {
		n := min(m, s.chunk-at)
		if err := s.g.GatherParts(raw(all[:n*s.g.Size()]), raw(own[at:at+n])); err != nil {
			return err
		}
		for k := range s.g.Size() {
			off := k*s.chunk + at
			if here := min(n, s.dim-off); here > 0 && err == nil {
				err = write(all[k*n:k*n+here], off)
			}
		}
	}
	return s.g.Together(err)
}

func (s *space) combineOwn(dst rna.Sink, terms []rna.Term) error {
	if s.own == nil {
		return nil
	}
	parts := make([]rna.Term, len(terms))
	for i, t := range terms {
		v, err := s.Part(t.Vector)
		if err != nil {
			return err
		}
		parts[i] = rna.Term{Coef: t.Coef, Vector: v}
	}
	return s.own.Combine(dst, parts)
}

// Part is this rank's part of a vector, nil if it is empty, and its first element. divided is false for a vector of
// another space.
func Part(v rna.Source) (part rna.Vector, lo int, divided bool) {
	x, ok := v.(*vector)
	if !ok {
		return nil, 0, false
	}
	return x.part, x.space.lo, true
}

// Len implements rna.Vector.
func (v *vector) Len() int { return v.space.dim }

// Close implements rna.Vector.
func (v *vector) Close() error {
	if v.part == nil {
		return nil
	}
	return v.part.Close()
}

// ReadAt implements rna.Vector: the ranks exchange their parts.
func (v *vector) ReadAt(dst []float32, off int) error {
	return read(v, dst, off, func(x []float32, off int) error { return v.part.ReadAt(x, off) })
}

// ReadAt64 implements rna.Vector.
func (v *vector) ReadAt64(dst []float64, off int) error {
	return read(v, dst, off, func(x []float64, off int) error { return v.part.ReadAt64(x, off) })
}

func read[T float32 | float64](v *vector, dst []T, off int, part func([]T, int) error) error {
	s := v.space
	if off < 0 || off > s.dim-len(dst) {
		return fmt.Errorf("read of %d elements at offset %d of a vector of %d", len(dst), off, s.dim)
	}
	var failed error
	if lo, hi := max(off, s.lo), min(off+len(dst), s.lo+s.n); lo < hi {
		failed = part(dst[lo-off:hi-off], lo-s.lo)
	}
	if err := s.g.Together(failed); err != nil {
		return err
	}
	for k := off / s.chunk; k*s.chunk < off+len(dst); k++ {
		lo, hi := max(off, k*s.chunk), min(off+len(dst), (k+1)*s.chunk)
		if err := s.g.Broadcast(raw(dst[lo-off:hi-off]), k); err != nil {
			return err
		}
	}
	return nil
}

// partOf is this rank's part of a source.
func (s *space) partOf(src rna.Source) rna.Source {
	if v, ok := src.(*vector); ok && v.space == s {
		return v.part
	}
	if v, ok := src.(device.Sliced); ok && s.own != nil {
		return v.Slice(s.lo, s.n)
	}
	p := part{src, s.lo, s.n}
	if wide, ok := src.(rna.Source64); ok {
		return wide64{p, wide}
	}
	return p
}

// part is a range of a vector's elements.
type part struct {
	rna.Source
	lo, n int
}

func (p part) Len() int { return p.n }

func (p part) ReadAt(dst []float32, off int) error {
	if off < 0 || off > p.n-len(dst) {
		return fmt.Errorf("read of %d elements at offset %d of %d", len(dst), off, p.n)
	}
	return p.Source.ReadAt(dst, p.lo+off)
}

// Float32s implements rna.Float32Memory if the vector does.
func (p part) Float32s(off, n int) []float32 {
	if m, ok := p.Source.(rna.Float32Memory); ok && off >= 0 && n >= 0 && off <= p.n-n {
		return m.Float32s(p.lo+off, n)
	}
	return nil
}

// Float64s implements rna.Float64Memory if the vector does.
func (p part) Float64s(off, n int) []float64 {
	if m, ok := p.Source.(rna.Float64Memory); ok && off >= 0 && n >= 0 && off <= p.n-n {
		return m.Float64s(p.lo+off, n)
	}
	return nil
}

// wide64 is a part of a vector that can be read in float64.
type wide64 struct {
	part
	wide rna.Source64
}

func (p wide64) ReadAt64(dst []float64, off int) error {
	if off < 0 || off > p.n-len(dst) {
		return fmt.Errorf("read of %d elements at offset %d of %d", len(dst), off, p.n)
	}
	return p.wide.ReadAt64(dst, p.lo+off)
}
