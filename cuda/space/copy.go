//go:build gpu && cgo

package space

import (
	"fmt"
	"math"
	"unsafe"

	"onlinerna/cuda/driver"
	"onlinerna/rna"
)

// found is the result of rna_check and rna_max.
type found struct {
	first uint64 // index of the first element that is not finite
	most  uint64 // bits of the largest absolute value
}

const nothing = math.MaxUint64

// search runs the kernels that look launches and returns their result.
func (s *Space) search(look func() error) (found, error) {
	err := s.stream.Fill(s.found.Span(0, 8), 0xff)
	if err == nil {
		err = s.stream.Fill(s.found.Span(8, 8), 0)
	}
	if err == nil {
		err = look()
	}
	words := [2]uint64{nothing, 0}
	if err == nil {
		err = s.stream.CopyOut(driver.Bytes(words[:]), s.found.All())
	}
	if err == nil {
		err = s.stream.Synchronize()
	}
	return found{words[0], words[1]}, s.settle(err)
}

// look searches n elements at an address; the first of them is element from of its vector.
func (s *Space) look(address uint64, from, n int) error {
	grid, block := s.grid(n)
	return s.stream.Launch(s.kernels.check, grid, block, 0, address, int64(from), int64(n), s.found.All().Part(0, 0),
		driver.Elsewhere{Read: 4 * int64(n)})
}

