package device

import (
	"fmt"
	"slices"

	"onlinerna/nn/op"
)

// Group extracts steps of p, given by index in execution order, as a group. Values that the steps read before any of
// them writes are inputs; values that another step reads, or that are kept, are outputs, and so is a result that no
// step reads. The group's values are copies with their layouts; values maps them to the program's.
func (p *Program) Group(steps ...int) (g *Group, values []int) {
	g = new(Group)
	local := make(map[int]int)
	add := func(v int) int {
		i, ok := local[v]
		if !ok {
			i = len(g.Values)
			local[v] = i
			g.Values = append(g.Values, p.Values[v])
			values = append(values, v)
		}
		return i
	}
	for _, s := range steps {
		t := p.Steps[s]
		t.In = slices.Clone(t.In)
		for j, v := range t.In {
			if _, ok := local[v]; !ok {
				g.Inputs = append(g.Inputs, add(v))
			}
			t.In[j] = local[v]
		}
		t.Out = add(t.Out)
		g.Steps = append(g.Steps, t)
	}

	// How the results are read, for those of the group only: a program has many more values.
	const inside, outside = 1, 2
	read := make(map[int]int, len(steps))
	for _, s := range steps {
		read[p.Steps[s].Out] = 0
	}
	for i, s := range p.Steps {
		for _, v := range s.In {
			if how, ours := read[v]; ours {
				if slices.Contains(steps, i) {
					read[v] = how | inside
				} else {
					read[v] = how | outside
				}
			}
		}
	}
	for _, s := range steps {
		v := p.Steps[s].Out
		if read[v] != inside || slices.Contains(p.Keep, v) {
			g.Outputs = append(g.Outputs, local[v])
		}
	}
	return g, values
}

// Check returns an error for an invalid group: an index, the order of the steps or the type of a result.
func (g *Group) Check() error {
	known := make([]bool, len(g.Values))
	for _, v := range g.Inputs {
		if v < 0 || v >= len(g.Values) {
			return fmt.Errorf("input %d is none of %d values", v, len(g.Values))
		}
		known[v] = true
	}
	for _, s := range g.Steps {
		for _, v := range s.In {
			if v < 0 || v >= len(g.Values) || !known[v] {
				return fmt.Errorf("%s: %v reads value %d, which is no input and not made before", s.Name, s.Op, v)
			}
		}
		out, err := s.Op.Infer(g.types(s.In)...)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if s.Out < 0 || s.Out >= len(g.Values) || known[s.Out] {
			return fmt.Errorf("%s: %v writes value %d, which exists already or is none of %d", s.Name, s.Op, s.Out,
				len(g.Values))
		}
		if t := g.Values[s.Out].Type; !t.Equal(out) {
			return fmt.Errorf("%s: %v gives %v, not %v", s.Name, s.Op, out, t)
		}
		known[s.Out] = true
	}
	for _, v := range g.Outputs {
		if v < 0 || v >= len(g.Values) || !known[v] || slices.Contains(g.Inputs, v) {
			return fmt.Errorf("output %d is made by none of the steps", v)
		}
	}
	return nil
}

// types returns the types of some values.
func (g *Group) types(values []int) []op.Type {
	t := make([]op.Type, len(values))
	for i, v := range values {
		t[i] = g.Values[v].Type
	}
	return t
}
