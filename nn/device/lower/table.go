package lower

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// A Pattern lists the groups that it takes and that begin with step first of f, the best first. Its answer may depend
// only on ops, types and readers, since it is called for a program first and then for the group alone.
type Pattern[K any] func(f *Flow, first int) []Match[K]

// A Match is steps that run as one kernel.
type Match[K any] struct {
	Steps []int // in execution order
	// Lower makes the lowering, once the layouts of the inputs are known. A [Reason] says why the device cannot.
	Lower func() (*Lowering[K], error)
}

// Alone is the pattern of an op that runs by itself.
func Alone[O op.Op, K any](lower func(s Step, o O) (*Lowering[K], error)) Pattern[K] {
	return func(f *Flow, first int) []Match[K] {
		s := f.Step(first)
		o, ok := s.Op.(O)
		if !ok {
			return nil
		}
		return []Match[K]{{Steps: []int{first}, Lower: func() (*Lowering[K], error) { return lower(s, o) }}}
	}
}

// A Lowering is a way to run a group. It may be bound several times.
type Lowering[K any] struct {
	Results   []Result // values that the kernel writes: the group's outputs, in any order
	Workspace int      // bytes
	Kept      int      // bytes of the kernel's own memory: device.Plan's
	Kernel    K
}

// Result is the storage of a value that the kernel writes.
type Result struct {
	Value  int
	Layout device.Layout
	Bytes  int
	// Over lists values whose storage it may take over, as device.Output says. Values that are no inputs of the group,
	// and negative ones, do not count.
	Over []int
	// View, if not nil, says that the result is a part of an input.
	View *View
}

// View is a part of the storage of an input.
type View struct {
	Value  int
	Offset int // bytes
}

// A Reason is the error of a lowering that the device does not have: it makes a *device.UnsupportedError.
type Reason string

func (r Reason) Error() string { return string(r) }

// A Table holds the patterns that a device runs.
type Table[K any] struct {
	Device   string // for errors
	Patterns []Pattern[K]

	// Lacks returns why the device lacks a type, "" if it has it. Nil accepts all types.
	Lacks func(t op.Type) string
	// Finish, if not nil, may change each lowering before its plan is made.
	Finish func(g *device.Group, l *Lowering[K]) error
}

// Group implements device.Grouper. From the first step on it takes the best match whose steps are still free.
func (t *Table[K]) Group(p *device.Program) [][]int {
	f := NewFlow(p)
	taken := make([]bool, len(p.Steps))
	var groups [][]int
	for first := range p.Steps {
		if taken[first] {
			continue
		}
		for m := range t.matches(f, first) {
			free := !slices.ContainsFunc(m.Steps, func(s int) bool { return taken[s] })
			if len(m.Steps) > 1 && free && f.Movable(m.Steps) {
				groups = append(groups, m.Steps)
				for _, s := range m.Steps {
					taken[s] = true
				}
				break
			}
		}
	}
	return groups
}

// matches goes over the matches of all patterns.
func (t *Table[K]) matches(f *Flow, first int) func(yield func(Match[K]) bool) {
	return func(yield func(Match[K]) bool) {
		for _, p := range t.Patterns {
			for _, m := range p(f, first) {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Describe implements device.Device. The plan carries the lowering.
func (t *Table[K]) Describe(g *device.Group) (*device.Plan, error) {
	l, err := t.lower(g)
	if err == nil && t.Finish != nil {
		err = t.Finish(g, l)
	}
	var p *device.Plan
	if err == nil {
		p, err = l.plan(g)
	}
	if reason := Reason(""); errors.As(err, &reason) {
		return nil, &device.UnsupportedError{Device: t.Device, Group: g, Reason: reason.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: describe %v: %w", t.Device, g, err)
	}
	return p, nil
}

// lower finds the pattern that takes all of g.
func (t *Table[K]) lower(g *device.Group) (*Lowering[K], error) {
	if err := g.Check(); err != nil {
		return nil, Reason(err.Error())
	}
	if len(g.Steps) == 0 {
		return nil, Reason("empty group")
	}
	if t.Lacks != nil {
		for _, s := range g.Steps {
			for _, v := range append(slices.Clone(s.In), s.Out) {
				if lack := t.Lacks(g.Values[v].Type); lack != "" {
					return nil, Reason(lack)
				}
			}
		}
	}
	for m := range t.matches(GroupFlow(g), 0) {
		if len(m.Steps) == len(g.Steps) { // they ascend, so that is all
			return m.Lower()
		}
	}
	if len(g.Steps) == 1 {
		return nil, Reason("there is no kernel for this op")
	}
	return nil, Reason("these ops are not run as a group")
}

// plan is the device's plan for l.
func (l *Lowering[K]) plan(g *device.Group) (*device.Plan, error) {
	p := &device.Plan{Workspace: l.Workspace, Kept: l.Kept, Lowering: l}
	for _, v := range g.Outputs {
		i := slices.IndexFunc(l.Results, func(r Result) bool { return r.Value == v })
		if i < 0 {
			return nil, Reason(fmt.Sprintf("value %s does not leave the group", g.Values[v].Name))
		}
		r := l.Results[i]
		o := device.Output{Layout: r.Layout, Bytes: r.Bytes}
		for _, x := range r.Over {
			if in := slices.Index(g.Inputs, x); in >= 0 && !slices.Contains(o.Over, in) {
				o.Over = append(o.Over, in)
			}
		}
		if w := r.View; w != nil {
			if in := slices.Index(g.Inputs, w.Value); in >= 0 {
				o.View = &device.View{Input: in, Offset: w.Offset}
			}
		}
		p.Outputs = append(p.Outputs, o)
	}
	return p, nil
}

// Bound is a lowering with the storage that it is to run on.
type Bound[K any] struct {
	*Lowering[K]
	Group     *device.Group
	Regions   []device.Region // by value; zero for those that stay inside the group
	Workspace device.Region
}

// Bind is the lowering of a plan that Describe made for g, with the storage of a.
func (t *Table[K]) Bind(g *device.Group, p *device.Plan, a device.Args) (*Bound[K], error) {
	l, ok := p.Lowering.(*Lowering[K])
	if !ok {
		return nil, fmt.Errorf("%s: bind %v: the plan is not one of this device's Describe", t.Device, g)
	}
	if len(a.In) != len(g.Inputs) || len(a.Out) != len(g.Outputs) || a.Workspace.Bytes < l.Workspace {
		return nil, fmt.Errorf("%s: bind %v: %d and %d regions for %d inputs and %d outputs, workspace of %d bytes "+
			"for %d",
			t.Device, g, len(a.In), len(a.Out), len(g.Inputs), len(g.Outputs), a.Workspace.Bytes, l.Workspace)
	}
	b := &Bound[K]{Lowering: l, Group: g, Regions: make([]device.Region, len(g.Values)), Workspace: a.Workspace}
	for i, v := range g.Inputs {
		b.Regions[v] = a.In[i]
	}
	for i, v := range g.Outputs {
		b.Regions[v] = a.Out[i]
	}
	return b, nil
}
