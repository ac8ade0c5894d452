//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

var _ device.Rewriter = (*Device)(nil)

// Rewrite implements device.Rewriter. It joins gradients of slices. It pads the channels of images: see padStem. It
// makes max pools store places: see placePools. It chooses the width of linear layers' results and of kept values: see
// narrowLinears and widenKept. It moves updates of running statistics to the statistics, whose kernel performs them.
// The gradient of a batch normalisation with a ReLU recomputes the mask, so that neither the ReLU's result nor its
// gradient is read or written: two passes over activations fewer.
func (d *Device) Rewrite(p *device.Program) {
	lower.JoinPads(p)
	d.padStem(p)
	d.narrowLinears(p)
	placePools(p)
	for i := 0; i < len(p.Steps); i++ {
		if _, ok := p.Steps[i].Op.(op.BatchNormUpdate); ok {
			lower.Forward(p, i)
		}
	}
	for i := 0; i < len(p.Steps); i++ {
		if m, ok := maskedNorm(p, i); ok {
			y := lower.Repeat(p, i, m.norm, m.relu)
			i += 2
			p.Steps[i].In = []int{y, p.Steps[i].In[1]}
			// From this step on both readers have all their operands.
			lower.Forward(p, makes(p, m.sums))
			lower.Forward(p, makes(p, m.dx))
		}
	}
	d.widenKept(p)
}

// masked is the ReLU of a batch normalisation whose gradient only the normalisation's gradient reads: steps and values.
type masked struct {
	norm, relu int
	sums, dx   int
}

// maskedNorm finds the one whose ReLUGrad is step i.
func maskedNorm(p *device.Program, i int) (m masked, ok bool) {
	if _, ok := p.Steps[i].Op.(op.ReLUGrad); !ok {
		return m, false
	}
	f := lower.NewFlow(p)
	mask := f.Step(i)
	if f.Kept(i) {
		return m, false
	}
	if m.relu = f.Maker(mask.In[0]); m.relu < 0 || !lower.Is[op.ReLU](f.Step(m.relu)) {
		return m, false
	}
	if m.norm = f.Maker(f.Step(m.relu).In[0]); m.norm < 0 || !lower.Is[op.BatchNorm](f.Step(m.norm)) {
		return m, false
	}
	readers := f.Readers(i)
	if len(readers) != 2 {
		return m, false
	}
	sums, dx := f.Step(readers[0]), f.Step(readers[1])
	m.sums, m.dx = sums.Out, dx.Out
	return m, gradientOf(f.Step(m.norm), mask.Step, sums, dx)
}

// gradientOf reports whether sums and dx are the gradients of a batch normalisation for the gradient dy.
func gradientOf(norm lower.Step, dy device.Step, sums, dx lower.Step) bool {
	o, ok := norm.Op.(op.BatchNorm)
	s, isSums := sums.Op.(op.BatchNormGradSums)
	g, isInput := dx.Op.(op.BatchNormGradInput)
	return ok && isSums && isInput && s.Eps == o.Eps && g.Eps == o.Eps &&
		slices.Equal(sums.In, []int{norm.In[0], norm.In[1], dy.Out}) &&
		slices.Equal(dx.In, []int{norm.In[0], norm.In[1], norm.In[2], sums.Out, dy.Out})
}

// makes is the step that makes value v, or -1.
func makes(p *device.Program, v int) int {
	return slices.IndexFunc(p.Steps, func(s device.Step) bool { return s.Out == v })
}
