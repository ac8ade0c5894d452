//go:build gpu && cgo

package driver

import (
	"errors"
	"slices"

	"gorgonia.org/cu"
)

// A block is device memory from the driver.
type block struct {
	at   cu.DevicePtr
	size int64
}

// pool keeps freed blocks for later allocations: the driver's own allocator takes up to a millisecond a call. Only the
// owner thread uses it.
type pool struct {
	exact bool
	freed []block // by size
	used  bool    // work may still use some freed block
	stats MemoryStats
}

// rounded rounds a size up, so that allocations of similar sizes can share blocks.
func (p *pool) rounded(bytes int64) int64 {
	switch {
	case p.exact:
		return bytes
	case bytes <= 1<<20:
		return (bytes + 511) &^ 511
	}
	return (bytes + 2<<20 - 1) &^ (2<<20 - 1)
}

// take removes the smallest freed block of at least n bytes, if it is at most an eighth larger.
func (p *pool) take(n int64) (block, bool) {
	i, _ := slices.BinarySearchFunc(p.freed, n, func(b block, n int64) int {
		if b.size < n {
			return -1
		}
		return 1
	})
	if i == len(p.freed) || p.freed[i].size > n+n/8 {
		return block{}, false
	}
	b := p.freed[i]
	p.freed = slices.Delete(p.freed, i, i+1)
	p.stats.Cached -= b.size
	return b, true
}

// put keeps a freed block.
func (p *pool) put(b block) {
	i, _ := slices.BinarySearchFunc(p.freed, b.size, func(b block, n int64) int {
		if b.size < n {
			return -1
		}
		return 1
	})
	p.freed = slices.Insert(p.freed, i, b)
	p.stats.Cached += b.size
}

func (p *pool) use(b block) block {
	p.stats.Used += b.size
	p.stats.Peak = max(p.stats.Peak, p.stats.Used)
	return b
}

// allocate takes a block for bytes from the cache or from the driver. If the driver has too little, the cache is
// returned to it first.
func (c *Context) allocate(bytes int64) (block, error) {
	n := c.pool.rounded(bytes)
	if b, ok := c.pool.take(n); ok {
		if err := c.settle(); err != nil {
			c.pool.put(b)
			return block{}, err
		}
		return c.pool.use(b), nil
	}
	var at cu.DevicePtr
	err := c.RetryMemory(func() (err error) {
		at, err = c.memAlloc(n)
		return err
	})
	if err != nil {
		return block{}, err
	}
	return c.pool.use(block{at, n}), nil
}

// settle waits until no work uses any of the freed blocks.
func (c *Context) settle() error {
	if !c.pool.used {
		return nil
	}
	err := c.check("cuCtxSynchronize", cu.Synchronize(), "before memory that was freed is used again")
	c.pool.used = err != nil
	return err
}

// RetryMemory calls f. If f runs out of memory and the cache of freed memory can be returned to the driver, it calls f
// once more. Call it inside [Context.Do].
func (c *Context) RetryMemory(f func() error) error {
	err := f()
	var e *Error
	if !errors.Is(err, ErrOutOfMemory) && (!errors.As(err, &e) || e.Code != int(cu.OutOfMemory) || !e.driver()) {
		return err
	}
	return c.again(err, f)
}

// Retry calls f, a call of a library. If f fails and the cache of freed memory can be returned to the driver, it calls
// f once more: libraries allocate memory and load kernels inside their calls, and report lack of memory as any failure.
// Call it inside [Context.Do].
func (c *Context) Retry(f func() error) error {
	err := f()
	if err == nil {
		return nil
	}
	return c.again(err, f)
}

// OutOfMemory is the error of a library's call that ran out of memory; host says that it was host memory. Call it
// inside [Context.Do].
func (c *Context) OutOfMemory(cause *Error, host bool) *MemoryError {
	m := &MemoryError{Cause: cause, Host: host, Used: c.pool.stats.Used}
	if !host {
		m.Free, m.Total, _ = cu.MemInfo() // unknown sizes stay 0
	}
	return m
}

func (c *Context) again(err error, f func() error) error {
	if c.lost() != nil || c.capturing != nil || len(c.pool.freed) == 0 || c.trim() != nil {
		return err
	}
	return f()
}

func (c *Context) memAlloc(n int64) (cu.DevicePtr, error) {
	c.pool.stats.Calls++
	at, err := cu.MemAlloc(n)
	err = driverError("cuMemAlloc", err, Size(n))
	if e, ok := err.(*Error); ok && e.Code == int(cu.OutOfMemory) {
		m := &MemoryError{Cause: e, Asked: n, Used: c.pool.stats.Used}
		m.Free, m.Total, err = cu.MemInfo()
		if err != nil {
			return 0, c.check("cuMemGetInfo", err, "after a failed allocation")
		}
		return 0, m
	}
	return at, c.note(err)
}

// free takes a block back. Running work may still use it: the next allocation that gets it waits.
func (c *Context) free(b block) error {
	c.pool.stats.Used -= b.size
	c.pool.used = true
	if !c.pool.exact {
		c.pool.put(b)
		return nil
	}
	if err := c.settle(); err != nil {
		return err
	}
	return c.check("cuMemFree", cu.MemFree(b.at), Size(b.size))
}

// trim returns the freed blocks to the driver.
func (c *Context) trim() error {
	if len(c.pool.freed) == 0 {
		return nil
	}
	errs := []error{c.settle()}
	for _, b := range c.pool.freed {
		errs = append(errs, c.check("cuMemFree", cu.MemFree(b.at), Size(b.size)))
		c.pool.stats.Cached -= b.size
	}
	c.pool.freed = nil
	return errors.Join(errs...)
}
