package device

import (
	"fmt"
	"reflect"
	"slices"

	"onlinerna/nn/op"
)

// Composer is a Device with kernels for some composite ops. Of the others it runs the formula.
type Composer interface {
	Device
	// Whole reports whether the device runs c of operands of the given types as one step.
	Whole(c op.Composite, in []op.Type) bool
}

// Decompose replaces the composite ops of p that d does not run as a whole by the steps of their formulas. Existing
// values keep their indices; new ones follow. Formulas of the same operands, such as the gradients of an op, compute
// common terms once.
func Decompose(d Device, p *Program) {
	e := expander{p: p, made: map[string][]Step{}}
	e.composer, _ = As[Composer](d)
	steps := p.Steps
	p.Steps = nil
	for _, s := range steps {
		e.add(s)
	}
}

type expander struct {
	p        *Program
	composer Composer // nil for no device
	// made are the steps of formulas inside, by the operands of the composite and of the step.
	made map[string][]Step
}

// add appends a step, or the steps that make its result.
func (e *expander) add(s Step) {
	c, ok := s.Op.(op.Composite)
	if !ok || e.composer != nil && e.composer.Whole(c, e.p.types(s.In)) {
		e.p.Steps = append(e.p.Steps, s)
		return
	}
	e.term(c.Decompose(e.p.types(s.In)...), s, s.Out, map[*op.Term]int{})
}

// term appends the steps of a formula of s and returns the value, out unless that is negative.
func (e *expander) term(t *op.Term, s Step, out int, done map[*op.Term]int) int {
	if t.Op == nil {
		return s.In[t.Leaf]
	}
	if v, ok := done[t]; ok {
		return v
	}
	in := make([]int, len(t.Args))
	for i, a := range t.Args {
		in[i] = e.term(a, s, -1, done)
	}
	if out < 0 {
		inside := fmt.Sprint(s.In, in)
		equal := func(o Step) bool { return reflect.DeepEqual(o.Op, t.Op) }
		if i := slices.IndexFunc(e.made[inside], equal); i >= 0 {
			done[t] = e.made[inside][i].Out
			return done[t]
		}
		y, err := t.Op.Infer(e.p.types(in)...)
		if err != nil {
			panic(err) // the formula is wrong
		}
		out = len(e.p.Values)
		e.p.Values = append(e.p.Values, Value{Name: s.Name + " " + t.Op.Kind(), Type: y})
		e.made[inside] = append(e.made[inside], Step{Op: t.Op, Out: out})
	}
	done[t] = out
	e.add(Step{Name: s.Name, Op: t.Op, In: slices.Clone(in), Out: out})
	return out
}

// types returns the types of some values.
func (p *Program) types(values []int) []op.Type {
	t := make([]op.Type, len(values))
	for i, v := range values {
		t[i] = p.Values[v].Type
	}
	return t
}
