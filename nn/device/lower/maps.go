package lower

import (
	"slices"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Maps is a chain of elementwise steps, each of the result before, as one expression.
type Maps struct {
	Steps []int // in execution order
	Map   op.Map
	In    []int // the values that Map reads, each once
	Out   int   // the value that the last step makes
}

// MapsFrom lists the steps that begin with step first and run as one expression, the longest first: an op.Map or
// another elementwise op, and the following ones while no other step reads the values in between and none of these is
// repeated. The list is empty unless one of the steps is an op.Map.
func MapsFrom(f *Flow, first int) []Maps {
	s := f.Step(first)
	o, ok := s.Op.(op.Elementwise)
	if !ok {
		return nil
	}
	m := Maps{Steps: []int{first}, Out: s.Out}
	m.Map, m.In = op.Mapped(o, s.In)
	var list []Maps
	for some := Is[op.Map](s); ; {
		if some {
			list = append(list, m)
		}
		next, ok := m.Next(f)
		if !ok {
			slices.Reverse(list)
			return list
		}
		m = next
		some = some || Is[op.Map](f.Step(m.Steps[len(m.Steps)-1]))
	}
}

// After is the unchanged result of step i: the start of expressions fused after another kernel.
func After(f *Flow, i int) Maps {
	out := f.Step(i).Out
	return Maps{Steps: []int{i}, Map: op.Map{Expr: expr.Arg(0)}, In: []int{out}, Out: out}
}

// Next is m with the following step: an elementwise op of the same shape that is the only reader of m's result.
func (m Maps) Next(f *Flow) (n Maps, ok bool) {
	i := f.Sole(m.Steps[len(m.Steps)-1])
	if i < 0 {
		return n, false
	}
	return m.Then(f, i)
}

// Then is Next with step i, one of the readers. The caller must provide m's result for the other readers.
func (m Maps) Then(f *Flow, i int) (n Maps, ok bool) {
	s := f.Step(i)
	o, ok := s.Op.(op.Elementwise)
	if !ok || !s.Values[m.Out].Type.Shape.Equal(s.OutType().Shape) {
		return n, false
	}
	n = Maps{Steps: append(slices.Clone(m.Steps), i), Out: s.Out}
	n.Map, n.In, ok = op.Compose(o, s.In, m.Map, m.In, m.Out)
	return n, ok
}
