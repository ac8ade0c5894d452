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
		match := lower.Match[kernel]{Steps: steps, Lower: func() (*lowering,
			error) {
			return norm.normalise(o, other, relu, to), nil
		}}
		all = append([]lower.Match[kernel]{match}, all...) // longest match first
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

// normalisedTwice takes BatchNorm + BatchNorm + Add [+ ReLU] in one pass: the end of a residual block with a normalised
// shortcut.
func (d *Device) normalisedTwice(f *lower.Flow, first int) []lower.Match[kernel] {
	one := step{d, f.Step(first)}
	if !lower.Is[op.BatchNorm](one.Step) {
		return nil
	}
	add, ok := lower.Next[op.Add](f, first)
	if !ok {
		return nil
	}
	v, ok := f.Step(add).Other(one.Out)
	if !ok {
		return nil
	}
	at := f.Maker(v)
	if at < first || f.Sole(at) != add || !lower.Is[op.BatchNorm](f.Step(at)) {
		return nil
	}
	two, steps, relu := step{d, f.Step(at)}, []int{first, at, add}, false
	if next, ok := lower.Next[op.ReLU](f, add); ok {
		steps, relu = append(steps, next), true
	}
	out := f.Step(steps[len(steps)-1]).Out
	return []lower.Match[kernel]{{Steps: steps, Lower: func() (*lowering,
		error) {
		return one.normaliseWith(two, relu, out), nil
	}}}
}

// summedGradient takes [Add +] ReLUGrad + BatchNormGradSums in one pass if another step reads the gradient, too.
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
		return nil // no other step reads the gradient
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

// updatedStats takes BatchNormStats + BatchNormUpdate.
func (d *Device) updatedStats(f *lower.Flow, first int) []lower.Match[kernel] {
	s := step{d, f.Step(first)}
	if !lower.Is[op.BatchNormStats](s.Step) {
		return nil
	}
	for _, r := range f.Readers(first) {
		u := step{d, f.Step(r)}
		if lower.Is[op.BatchNormUpdate](u.Step) && u.In[1] == s.Out {
			return []lower.Match[kernel]{{Steps: []int{first, r},
				Lower: func() (*lowering, error) { return moments{s, &u}.lower(), nil }}}
		}
	}
	return nil
}

// maskedGradient takes BatchNorm + ReLU + ReLUGrad + BatchNormGradSums + BatchNormGradInput: the gradient of a
// normalisation followed by a ReLU, whose mask it recomputes.
func (d *Device) maskedGradient(f *lower.Flow, first int) []lower.Match[kernel] {
	steps := []int{first}
	take := func(ok bool, next int) bool {
		if ok {
			steps = append(steps, next)
		}
		return ok
	}
	norm := f.Step(first)
	if !lower.Is[op.BatchNorm](norm) {
		return nil
	}
	relu, ok := lower.Next[op.ReLU](f, first)
	if !take(ok, relu) {
		return nil
	}
	mask, ok := lower.Next[op.ReLUGrad](f, relu)
	if !take(ok && f.Step(mask).In[0] == f.Step(relu).Out, mask) {
		return nil
	}
	r := f.Readers(mask)
	if len(r) != 2 || f.Kept(mask) || !gradientOf(norm, f.Step(mask).Step, f.Step(r[0]), f.Step(r[1])) {
		return nil
	}
	n, dy, sums, dx := step{d, norm}, f.Step(mask).In[1], f.Step(r[0]), f.Step(r[1])
	return []lower.Match[kernel]{{Steps: append(steps, r...),
		Lower: func() (*lowering, error) { return n.maskedGradient(dy, sums, dx), nil }}}
}
