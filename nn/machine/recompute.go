package machine

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// A value is recomputed if this takes at most cheapFLOPs an element, has at least largeBytes, and has no
// reader for at least longSteps steps. Only products count as FLOPs: 1×1 convolutions of up to 128 channels are cheap,
// and so is every op that is not a product.
var (
	cheapFLOPs int64 = 256
	largeBytes       = 64 << 10
	longSteps        = 16
)

// recompute makes results a second time before the backward pass reads them, if this is cheap and their operands are
// in memory then anyway. They take no memory in between. The copies are ordinary steps with the same operands, but a
// device may group them differently.
func (p *program) recompute() {
	r := &recomputation{
		program: p, maker: p.makers(), readers: make([][]int, len(p.Values)),
		before: make([][]device.Step, len(p.Steps)),
		fixed:  make([]bool, len(p.Values)), again: make([]int, len(p.Values)),
	}
	for i, s := range p.Steps {
		for _, v := range s.In {
			r.readers[v] = append(r.readers[v], i)
		}
	}
	for v := range r.again {
		r.again[v] = -1
		r.fixed[v] = !r.cheap(v)
	}
	for i := len(p.Steps) - 1; i >= 0; i-- { // so that in a sequence of blocks every second one gives up its sum
		if v := p.Steps[i].Out; !r.fixed[v] && r.again[v] < 0 {
			if at := r.late(v); at >= 0 {
				if plan, ok := r.plan(v, at); ok {
					r.commit(plan, at)
				}
			}
		}
	}
	var steps []device.Step
	for i, s := range p.Steps {
		steps = append(append(steps, r.before[i]...), s)
	}
	p.Steps = steps
	p.again = len(p.Values) - len(p.nodes)
	p.made()
}

// recomputation is the state of recompute. Places are indices of the original steps.
type recomputation struct {
	*program
	maker   []int           // by value: the step, or -1
	readers [][]int         // by value: places, in order; those of a value made again are its own
	before  [][]device.Step // by place: the steps repeated there
	fixed   []bool          // by value: stays in memory
	again   []int           // by value: the value that is recomputed, or -1
}

// cheap reports whether a value may be made a second time.
func (r *recomputation) cheap(v int) bool {
	m := r.maker[v]
	if m < 0 || slices.Contains(r.Keep, v) || r.Values[v].Type.Bytes() < largeBytes {
		return false
	}
	s := r.Steps[m]
	switch s.Op.(type) {
	case op.InPlace, op.View:
		return false
	}
	in := make([]op.Type, len(s.In))
	for i, u := range s.In {
		in[i] = r.Values[u].Type
	}
	n, err := op.FLOPs(s.Op, in...)
	return err == nil && n <= cheapFLOPs*int64(r.Values[v].Type.Shape.Size())
}

// late returns the place that reads v first after its longest time without a reader, or -1 if that time is short or
// no step reads v before it.
func (r *recomputation) late(v int) int {
	at, longest := -1, longSteps-1
	for i, place := range r.readers[v] {
		if i > 0 && place-r.readers[v][i-1] > longest {
			at, longest = place, place-r.readers[v][i-1]
		}
	}
	return at
}

// recomputePlan lists the values to make again for a value, in order, and those that must then stay in memory.
type recomputePlan struct{ values, fix []int }

// plan returns the plan to make v again at a place.
func (r *recomputation) plan(v, at int) (plan recomputePlan, ok bool) {
	for _, u := range r.Steps[r.maker[v]].In {
		if r.maker[u] < 0 || slices.Contains(plan.values, u) {
			continue
		}
		if r.again[u] >= 0 {
			return plan, false
		}
		there := r.readers[u][len(r.readers[u])-1] >= at // so it is in memory
		if r.fixed[u] && there {
			continue
		}
		if r.fixed[u] {
			return plan, false
		}
		more, ok := r.plan(u, at)
		switch {
		case ok && (!there || len(more.fix) == 0):
			plan.values, plan.fix = append(plan.values, more.values...), append(plan.fix, more.fix...)
		case there && r.Values[u].Type.Bytes() <= r.Values[v].Type.Bytes():
			plan.fix = append(plan.fix, u)
		default:
			return plan, false
		}
	}
	plan.values = append(plan.values, v)
	return plan, true
}

// commit applies a plan at a place, for all later readers.
func (r *recomputation) commit(plan recomputePlan, at int) {
	for _, u := range plan.fix {
		r.fixed[u] = true
	}
	var steps []device.Step
	for _, v := range plan.values {
		if r.again[v] >= 0 { // two of the operands need it
			continue
		}
		s := r.Steps[r.maker[v]]
		s.In = slices.Clone(s.In)
		for i, u := range s.In {
			if a := r.again[u]; a >= 0 {
				s.In[i] = a
				u = a
			}
			if r.maker[u] >= 0 {
				r.read(u, at)
			}
		}
		s.Out = len(r.Values)
		r.again[v] = s.Out
		r.Values = append(r.Values, device.Value{Name: r.Values[v].Name, Type: r.Values[v].Type, Narrow: r.Values[v].Narrow})
		r.maker, r.again, r.fixed = append(r.maker, at), append(r.again, -1), append(r.fixed, true)
		early, _ := slices.BinarySearch(r.readers[v], at)
		r.readers = append(r.readers, slices.Clone(r.readers[v][early:]))
		r.readers[v] = r.readers[v][:early:early]
		steps = append(steps, s)
	}
	for i := at; i < len(r.Steps); i++ {
		for _, s := range append(r.before[i], r.Steps[i]) {
			for j, u := range s.In {
				if slices.Contains(plan.values, u) {
					s.In[j] = r.again[u]
				}
			}
		}
	}
	r.before[at] = append(steps, r.before[at]...)
}

// read notes that v is read at a place, too.
func (r *recomputation) read(v, at int) {
	i, _ := slices.BinarySearch(r.readers[v], at)
	r.readers[v] = slices.Insert(r.readers[v], i, at)
}
