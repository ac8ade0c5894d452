//go:build gpu && cgo

package space

import (
	"errors"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/rna"
)

// A vector consists of pieces of equal length, except the last, each in GPU memory or in pinned host memory.
type vector struct {
	s      *Space
	pieces []piece
}

// A piece is in GPU memory or in host memory.
type piece struct {
	device *driver.Memory
	host   *driver.HostMemory
	n      int
}

var _ rna.Vector = (*vector)(nil)

// New allocates a vector: in GPU memory as far as it fits, the rest in pinned host memory.
func (s *Space) New() (rna.Vector, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &vector{s: s}
	for at := 0; at < s.dim; at += s.opts.piece {
		p, err := s.newPiece(min(s.opts.piece, s.dim-at))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cuda: vector of %d elements: %w", s.dim, err), v.release())
		}
		v.pieces = append(v.pieces, p)
	}
	return v, nil
}

func (s *Space) newPiece(n int) (p piece, err error) {
	bytes := 4 * int64(n)
	p.n = n
	fits := s.opts.Memory == 0 || s.held+bytes <= s.opts.Memory
	if fits {
		if fits, err = s.leavesReserve(bytes); err != nil {
			return p, err
		}
	}
	if fits {
		p.device, err = s.c.Alloc(bytes)
		if err == nil {
			s.held += bytes
			return p, nil
		}
		if !errors.Is(err, driver.ErrOutOfMemory) {
			return p, err
		}
	}
	p.host, err = s.c.AllocHost(bytes)
	return p, err
}

// leavesReserve reports whether these bytes fit beside the reserve. If not, the context's freed memory is returned
// first.
func (s *Space) leavesReserve(bytes int64) (bool, error) {
	free, _, err := s.c.MemInfo()
	if err != nil || free-bytes >= s.opts.Reserve {
		return err == nil, err
	}
	kept, err := s.c.Stats()
	if err != nil || free+kept.Cached-bytes < s.opts.Reserve {
		return false, err
	}
	if err := s.c.Trim(); err != nil {
		return false, err
	}
	free, _, err = s.c.MemInfo()
	return free-bytes >= s.opts.Reserve, err
}

// own returns v as a vector of the space.
func (s *Space) own(v rna.Vector) (*vector, error) {
	own, ok := v.(*vector)
	if !ok || own.s != s {
		return nil, fmt.Errorf("cuda: %T is not a vector of this space of %d elements on %v", v, s.dim, s.c.Info())
	}
	if own.pieces == nil {
		return nil, fmt.Errorf("vector of %d elements: %w", s.dim, driver.ErrClosed)
	}
	return own, nil
}

func (v *vector) Len() int { return v.s.dim }

func (v *vector) Close() error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return v.release()
}

func (v *vector) release() error {
	var errs []error
	for _, p := range v.pieces {
		if p.device != nil {
			errs = append(errs, p.device.Close())
			v.s.held -= 4 * int64(p.n)
		} else {
			errs = append(errs, p.host.Close())
		}
	}
	v.pieces = nil
	return errors.Join(errs...)
}

// parts splits elements [off, off+n) by pieces. do gets n elements from at on of piece p; the first of them is number
// done of the range.
func (v *vector) parts(off, n int, do func(p piece, at, done, n int) error) error {
	for done := 0; done < n; {
		i := (off + done) / v.s.opts.piece
		at := (off + done) % v.s.opts.piece
		k := min(n-done, v.pieces[i].n-at)
		if err := do(v.pieces[i], at, done, k); err != nil {
			return err
		}
		done += k
	}
	return nil
}

// span returns elements [at, at+n) of a piece in GPU memory.
func (p piece) span(at, n int) driver.Span { return p.device.Span(4*int64(at), 4*int64(n)) }

// floats returns elements [at, at+n) of a piece in host memory.
func (p piece) floats(at, n int) []float32 { return driver.HostSlice[float32](p.host)[at : at+n] }

// address returns the address of element at for kernels. Call it on the owner thread.
func (p piece) address(c *driver.Context, at int) (uint64, error) {
	if p.device != nil {
		a, err := p.span(at, p.n-at).Address(c)
		return uint64(a), err
	}
	a, err := p.host.Address()
	return uint64(a) + 4*uint64(at), err
}

func (v *vector) check(n, off int) error {
	if off < 0 || off > v.s.dim-n {
		return fmt.Errorf("cuda: read of %d elements at offset %d of a vector of %d", n, off, v.s.dim)
	}
	_, err := v.s.own(v)
	return err
}

// ReadAt does not use the operations' shared fields, so that an operation's source may read vectors of the space.
func (v *vector) ReadAt(dst []float32, off int) error {
	if err := v.check(len(dst), off); err != nil {
		return err
	}
	err := v.parts(off, len(dst), func(p piece, at, done, n int) error {
		to := dst[done : done+n]
		if p.host != nil {
			copy(to, p.floats(at, n))
			return nil
		}
		return v.s.stream.CopyOut(driver.Bytes(to), p.span(at, n))
	})
	return errors.Join(err, v.s.stream.Synchronize())
}

func (v *vector) ReadAt64(dst []float64, off int) error {
	narrow := make([]float32, min(len(dst), stageLen))
	for done := 0; done < len(dst); done += len(narrow) {
		part := narrow[:min(len(narrow), len(dst)-done)]
		if err := v.ReadAt(part, off+done); err != nil {
			return err
		}
		for i, x := range part {
			dst[done+i] = float64(x)
		}
	}
	if len(dst) == 0 {
		return v.check(0, off)
	}
	return nil
}
