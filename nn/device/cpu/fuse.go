package cpu

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Group implements device.Grouper. It proposes the sequences that fuse takes.
func (d *Device) Group(p *device.Program) [][]int {
	f := newFlow(d, p)
	taken := make([]bool, len(p.Steps))
	var groups [][]int
	for first := range p.Steps {
		if taken[first] {
			continue
		}
		for _, g := range f.sequences(first) {
			if !slices.ContainsFunc(g, func(s int) bool { return taken[s] }) && f.movable(g) {
				groups = append(groups, g)
				for _, s := range g {
					taken[s] = true
				}
				break
			}
		}
	}
	return groups
}

// flow is who reads the values of a program.
type flow struct {
	*device.Program
	all     step    // whose group has all values
	readers [][]int // steps, by value
}

func newFlow(d *Device, p *device.Program) *flow {
	f := &flow{p, step{Device: d, group: &device.Group{Values: p.Values}}, make([][]int, len(p.Values))}
	for i, s := range p.Steps {
		for _, v := range s.In {
			f.readers[v] = append(f.readers[v], i)
		}
	}
	return f
}

// sole is the only reader of the result of step s, or -1. A result that is kept has none.
func (f *flow) sole(s int) int {
	out := f.Steps[s].Out
	if r := f.readers[out]; len(r) == 1 && !slices.Contains(f.Keep, out) {
		return r[0]
	}
	return -1
}

// sequences lists those that begin with a step, the longest first.
func (f *flow) sequences(first int) [][]int {
	s := f.all
	s.Step = f.Steps[first]
	switch o := s.Op.(type) {
	case op.Conv2D, op.Linear:
		p := s.forward()
		if p.kernels() == nil {
			return nil
		}
		if last := f.statistics(first); last >= 0 && p.summable() {
			return [][]int{{first, last}}
		}
		return f.normalised(first)
	case op.Conv2DGradInput:
		if p := s.convGradInput(o); p.kernels() != nil && p.summable() {
			return f.behindReLU(first)
		}
	case op.BatchNorm:
		return f.normalised(first)
	case op.Add, op.ReLUGrad:
		return f.behindReLU(first)
	case op.MaxPoolGrad:
		if next := f.sole(first); next >= 0 && isReLUGrad(f.Steps[next].Op) && f.Steps[next].In[0] == s.In[0] && f.sums(next) < 0 {
			return [][]int{{first, next}}
		}
	}
	return nil
}

// statistics is the step that takes those of a batch of what a convolution makes for others too, or -1.
func (f *flow) statistics(first int) int {
	if f.sole(first) >= 0 {
		return -1
	}
	for _, r := range f.readers[f.Steps[first].Out] {
		if _, ok := f.Steps[r].Op.(op.BatchNormStats); ok {
			return r
		}
	}
	return -1
}

// normalised lists first with a batch normalisation, an addition and a ReLU behind it, as far as they are there.
func (f *flow) normalised(first int) [][]int {
	g := []int{first}
	var list [][]int
	follow := func(match func(device.Step) bool) {
		if next := f.sole(g[len(g)-1]); next >= 0 && match(f.Steps[next]) {
			g = append(slices.Clone(g), next)
			list = slices.Insert(list, 0, g)
		}
	}
	if _, ok := f.Steps[first].Op.(op.Conv2D); ok {
		follow(func(s device.Step) bool {
			o, ok := s.Op.(op.BatchNorm)
			return ok && o.Fixed && s.In[0] == f.Steps[first].Out
		})
	}
	if _, ok := f.Steps[g[len(g)-1]].Op.(op.BatchNorm); ok {
		follow(func(s device.Step) bool { _, ok := s.Op.(op.Add); return ok })
	}
	follow(func(s device.Step) bool { _, ok := s.Op.(op.ReLU); return ok })
	return list
}

// behindReLU lists first, where that is no such step itself, with an addition and a gradient behind a ReLU and the sums
// that a batch normalisation needs of it.
func (f *flow) behindReLU(first int) [][]int {
	g := []int{first}
	if _, ok := f.Steps[first].Op.(op.Conv2DGradInput); ok {
		next := f.sole(first)
		if next < 0 {
			return nil
		}
		g = append(g, next)
	}
	if at := g[len(g)-1]; !isReLUGrad(f.Steps[at].Op) {
		next := f.sole(at)
		if _, ok := f.Steps[at].Op.(op.Add); !ok || next < 0 {
			return nil
		}
		g = append(g, next)
	}
	grad := g[len(g)-1]
	s := f.Steps[grad]
	if !isReLUGrad(s.Op) || grad != first && s.In[0] == f.Steps[g[len(g)-2]].Out {
		return nil
	}
	if last := f.sums(grad); last >= 0 {
		return [][]int{append(g, last)}
	}
	return nil
}

func isReLUGrad(o op.Op) bool {
	_, ok := o.(op.ReLUGrad)
	return ok
}

// sums is the first step that sums what step s makes for the gradient of a batch normalisation, or -1.
func (f *flow) sums(s int) int {
	out := f.Steps[s].Out
	if f.sole(s) >= 0 {
		return -1 // then nobody else needs what the group would write
	}
	for _, r := range f.readers[out] {
		if _, ok := f.Steps[r].Op.(op.BatchNormGradSums); ok && f.Steps[r].In[2] == out {
			return r
		}
	}
	return -1
}

