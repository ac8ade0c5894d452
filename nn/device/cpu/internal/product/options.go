// Package product has the ops that are matrix products: convolutions and linear layers, their gradients, and epilogues
// on the results while they are in registers or in a cache.
//
// With AVX-512, AVX2 or NEON products run in assembly of package kern: tiled, which reads the source in place or from
// a copy of a block's lines with the padding around them, or by Winograd's algorithm. Depthwise convolutions have
// kernels of their own, and so have most groups of 4 to 24 channels; other groups of a few channels are merged into
// larger ones. On other levels, and where groups of a few channels cannot be merged or have factors in bfloat16,
// products run in plain Go on tiles that are gathered row by row. Factors in bfloat16 are rounded as they are copied
// or gathered, so no source is read in place, except by AMX, whose tiles take stored bfloat16. Products of float32 run
// on AMX in parts of bfloat16 where that is faster.
package product

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
)

// Options select how products run.
type Options struct {
	Level          simd.Level
	Workers        int
	Winograd       bool      // suitable convolutions run by Winograd's algorithm if it is faster
	AlwaysWinograd bool      // suitable convolutions run by it even if it is slower
	BFloat16       bool      // rounds factors to bfloat16 and disables Winograd's algorithm
	Narrow         *kern.Set // replaces the processor's kernels of bfloat16, for tests

	// Tiles run products of bfloat16 with enough channels, and without BFloat16 those of float32 in parts that are faster
	// so; nil for none.
	Tiles       *kern.Tiles
	AlwaysParts bool // products of float32 run in parts even if they are slower
}

// set returns the kernels of products, or nil for plain Go.
func (d Options) set() *kern.Set {
	if d.Narrow != nil {
		return d.Narrow
	}
	if d.BFloat16 {
		return kern.ForBFloat16(d.Level)
	}
	return kern.For(d.Level)
}

// blocks is the least number of blocks of a product that can be cut so finely without changing results.
func (d Options) blocks() int { return max(32, 2*d.Workers) }

// shares is the number of blocks that keeps all workers busy. Of products whose blocks share a source, more blocks would
// only copy it more often.
func (d Options) shares() int { return min(4*d.Workers, d.blocks()) }

// Patterns returns the patterns of this package's ops.
func Patterns(d Options) []work.Pattern {
	return []work.Pattern{
		d.forward, d.gradInput, d.linearGrad,
		lower.Alone(d.convGradWeight), lower.Alone(d.linearGradWeight),
		lower.Alone(channelSum),
		lower.Alone(d.matMul),
	}
}

// productStep is a product with its values, for the result of a step; bias may be -1.
type productStep struct {
	*product
	step               work.Step
	roles              [2]device.Role // of the first operands of the product's step
	first              work.Step      // that step
	src, weights, bias int
}

// expect returns an error for an operand in an unsuitable layout.
func (p productStep) expect() error { return work.Expect(p.first, p.roles[:]...) }

// way is an implementation of a product: it reserves its scratch in r and makes its phases.
type way interface {
	lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind
}

// alone lowers a product in the given way.
func (d Options) alone(p productStep, w way) *work.Lowering {
	var r work.Room
	kernel := w.lower(d, &r, p.src, p.weights, p.bias, p.step.Out)
	l := work.Data(p.step, kernel)
	l.Workspace, l.Kept = r.Bytes, r.Kept
	switch w := w.(type) {
	case *tiled:
		l.Kernel.Take(0, p.src, p.step.Out, w.other)
	case *channelwise:
		l.Kernel.Take(0, p.src, p.step.Out)
	case *product:
		if w.depthwise() {
			l.Kernel.Take(0, p.src, p.step.Out)
		}
	}
	return l
}
