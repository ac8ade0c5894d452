package lower

import (
	"cmp"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// JoinPads replaces sums of values padded with zeros, which together fill the result along an axis, by their
// concatenation: the gradient of a value that is read in slices.
func JoinPads(p *device.Program) {
	f := NewFlow(p)
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if !Is[op.Add](f.Step(i)) {
			continue
		}
		t := terms{flow: f}
		t.collect(i)
		axis, parts, ok := t.filling(f.Step(i).OutType().Shape)
		if !ok || len(t.others) > 1 {
			continue
		}
		last := p.Steps[i]
		joined := []device.Step{{Name: last.Name, Op: op.Concat{Axis: axis}, In: parts, Out: last.Out}}
		if len(t.others) == 1 {
			joined[0].Out = p.Steps[t.steps[1]].Out // a term that is no longer needed
			last.In = []int{joined[0].Out, t.others[0]}
			joined = append(joined, last)
		}
		var before []device.Step
		for at, s := range p.Steps[:i] {
			if !slices.Contains(t.steps, at) {
				before = append(before, s)
			}
		}
		p.Steps = slices.Concat(before, joined, p.Steps[i+1:])
		f, i = NewFlow(p), len(before)
	}
}

// terms are those of a sum.
type terms struct {
	flow   *Flow
	steps  []int // sums and pads that nothing else reads
	pads   []Step
	others []int // values
}

// collect adds the terms of the sum that step i is.
func (t *terms) collect(i int) {
	t.steps = append(t.steps, i)
	s := t.flow.Step(i)
	for _, v := range s.In {
		m := t.flow.Maker(v)
		switch {
		case m < 0 || t.flow.Sole(m) != i || s.In[0] == s.In[1]:
			t.others = append(t.others, v)
		case Is[op.Add](t.flow.Step(m)):
			t.collect(m)
		case Is[op.Pad](t.flow.Step(m)):
			t.steps, t.pads = append(t.steps, m), append(t.pads, t.flow.Step(m))
		default:
			t.others = append(t.others, v)
		}
	}
}

// filling returns the values that are padded, two or more, along an axis of shape that they fill, in order.
func (t *terms) filling(shape op.Shape) (axis int, parts []int, ok bool) {
	if len(t.pads) < 2 {
		return 0, nil, false
	}
	first := t.pads[0].InType(0).Shape
	for axis < len(shape) && first[axis] == shape[axis] {
		axis++
	}
	if axis == len(shape) {
		return 0, nil, false
	}
	before := func(s Step) int { return s.Op.(op.Pad).Before[axis] }
	slices.SortFunc(t.pads, func(a, b Step) int { return cmp.Compare(before(a), before(b)) })
	end := 0
	for _, s := range t.pads {
		x := s.InType(0).Shape
		for d := range shape {
			if d != axis && x[d] != shape[d] {
				return 0, nil, false
			}
		}
		if before(s) != end {
			return 0, nil, false
		}
		end += x[axis]
		parts = append(parts, s.In[0])
	}
	return axis, parts, end == shape[axis]
}
