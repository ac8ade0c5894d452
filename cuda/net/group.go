//go:build gpu && cgo

package net

import (
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// normalised takes BatchNorm [+ Add] [+ ReLU] in one pass.
func (d *Device) normalised(f *lower.Flow, first int) []lower.Match[kernel] {
	norm := step{d, f.Step(first)}
	o, ok := norm.Op.(op.BatchNorm)
	if !ok {
		return nil
	}
	var all []lower.Match[kernel]
	other, relu := -1, false
	steps := []int{first}
	take := func(next int) {
		steps = append(steps[:len(steps):len(steps)], next)
		to, other, relu := f.Step(next).Out, other, relu
		match := lower.Match[kernel]{Steps: steps, Lower: func() (*lowering, error) { return norm.normalise(o, other, relu, to), nil }}
		all = append([]lower.Match[kernel]{match}, all...) // the longest first
	}
	if add, ok := lower.Next[op.Add](f, first); ok {
		if other, ok = f.Step(add).Other(norm.Out); !ok {
			return nil
		}
		take(add)
	}
	if next, ok := lower.Next[op.ReLU](f, steps[len(steps)-1]); ok {
		relu = true
		take(next)
	}
	return all
}

// summedGradient takes [Add +] ReLUGrad + BatchNormGradSums in one pass, where somebody else reads the gradient, too.
func (d *Device) summedGradient(f *lower.Flow, first int) []lower.Match[kernel] {
	steps := []int{first}
	b := gradSums{more: -1}
	mask := f.Step(first)
	if add := mask; lower.Is[op.Add](add) {
		next, ok := lower.Next[op.ReLUGrad](f, first)
		if !ok || f.Step(next).In[1] != add.Out || f.Step(next).In[0] == add.Out {
			return nil
		}
		b.dy, b.more = add.In[0], add.In[1]
		steps, mask = append(steps, next), f.Step(next)
	} else if lower.Is[op.ReLUGrad](mask) {
		b.dy = mask.In[1]
	} else {
		return nil
	}
	b.y, b.grad = mask.In[0], mask.Out
	last := steps[len(steps)-1]
	if f.Sole(last) >= 0 {
		return nil // nobody else needs what the group would write
	}
	for _, r := range f.Readers(last) {
		s := f.Step(r)
		o, ok := s.Op.(op.BatchNormGradSums)
		if !ok || s.In[2] != mask.Out || s.In[0] == mask.Out {
			continue
		}
		b.step, b.o = step{d, s}, o
		return []lower.Match[kernel]{{Steps: append(steps, r), Lower: func() (*lowering, error) {
			l, form := b.lower()
			out := step{d, mask}.output(form)
			out.Over = []int{s.In[0], b.y, b.dy, b.more}
			l.Results = append(l.Results, out)
			return l, nil
		}}}
	}
	return nil
}