// movable says whether the steps of g can all run at the place of the last: whether nothing in between reads
// what they make or overwrites what they read.
func (f *flow) movable(g []int) bool {
	for i := g[0] + 1; i < g[len(g)-1]; i++ {
		if slices.Contains(g, i) {
			continue
		}
		s := f.Steps[i]
		_, overwrites := s.Op.(op.InPlace)
		for _, j := range g {
			moved := f.Steps[j]
			if slices.Contains(s.In, moved.Out) || overwrites && slices.Contains(moved.In, s.In[0]) {
				return false
			}
		}
	}
	return true
}

// fuse lowers the groups that run in one pass:
//
//	BatchNorm [+ Add] [+ ReLU]
//	[Add +] ReLUGrad + BatchNormGradSums
//	MaxPoolGrad + ReLUGrad
//
// and, with a matrix product before them,
//
//	Conv2D + BatchNormStats
//	Conv2D or Linear [+ BatchNorm by constants [+ Add]] [+ ReLU]
//	Conv2DGradInput [+ Add] + ReLUGrad + BatchNormGradSums
func (d *Device) fuse(g *device.Group) (*lowering, string) {
	steps := make([]step, len(g.Steps))
	for i, s := range g.Steps {
		steps[i] = step{d, g, s}
	}
	switch o := steps[0].Op.(type) {
	case op.BatchNorm:
		return d.fuseBatchNorm(o, steps)
	case op.Add, op.ReLUGrad:
		return d.fuseReLUGrad(steps)
	case op.Conv2D, op.Linear:
		return d.fuseForward(steps)
	case op.Conv2DGradInput:
		return d.fuseGradInput(o, steps)
	case op.MaxPoolGrad:
		return d.fuseMaxPoolGrad(o, steps)
	}
	return nil, "these ops are not run as a group"
}

func (d *Device) fuseBatchNorm(o op.BatchNorm, steps []step) (*lowering, string) {
	bn := steps[0]
	if reason := bn.dataIn(); reason != "" {
		return nil, reason
	}
	at, other := 1, -1
	over := bn.over(0)
	if at < len(steps) {
		if _, ok := steps[at].Op.(op.Add); ok {
			in := steps[at].In
			if in[0] == in[1] || !slices.Contains(in, bn.Out) {
				return nil, "the sum is not of the normalised and something else"
			}
			operand := 1
			if in[1] == bn.Out {
				operand = 0
			}
			other = in[operand]
			if !d.isData(bn.group.Values[other]) {
				return nil, "operands have different layouts"
			}
			over = append(over, steps[at].over(operand)...)
			at++
		}
	}
	relu := false
	if at < len(steps) {
		if _, ok := steps[at].Op.(op.ReLU); ok && steps[at].In[0] == steps[at-1].Out {
			relu = true
			at++
		}
	}
	if at < len(steps) {
		return nil, "these ops are not run as a group"
	}
	l := bn.batchNorm(o, other, relu, steps[at-1].Out)
	l.outputs[0].Over = over
	return l, ""
}

func (d *Device) fuseReLUGrad(steps []step) (*lowering, string) {
	at := 0
	if _, ok := steps[0].Op.(op.Add); ok {
		at = 1
	}
	if at+2 != len(steps) {
		return nil, "these ops are not run as a group"
	}
	grad, sums := steps[at], steps[at+1]
	o, ok := sums.Op.(op.BatchNormGradSums)
	if !ok || !isReLUGrad(grad.Op) || sums.In[2] != grad.Out || sums.In[0] == grad.Out {
		return nil, "these ops are not run as a group"
	}
	b := sums.gradSums(o)
	b.y, b.from = grad.In[0], grad.In[1]
	if at == 1 {
		if grad.In[1] != steps[0].Out || grad.In[0] == steps[0].Out {
			return nil, "the sum is not what the gradient is of"
		}
		b.from, b.more = steps[0].In[0], steps[0].In[1]
	}
	g := sums.group
	if !slices.Contains(g.Outputs, grad.Out) {
		return nil, "the gradient does not leave the group"
	}
	var over []int
	for _, v := range []int{b.x, b.y, b.from, b.more} {
		if v < 0 {
			continue
		}
		if !d.isData(g.Values[v]) {
			return nil, "operands have different layouts"
		}
		// x is read after the gradient is written.
		if i := slices.Index(g.Inputs, v); v != b.x && !slices.Contains(over, i) {
			over = append(over, i)
		}
	}

	var r room
	s := newChannelSums(&r, b.pixels, b.channels)
	return &lowering{
		results: []int{grad.Out, sums.Out},
		outputs: []device.Output{
			{Layout: d.Layout(grad.out(), device.Data), Bytes: grad.out().Bytes(), Over: over},
			{Layout: d.Layout(sums.out(), device.Data), Bytes: sums.out().Bytes()},
		},
		workspace: r.bytes,
		bind:      func(st *storage) []phase { return b.phases(st, s) },
	}, ""
}

// isData says whether a value lies as activations do.
func (d *Device) isData(v device.Value) bool { return v.Layout == d.Layout(v.Type, device.Data) }
