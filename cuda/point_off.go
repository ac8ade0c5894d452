//go:build !gpu

package cuda

import "onlinerna/rna"

// A Point is a vector in GPU memory. This build has none.
type Point struct{ rna.Point }

// NewPoint returns [ErrNotBuilt] in this build.
func (c *Context) NewPoint(n int) (*Point, error) { return nil, ErrNotBuilt }

// Close gives the memory back.
func (p *Point) Close() error { return nil }

// Bandwidth returns [ErrNotBuilt] in this build.
func (c *Context) Bandwidth(bytes int64) (float64, error) { return 0, ErrNotBuilt }

// MemInfo returns [ErrNotBuilt] in this build.
func (c *Context) MemInfo() (free, total int64, err error) { return 0, 0, ErrNotBuilt }

// Trim returns [ErrNotBuilt] in this build.
func (c *Context) Trim() error { return ErrNotBuilt }
