package cpu

import (
	"fmt"
	"slices"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/elementwise"
	"onlinerna/nn/device/cpu/internal/mapping"
	"onlinerna/nn/device/cpu/internal/move"
	"onlinerna/nn/device/cpu/internal/norm"
	"onlinerna/nn/device/cpu/internal/pool"
	"onlinerna/nn/device/cpu/internal/portion"
	"onlinerna/nn/device/cpu/internal/product"
	"onlinerna/nn/device/cpu/internal/rows"
	"onlinerna/nn/device/cpu/internal/softmax"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// patterns lists the device's patterns. If several patterns match the same steps, the first one wins.
func (d *Device) patterns() lower.Table[work.Kernel] {
	workers := d.pool.Workers()
	attention := d.tiles
	if !d.bfloat16 { // its products are not divided into parts
		attention = nil
	}
	return lower.Table[work.Kernel]{
		Device: d.Name(),
		Patterns: slices.Concat(
			product.Patterns(product.Options{Level: d.level, Workers: workers, Winograd: d.winograd,
				AlwaysWinograd: d.alwaysWinograd, BFloat16: d.bfloat16, Narrow: d.narrow, Tiles: d.tiles,
				AlwaysParts: d.alwaysParts}),
			norm.Patterns(workers),
			pool.Patterns(),
			elementwise.Patterns(workers),
			mapping.Patterns(workers),
			move.Patterns(),
			softmax.Patterns(workers),
			rows.Patterns(workers, rows.KernelsFor(d.level, attention)),
		),
		Lacks: func(t op.Type) string {
			if t.DType == op.Float64 {
				return "float64 values are not supported"
			}
			return ""
		},
		Finish: d.store,
	}
}

// store makes a lowering store activations in the device's precision.
func (d *Device) store(g *device.Group, l *work.Lowering) error {
	if d.bfloat16 {
		work.Store(g, l, d.pool.Workers())
	}
	return nil
}

// Whole implements device.Composer.
func (d *Device) Whole(c op.Composite, in []op.Type) bool {
	switch c.(type) {
	case op.Tokens, op.Planes, op.Taps, op.Filters, op.Roll:
		return true
	}
	return rows.Whole(c, in)
}

// Rewrite implements device.Rewriter: gradients of slices are joined, expressions spread gradients of global pools over
// the pixels, and results of batch normalisation are computed again for gradients of activations.
func (d *Device) Rewrite(p *device.Program) {
	lower.JoinPads(p)
	pool.Spread(p)
	norm.Again(p)
}

// Divide implements device.Divider: layers of large images run for a few samples at a time.
func (d *Device) Divide(p *device.Program) []device.Stage {
	// The bits of products in plain Go, and of products in parts of float32, depend on the number of images.
	if d.level.Vectors() == simd.Go || d.tiles != nil && !d.bfloat16 {
		return nil
	}
	return portion.Divide(p, d.portion)
}

// Group implements device.Grouper.
func (d *Device) Group(p *device.Program) [][]int { return d.table.Group(p) }

// Describe implements device.Device.
func (d *Device) Describe(g *device.Group) (*device.Plan, error) { return d.table.Describe(g) }

// Bind implements device.Device.
func (d *Device) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	b, err := d.table.Bind(g, p, a)
	if err != nil {
		return nil, err
	}
	kept := a.Kept
	if kept == nil {
		kept = new(device.Kept)
	}
	if n := b.Kept; n > 0 && kept.Memory == nil {
		if kept.Memory, err = d.NewMemory(n); err != nil {
			return nil, err
		}
	}
	s := work.NewStorage(b, kept.Memory, d.level)
	phases := s.Around(b.Kernel.Bind(s))
	if s.Err != nil {
		return nil, fmt.Errorf("cpu: bind %v: %w", g, s.Err)
	}
	pool := d.pool
	return func() error {
		for _, p := range phases {
			if !kept.Made || !p.Once {
				pool.Run(p.Blocks, p.Run)
			}
		}
		kept.Made = true
		return nil
	}, nil
}
