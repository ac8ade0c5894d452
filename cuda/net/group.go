//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Group implements device.Grouper. It proposes the sequences that fuse takes:
//
//	BatchNorm [+ Add] [+ ReLU]
//	[Add +] ReLUGrad + BatchNormGradSums
func (d *Device) Group(p *device.Program) [][]int {
	f := flow{p, make([][]int, len(p.Values))}
	for i, s := range p.Steps {
		for _, v := range s.In {
			f.readers[v] = append(f.readers[v], i)
		}
	}
	taken := make([]bool, len(p.Steps))
	var groups [][]int
	for first := range p.Steps {
		g := f.sequence(first)
		if len(g) < 2 || slices.ContainsFunc(g, func(s int) bool { return taken[s] }) || !f.movable(g) {
			continue
		}
		groups = append(groups, g)
		for _, s := range g {
			taken[s] = true
		}
	}
	return groups
}

// flow is who reads the values of a program.
type flow struct {
	*device.Program
	readers [][]int // steps, by value
}

// sole is the only reader of the result of step s, or -1. A result that is kept has none.
func (f flow) sole(s int) int {
	out := f.Steps[s].Out
	if r := f.readers[out]; len(r) == 1 && !slices.Contains(f.Keep, out) {
		return r[0]
	}
	return -1
}

// sequence is the longest that begins with a step.
func (f flow) sequence(first int) []int {
	g := []int{first}
	last := func() device.Step { return f.Steps[g[len(g)-1]] }
	switch f.Steps[first].Op.(type) {
	case op.BatchNorm:
		if next := f.sole(first); next >= 0 && is[op.Add](f.Steps[next]) {
			if in := f.Steps[next].In; in[0] == in[1] {
				return nil
			}
			g = append(g, next)
		}
		if next := f.sole(g[len(g)-1]); next >= 0 && is[op.ReLU](f.Steps[next]) {
			g = append(g, next)
		}
		return g
	case op.Add:
		next := f.sole(first)
		if next < 0 || !is[op.ReLUGrad](f.Steps[next]) || f.Steps[next].In[1] != last().Out || f.Steps[next].In[0] == last().Out {
			return nil
		}
		g = append(g, next)
	case op.ReLUGrad:
	default:
		return nil
	}
	if f.sole(g[len(g)-1]) >= 0 {
		return nil // nobody else needs what the group would write
	}
	for _, r := range f.readers[last().Out] {
		if s := f.Steps[r]; is[op.BatchNormGradSums](s) && s.In[2] == last().Out && s.In[0] != last().Out {
			return append(g, r)
		}
	}
	return nil
}

func is[O op.Op](s device.Step) bool {
	_, ok := s.Op.(O)
	return ok
}

// movable says whether the steps of g can all run at the place of the last: whether nothing in between reads what they make or
// overwrites what they read.
func (f flow) movable(g []int) bool {
	for i := g[0] + 1; i < g[len(g)-1]; i++ {
		if slices.Contains(g, i) {
			continue
		}
		s := f.Steps[i]
		_, overwrites := s.Op.(op.InPlace)
		for _, j := range g {
			if moved := f.Steps[j]; slices.Contains(s.In, moved.Out) || overwrites && slices.Contains(moved.In, s.In[0]) {
				return false
			}
		}
	}
	return true
}

const notFused = "these ops are not run as a group"

// fuse lowers the groups that run in one pass.
func (d *Device) fuse(g *device.Group) (*lowering, string) {
	steps := make([]step, len(g.Steps))
	for i, s := range g.Steps {
		steps[i] = step{d, g, s}
	}
	if o, ok := steps[0].Op.(op.BatchNorm); ok {
		return fuseNorm(o, steps)
	}
	return fuseGradSums(steps)
}

func fuseNorm(o op.BatchNorm, steps []step) (*lowering, string) {
	at, other := 1, -1
	if is[op.Add](steps[at].Step) {
		in := steps[at].In
		mine := slices.Index(in, steps[0].Out)
		if mine < 0 || in[0] == in[1] {
			return nil, notFused
		}
		other = in[1-mine]
		at++
	}
	relu := at < len(steps) && is[op.ReLU](steps[at].Step) && steps[at].In[0] == steps[at-1].Out
	if relu {
		at++
	}
	if at < len(steps) {
		return nil, notFused
	}
	return steps[0].normalise(o, other, relu, steps[at-1].Out)
}

func fuseGradSums(steps []step) (*lowering, string) {
	at := len(steps) - 2
	grad, sums := steps[at], steps[at+1]
	o, ok := sums.Op.(op.BatchNormGradSums)
	if !ok || at > 1 || !is[op.ReLUGrad](grad.Step) || sums.In[2] != grad.Out || sums.In[0] == grad.Out {
		return nil, notFused
	}
	b := gradSums{sums, o, grad.In[1], -1, grad.In[0], grad.Out}
	if at == 1 {
		add := steps[0]
		if !is[op.Add](add.Step) || grad.In[1] != add.Out || grad.In[0] == add.Out {
			return nil, notFused
		}
		b.dy, b.more = add.In[0], add.In[1]
	}
	g := sums.group
	if !slices.Contains(g.Outputs, grad.Out) {
		return nil, "the gradient does not leave the group"
	}
	var over []int
	for _, v := range []int{sums.In[0], b.y, b.dy, b.more} {
		if v < 0 {
			continue
		}
		if i := slices.Index(g.Inputs, v); i >= 0 && !slices.Contains(over, i) {
			over = append(over, i)
		}
	}
	l, f := b.lower()
	out := grad.output(f)
	out.Over = over
	l.results, l.outputs = []int{grad.Out, sums.Out}, []device.Output{out, l.outputs[0]}
	return l, ""
}
