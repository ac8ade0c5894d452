//go:build gpu && cgo

package space

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/nvrtc"
	"onlinerna/rna"
)

const (
	// pieceLen is the number of elements allocated together: 64 MiB.
	pieceLen = 1 << 24
	// spanLen elements of each residual go to a block of threads: enough spans for all multiprocessors, few sums for
	// the host.
	spanLen = 1 << 15
	// columns is the number of residuals that productThreads threads multiply at a time, as in rna.cu.
	columns        = 10
	productThreads = 256
	// stageLen elements are copied at a time if a source or sink does not expose its memory.
	stageLen = 1 << 20
)

// A Space is an [rna.Space] of float32 vectors in GPU memory. Differences and Gram products are float64. Its operations
// wait for the GPU, so that no work uses a vector between them.
//
// Sources and sinks may read vectors of the space, but must not call it. Copies from and to a vector that is a
// [driver.Resident] of the same context stay on the GPU.
//
// Close the vectors, then the space, then the context.
type Space struct {
	c    *driver.Context
	dim  int
	opts Options

	mu      sync.Mutex // serialises operations, which share the fields below
	stream  *driver.Stream
	module  *driver.Module
	kernels struct{ products, combine, check, max *driver.Kernel }

	found    *driver.Memory        // a Found of rna.cu
	table    grown                 // residuals or terms
	products grown                 // one set for each span
	stage    [2]*driver.HostMemory // `stage` float32 elements each
	landing  [2]*driver.Memory     // as many, in GPU memory
	passed   [2]*driver.Event      // the last use of each buffer

	held int64 // bytes of GPU memory in vectors
}

var _ rna.Space = (*Space)(nil)

// New returns a space of vectors of dim elements in the memory of c's GPU.
func New(c *driver.Context, dim int, o Options) (*Space, error) {
	if dim < 1 {
		return nil, fmt.Errorf("cuda: space of vectors of %d elements: there must be at least 1", dim)
	}
	if o.Memory < 0 || o.Reserve < 0 {
		return nil, fmt.Errorf("cuda: space with %d bytes of GPU memory and a reserve of %d bytes: neither may be "+
			"negative", o.Memory, o.Reserve)
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	if o.span == 0 {
		o.span = spanLen
	}
	if o.piece == 0 {
		o.piece = pieceLen
	}
	if o.stage == 0 {
		o.stage = stageLen
	}
	s := &Space{c: c, dim: dim, opts: o}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("cuda: space of vectors of %d elements: %w", dim, err), s.Close())
	}
	return s, nil
}

func (s *Space) open() (err error) {
	if s.stream, err = s.c.NewStream(); err != nil {
		return err
	}
	s.stream.Name("RNA")
	if s.module, err = nvrtc.Compile(s.c, "rna.cu", kernels.RNA()); err != nil {
		return err
	}
	for name, k := range map[string]**driver.Kernel{
		"rna_products": &s.kernels.products, "rna_combine": &s.kernels.combine, "rna_check": &s.kernels.check,
		"rna_max": &s.kernels.max,
	} {
		if *k, err = s.module.Kernel(name); err != nil {
			return err
		}
	}
	s.table.c, s.products.c = s.c, s.c
	if s.found, err = s.c.Alloc(int64(unsafe.Sizeof(found{}))); err != nil {
		return err
	}
	for i := range s.stage {
		n := 4 * int64(min(s.dim, s.opts.stage))
		if s.stage[i], err = s.c.AllocHost(n); err != nil {
			return err
		}
		if s.landing[i], err = s.c.Alloc(n); err != nil {
			return err
		}
		if s.passed[i], err = s.c.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the space's memory, except its vectors.
func (s *Space) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, m := range []*driver.Memory{s.found, s.table.m, s.products.m, s.landing[0], s.landing[1]} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	for i := range s.stage {
		if s.stage[i] != nil {
			errs = append(errs, s.stage[i].Close())
		}
		if s.passed[i] != nil {
			errs = append(errs, s.passed[i].Close())
		}
	}
	if s.module != nil {
		errs = append(errs, s.module.Close())
	}
	if s.stream != nil {
		errs = append(errs, s.stream.Close())
	}
	return errors.Join(errs...)
}

// Dim is the number of elements of each vector.
func (s *Space) Dim() int { return s.dim }

// Bits is 32.
func (s *Space) Bits() int { return 32 }

// grown is GPU memory that grows on demand.
type grown struct {
	c *driver.Context
	m *driver.Memory
}

// span returns n bytes with unspecified contents.
func (g *grown) span(n int64) (driver.Span, error) {
	if g.m == nil || g.m.Bytes() < n {
		if g.m != nil {
			m := g.m
			g.m = nil
			if err := m.Close(); err != nil {
				return driver.Span{}, err
			}
		}
		m, err := g.c.Alloc(n)
		if err != nil {
			return driver.Span{}, err
		}
		g.m = m
	}
	return g.m.Span(0, n), nil
}

// grid is the grid of a kernel with one thread for each element, limited to the threads that the GPU runs at a time.
func (s *Space) grid(n int) (grid, block driver.Dim) {
	const threads = 256
	most := 8 * max(s.c.Info().Multiprocessors, 1)
	return driver.Dim{X: min((n+threads-1)/threads, most)}, driver.Dim{X: threads}
}

// Bytes is the GPU memory in bytes of a space with this many vectors of dim elements, with the [DefaultReserve]: with
// less free memory some vectors would go to the host.
func Bytes(dim, vectors int) int64 {
	work := 2 * 4 * int64(min(dim, stageLen))
	pieces := int64((dim + pieceLen - 1) / pieceLen)
	return work + int64(vectors)*(4*int64(dim)+pieces<<21) + DefaultReserve
}
