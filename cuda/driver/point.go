//go:build gpu && cgo

package driver

import (
	"fmt"
	"time"
)

// A Point is a vector of float32 elements in GPU memory, such as the weights of a net that trains there. It is an
// rna.Point: a space of the same context copies from it and combines into it without the host.
type Point struct {
	m *Memory
	n int
}

// Resident is implemented by vectors of float32 elements in GPU memory. Float32Span returns the elements [off, off+n),
// or false if they are not stored as such. Work on them must have completed.
type Resident interface {
	Float32Span(off, n int) (Span, bool)
}

// ResidentSink is a Resident with a callback: a writer of its elements calls Float32Written afterwards.
type ResidentSink interface {
	Resident
	Float32Written() error
}

var _ Resident = (*Point)(nil)

// NewPoint allocates n elements, whose values are unspecified.
func (c *Context) NewPoint(n int) (*Point, error) {
	m, err := c.Alloc(4 * int64(n))
	if err != nil {
		return nil, fmt.Errorf("cuda: point of %d elements: %w", n, err)
	}
	return &Point{m, n}, nil
}

// Len is the number of elements.
func (p *Point) Len() int { return p.n }

// Float32Span returns the elements [off, off+n), or false when they are out of range.
func (p *Point) Float32Span(off, n int) (Span, bool) {
	if off < 0 || n < 0 || off > p.n-n {
		return Span{}, false
	}
	return p.m.Span(4*int64(off), 4*int64(n)), true
}

// ReadAt copies elements, starting at off, to the host.
func (p *Point) ReadAt(dst []float32, off int) error {
	s, ok := p.Float32Span(off, len(dst))
	if !ok {
		return fmt.Errorf("cuda: read of %d elements at offset %d of a point of %d", len(dst), off, p.n)
	}
	if err := p.m.c.stream.CopyOut(Bytes(dst), s); err != nil {
		return err
	}
	return p.m.c.stream.Synchronize()
}

// WriteAt copies src over the elements that start at off.
func (p *Point) WriteAt(src []float32, off int) error {
	s, ok := p.Float32Span(off, len(src))
	if !ok {
		return fmt.Errorf("cuda: write of %d elements at offset %d of a point of %d", len(src), off, p.n)
	}
	if err := p.m.c.stream.CopyIn(s, Bytes(src)); err != nil {
		return err
	}
	return p.m.c.stream.Synchronize()
}

// Close frees the memory.
func (p *Point) Close() error { return p.m.Close() }

// Bandwidth measures the GPU's memory in bytes a second: it copies a block of this size within the memory, counts reads
// and writes, and returns the best of a few runs.
func (c *Context) Bandwidth(bytes int64) (best float64, err error) {
	from, err := c.Alloc(bytes)
	if err != nil {
		return 0, fmt.Errorf("cuda: measuring the bandwidth: %w", err)
	}
	defer from.Close()
	to, err := c.Alloc(bytes)
	if err != nil {
		return 0, fmt.Errorf("cuda: measuring the bandwidth: %w", err)
	}
	defer to.Close()
	if err := c.stream.Fill(from.All(), 0); err != nil {
		return 0, err
	}
	const rounds, copies = 5, 10
	for range rounds {
		if err := c.stream.Synchronize(); err != nil {
			return 0, err
		}
		start := time.Now()
		for range copies {
			if err := c.stream.Copy(to.All(), from.All()); err != nil {
				return 0, err
			}
		}
		if err := c.stream.Synchronize(); err != nil {
			return 0, err
		}
		best = max(best, float64(copies*2*bytes)/time.Since(start).Seconds())
	}
	return best, nil
}
