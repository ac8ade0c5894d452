// Package product has what is a product of matrices: convolutions and linear layers, their gradients, and what is done with
// the results while they are in registers or in a cache.
//
// With AVX-512, AVX2 or NEON products run in assembly of package kern, which reads the source in place or from a copy of the
// lines of a block with the padding around them (tiled), or by Winograd's algorithm; elsewhere, and for convolutions of a
// few channels a group, in plain Go on tiles that are gathered row by row. Where factors are bfloat16 they are rounded as they
// are copied or gathered, so that no source is read in place.
package product

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
)

// Options say how products run.
type Options struct {
	Level          simd.Level
	Workers        int
	Winograd       bool      // convolutions that can run by Winograd's algorithm do where it is faster,
	AlwaysWinograd bool      // and where it is not
	BFloat16       bool      // factors are rounded to bfloat16, and none run by Winograd's algorithm
	Narrow         *kern.Set // the kernels of bfloat16 in place of the processor's, for tests
}

// set is the kernels of products, or nil where that is plain Go.
func (d Options) set() *kern.Set {
	if d.Narrow != nil {
		return d.Narrow
	}
	if d.BFloat16 {
		return kern.ForBFloat16(d.Level)
	}
	return kern.For(d.Level)
}

// blocks is how many blocks a product has at least, where it can be cut into so many and results do not depend on it.
func (d Options) blocks() int { return max(32, 2*d.Workers) }

// Patterns are those of the ops of this package.
func Patterns(d Options) []work.Pattern {
	return []work.Pattern{
		d.forward, d.gradInput,
		lower.Alone(d.linearGradInput), lower.Alone(d.convGradWeight), lower.Alone(d.linearGradWeight), lower.Alone(channelSum),
		lower.Alone(d.matMul),
	}
}

// productStep is a product with its values, for the result of a step; bias may be -1.
type productStep struct {
	*product
	step               work.Step
	roles              [2]device.Role // of the first operands of the step that is the product
	first              work.Step      // that step
	src, weights, bias int
}

// expect says which operand of the product does not lie as it has to.
func (p productStep) expect() error { return work.Expect(p.first, p.roles[:]...) }

// way is one to run a product: it takes its scratch from r and makes its phases.
type way interface {
	lower(d Options, r *work.Room, src, weights, bias, dst int) work.Bind
}

// alone is the lowering of a product in some way.
func (d Options) alone(p productStep, w way) *work.Lowering {
	var r work.Room
	kernel := w.lower(d, &r, p.src, p.weights, p.bias, p.step.Out)
	l := work.Data(p.step, kernel)
	l.Workspace = r.Bytes
	if t, ok := w.(*tiled); ok {
		l.Kernel.Take(0, p.src, p.step.Out, t.other)
	}
	return l
}
