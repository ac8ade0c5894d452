package lower

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Flow holds the makers and readers of the values of a program, or of a group, whose outputs count as kept.
type Flow struct {
	values  []device.Value
	steps   []device.Step
	keep    []bool  // by value
	readers [][]int // steps, by value: once for each time they read it
	makers  []int   // steps, by value, -1 for none
}

// NewFlow makes the flow of a program.
func NewFlow(p *device.Program) *Flow { return newFlow(p.Values, p.Steps, p.Keep) }

// GroupFlow makes the flow of a group.
func GroupFlow(g *device.Group) *Flow { return newFlow(g.Values, g.Steps, g.Outputs) }

func newFlow(values []device.Value, steps []device.Step, keep []int) *Flow {
	f := &Flow{values, steps, make([]bool, len(values)), make([][]int, len(values)),
		slices.Repeat([]int{-1}, len(values))}
	for _, v := range keep {
		f.keep[v] = true
	}
	for i, s := range steps {
		for _, v := range s.In {
			f.readers[v] = append(f.readers[v], i)
		}
		f.makers[s.Out] = i
	}
	return f
}

// Step is step i. Layouts of its values are known while it is lowered, not while steps are matched.
func (f *Flow) Step(i int) Step { return Step{f.steps[i], f.values} }

// Maker is the step that makes a value, or -1.
func (f *Flow) Maker(v int) int { return f.makers[v] }

// Readers are the steps that read the result of step i, in execution order.
func (f *Flow) Readers(i int) []int { return f.readers[f.steps[i].Out] }

// ReadersOf are the steps that read a value, in execution order.
func (f *Flow) ReadersOf(v int) []int { return f.readers[v] }

// Kept reports whether the result of step i is kept, or read outside a group.
func (f *Flow) Kept(i int) bool { return f.keep[f.steps[i].Out] }

// Sole is the only reader of the result of step i, or -1. It is -1, too, for a result that is kept or read outside a
// group.
func (f *Flow) Sole(i int) int {
	out := f.steps[i].Out
	if r := f.readers[out]; len(r) == 1 && !f.keep[out] {
		return r[0]
	}
	return -1
}

// Next is Sole if that is an O.
func Next[O op.Op](f *Flow, i int) (step int, ok bool) {
	step = f.Sole(i)
	return step, step >= 0 && Is[O](f.Step(step))
}

// Movable reports whether the steps of a group, in execution order, can all run at the place of the last: whether no
// step in between reads their results or overwrites their operands.
func (f *Flow) Movable(group []int) bool {
	for i := group[0] + 1; i < group[len(group)-1]; i++ {
		if slices.Contains(group, i) {
			continue
		}
		s := f.steps[i]
		_, overwrites := s.Op.(op.InPlace)
		for _, j := range group {
			moved := f.steps[j]
			if slices.Contains(s.In, moved.Out) || overwrites && slices.Contains(moved.In, s.In[0]) {
				return false
			}
		}
	}
	return true
}

// Step is a step of a program or a group, with all values of the program or group.
type Step struct {
	device.Step
	Values []device.Value
}

// InType is the type of an operand, InValue all about it.
func (s Step) InType(i int) op.Type       { return s.Values[s.In[i]].Type }
func (s Step) InValue(i int) device.Value { return s.Values[s.In[i]] }

// OutType is the type of the result.
func (s Step) OutType() op.Type { return s.Values[s.Out].Type }

// Optional is the value of an operand, or -1 if the step has fewer.
func (s Step) Optional(i int) int {
	if i < len(s.In) {
		return s.In[i]
	}
	return -1
}

// Other is the operand of a step of two operands that is not value v. It is not ok if both are, or none.
func (s Step) Other(v int) (other int, ok bool) {
	if len(s.In) != 2 || (s.In[0] == v) == (s.In[1] == v) {
		return -1, false
	}
	if s.In[0] == v {
		return s.In[1], true
	}
	return s.In[0], true
}

// Is reports whether a step's op is an O.
func Is[O op.Op](s Step) bool {
	_, ok := s.Op.(O)
	return ok
}
