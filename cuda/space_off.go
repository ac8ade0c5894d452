//go:build !gpu

package cuda

import "onlinerna/rna"

// A Space keeps the vectors of RNA in GPU memory. This build has none.
type Space struct{ rna.Space }

// NewSpace returns [ErrNotBuilt] in this build.
func NewSpace(c *Context, dim int, o SpaceOptions) (*Space, error) { return nil, ErrNotBuilt }

// Close gives the space's memory back.
func (s *Space) Close() error { return nil }