// Store copies src into dst, unless that is nil, and checks for elements that are not finite.
func (s *Space) Store(dst rna.Vector, src rna.Source) (float64, error) {
	if src.Len() != s.dim {
		return 0, fmt.Errorf("cuda: store of a vector of %d elements in a space of %d", src.Len(), s.dim)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var to *vector
	if dst != nil {
		var err error
		if to, err = s.own(dst); err != nil {
			return 0, err
		}
	}
	var f found
	err := s.c.In("RNA snapshot", func() (err error) {
		f, err = s.search(func() error { return s.take(to, src) })
		return err
	})
	if err != nil {
		return 0, err
	}
	if f.first != nothing {
		one := []float32{float32(math.NaN())}
		if err := src.ReadAt(one, int(f.first)); err != nil {
			return 0, err
		}
		return 0, &rna.NonFiniteError{Offset: int(f.first), Value: float64(one[0])}
	}
	return float64(math.Float32frombits(uint32(f.most))), nil
}

// settle ends an operation: after an error it waits until the GPU is idle.
func (s *Space) settle(err error) error {
	if err != nil {
		_ = s.stream.Synchronize() // err is the cause
	}
	return err
}

// take copies src to the vector and starts the check.
func (s *Space) take(to *vector, src rna.Source) error {
	if m, ok := src.(driver.Resident); ok {
		if from, ok := m.Float32Span(0, s.dim); ok {
			return s.takeSpan(to, from)
		}
	}
	if m, ok := src.(rna.Float32Memory); ok {
		if from := m.Float32s(0, s.dim); len(from) == s.dim {
			return s.takeFloats(to, from)
		}
	}
	for k, off := 0, 0; off < s.dim; k, off = k+1, off+s.opts.stage {
		n := min(s.opts.stage, s.dim-off)
		if k >= len(s.stage) {
			if err := s.passed[k%2].Synchronize(); err != nil {
				return err
			}
		}
		part := driver.HostSlice[float32](s.stage[k%2])[:n]
		if err := src.ReadAt(part, off); err != nil {
			return fmt.Errorf("cuda: read of %d elements at offset %d: %w", n, off, err)
		}
		if err := s.put(to, part, off, k%2); err != nil {
			return err
		}
		if err := s.passed[k%2].Record(s.stream); err != nil {
			return err
		}
	}
	return nil
}

// takeFloats copies host memory by parts, each of which fits a landing buffer.
func (s *Space) takeFloats(to *vector, from []float32) error {
	for off := 0; off < s.dim; off += s.opts.stage {
		if err := s.put(to, from[off:min(off+s.opts.stage, s.dim)], off, 0); err != nil {
			return err
		}
	}
	return nil
}

// put copies part to the elements that start at off, or without a vector to a landing buffer, and checks them.
func (s *Space) put(to *vector, part []float32, off, landing int) error {
	return s.c.Do(func() error {
		if to == nil {
			span := s.landing[landing].Span(0, 4*int64(len(part)))
			if err := s.stream.CopyIn(span, driver.Bytes(part)); err != nil {
				return err
			}
			return s.lookAt(span, off)
		}
		return to.parts(off, len(part), func(p piece, at, done, n int) error {
			from := part[done : done+n]
			if p.host != nil {
				copy(p.floats(at, n), from)
			} else if err := s.stream.CopyIn(p.span(at, n), driver.Bytes(from)); err != nil {
				return err
			}
			return s.lookIn(p, at, off+done, n)
		})
	})
}

// lookAt checks a span with the elements that start at off.
func (s *Space) lookAt(span driver.Span, off int) error {
	a, err := span.Address(s.c)
	if err != nil {
		return err
	}
	return s.look(uint64(a), off, int(span.Bytes()/4))
}

// lookIn checks n elements of a piece from at on; they are the vector's from off on.
func (s *Space) lookIn(p piece, at, off, n int) error {
	a, err := p.address(s.c, at)
	if err != nil {
		return err
	}
	return s.look(a, off, n)
}

// takeSpan copies GPU memory.
func (s *Space) takeSpan(to *vector, from driver.Span) error {
	return s.c.Do(func() error {
		if err := s.lookAt(from, 0); err != nil || to == nil {
			return err
		}
		return to.parts(0, s.dim, func(p piece, at, done, n int) error {
			part := from.Span(4*int64(done), 4*int64(n))
			if p.host != nil {
				return s.stream.CopyOut(driver.Bytes(p.floats(at, n)), part)
			}
			return s.stream.Copy(p.span(at, n), part)
		})
	})
}

// Combine writes the linear combination to dst.
func (s *Space) Combine(dst rna.Sink, terms []rna.Term) error {
	if dst.Len() != s.dim {
		return fmt.Errorf("cuda: combination of vectors of %d elements into one of %d", s.dim, dst.Len())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	vs := make([]*vector, len(terms))
	for k, t := range terms {
		var err error
		if vs[k], err = s.own(t.Vector); err != nil {
			return err
		}
	}
	return s.c.In("RNA combination", func() error { return s.combine(dst, terms, vs) })
}

// combine is Combine for vectors of the space.
func (s *Space) combine(dst rna.Sink, terms []rna.Term, vs []*vector) error {
	table, err := s.terms(terms, vs)
	if err != nil {
		return s.settle(err)
	}
	if m, ok := dst.(driver.Resident); ok {
		if to, ok := m.Float32Span(0, s.dim); ok {
			if err := s.sum(to, table, 0, s.dim); err != nil {
				return s.settle(err)
			}
			if err := s.stream.Synchronize(); err != nil {
				return err
			}
			if w, ok := dst.(driver.ResidentSink); ok {
				return w.Float32Written()
			}
			return nil
		}
	}
	return s.settle(s.sumOut(dst, table))
}

// A termTable is a combination's terms in GPU memory, for each piece.
type termTable struct {
	all   driver.Span
	count int
}

// term is a Term of rna.cu.
type term struct {
	vector      uint64
	coefficient float64
}

const termBytes = int64(unsafe.Sizeof(term{}))

// terms writes the table of a combination.
func (s *Space) terms(terms []rna.Term, vs []*vector) (t termTable, err error) {
	t.count = len(terms)
	if t.count == 0 {
		return t, nil
	}
	err = s.c.Do(func() error {
		var rows []term
		for i := range vs[0].pieces {
			for k, v := range vs {
				a, err := v.pieces[i].address(s.c, 0)
				if err != nil {
					return err
				}
				rows = append(rows, term{a, terms[k].Coef})
			}
		}
		t.all, err = s.upload(unsafe.Pointer(&rows[0]), termBytes*int64(len(rows)))
		return err
	})
	return t, err
}

// upload copies n bytes into the table.
func (s *Space) upload(p unsafe.Pointer, n int64) (driver.Span, error) {
	table, err := s.table.span(n)
	if err != nil {
		return driver.Span{}, err
	}
	return table, s.stream.CopyIn(table, unsafe.Slice((*byte)(p), n))
}

// sum combines elements [off, off+n) into a span.
func (s *Space) sum(to driver.Span, t termTable, off, n int) error {
	return s.c.Do(func() error {
		for done := 0; done < n; {
			i, at := (off+done)/s.opts.piece, (off+done)%s.opts.piece
			k := min(n-done, s.opts.piece-at)
			grid, block := s.grid(k)
			row := termBytes * int64(t.count)
			var table driver.Span
			if t.count > 0 {
				table = t.all.Span(row*int64(i), row)
			}
			err := s.stream.Launch(s.kernels.combine, grid, block, 0, table, int32(t.count), int64(at), int64(k),
				to.Span(4*int64(done), 4*int64(k)).Written(),
				driver.Elsewhere{Read: 4 * int64(k) * int64(t.count)})
			if err != nil {
				return err
			}
			done += k
		}
		return nil
	})
}

// sumOut combines by parts: the GPU computes the next part while the host copies one.
func (s *Space) sumOut(dst rna.Sink, t termTable) error {
	start := func(k int) error {
		off := k * s.opts.stage
		if off >= s.dim {
			return nil
		}
		n := int64(min(s.opts.stage, s.dim-off))
		to := s.landing[k%2].Span(0, 4*n)
		if err := s.sum(to, t, off, int(n)); err != nil {
			return err
		}
		if err := s.stream.CopyOut(s.stage[k%2].Bytes()[:4*n], to); err != nil {
			return err
		}
		return s.passed[k%2].Record(s.stream)
	}
	if err := start(0); err != nil {
		return err
	}
	for k := 0; k*s.opts.stage < s.dim; k++ {
		if err := start(k + 1); err != nil {
			return err
		}
		if err := s.passed[k%2].Synchronize(); err != nil {
			return err
		}
		off := k * s.opts.stage
		part := driver.HostSlice[float32](s.stage[k%2])[:min(s.opts.stage, s.dim-off)]
		if err := dst.WriteAt(part, off); err != nil {
			return fmt.Errorf("cuda: write of %d elements at offset %d: %w", len(part), off, err)
		}
	}
	return nil
}
