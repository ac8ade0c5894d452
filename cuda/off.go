//go:build !gpu

package cuda

import (
	"time"

	"onlinerna/nn/device"
	"onlinerna/rna"
)

// Replacements for on.go and look.go in a build without the tag gpu: each returns ErrNotBuilt.

// Devices returns [ErrNotBuilt] in this build.
func Devices() ([]Info, error) { return nil, ErrNotBuilt }

// A Context is a GPU in use. This build has none.
type Context struct{ _ [0]func() }

// Properties returns [ErrNotBuilt] in this build.
func Properties(ordinal int) (string, error) { return "", ErrNotBuilt }

// Open returns [ErrNotBuilt] in this build.
func Open(ordinal int, o Options) (*Context, error) { return nil, ErrNotBuilt }

// Info describes the context's GPU.
func (c *Context) Info() Info { return Info{} }

// MemInfo returns [ErrNotBuilt] in this build.
func (c *Context) MemInfo() (free, total int64, err error) { return 0, 0, ErrNotBuilt }

// Trim returns [ErrNotBuilt] in this build.
func (c *Context) Trim() error { return ErrNotBuilt }

// Bandwidth returns [ErrNotBuilt] in this build.
func (c *Context) Bandwidth(bytes int64) (float64, error) { return 0, ErrNotBuilt }

// Close does nothing in this build.
func (c *Context) Close() error { return nil }

// A Point is a vector in GPU memory. This build has none.
type Point struct{ rna.Point }

// NewPoint returns [ErrNotBuilt] in this build.
func (c *Context) NewPoint(n int) (*Point, error) { return nil, ErrNotBuilt }

// Close does nothing in this build.
func (p *Point) Close() error { return nil }

// A Space keeps the vectors of RNA in GPU memory. This build has none.
type Space struct{ rna.Space }

// NewSpace returns [ErrNotBuilt] in this build.
func NewSpace(c *Context, dim int, o SpaceOptions) (*Space, error) { return nil, ErrNotBuilt }

// Close does nothing in this build.
func (s *Space) Close() error { return nil }

// OpenNet returns [ErrNotBuilt] in this build.
func OpenNet(ordinal int, o NetOptions) (device.Device, error) { return nil, ErrNotBuilt }

// A PaperNet is a device for nets that models a card by its data sheet. This build has none.
type PaperNet struct{ device.Device }

// OpenPaper returns [ErrNotBuilt] in this build.
func OpenPaper(card Card, o NetOptions) (*PaperNet, error) { return nil, ErrNotBuilt }

// MakePlans returns [ErrNotBuilt] in this build.
func MakePlans(PlansOptions) (PlansReport, error) { return PlansReport{}, ErrNotBuilt }

// Least is 0 in this build.
func (p *PaperNet) Least(device.Work) time.Duration { return 0 }

func (r *Report) load() {}

// Try does nothing in this build.
func (r *Report) Try() {}
