package devicetest

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// program is a device.Program with the contents of its inputs.
type program struct {
	device.Program
	given map[int]op.Tensor   // values from outside
	roles map[int]device.Role // of values from outside, and Weight for gradients of weights
	rows  map[int]int         // number of rows into which a value is cut for comparison, if not one
	left  bool                // activations from outside lie as the device leaves them
	whole []device.Step       // the steps before composite ops were decomposed; nil if there were none
}

func newProgram() *program {
	return &program{given: make(map[int]op.Tensor), roles: make(map[int]device.Role), rows: make(map[int]int)}
}

// input adds a value from outside.
func (p *program) input(name string, role device.Role, x op.Tensor) int {
	v := len(p.Values)
	p.Values = append(p.Values, device.Value{Name: name, Type: x.Type()})
	p.given[v], p.roles[v] = x, role
	return v
}

// apply adds a step and returns its result. It panics where the op does not take the types: the suite itself
// is wrong then.
func (p *program) apply(o op.Op, in ...int) int {
	t, err := o.Infer(p.types(in)...)
	if err != nil {
		panic(err)
	}
	v := len(p.Values)
	name := fmt.Sprintf("%s%d", o.Kind(), v)
	p.Values = append(p.Values, device.Value{Name: name, Type: t})
	p.Steps = append(p.Steps, device.Step{Name: name, Op: o, In: in, Out: v})
	switch o.Kind() {
	case "batch_norm_stats", "batch_norm_update", "batch_norm_grad_sums", "score":
		p.rows[v] = t.Shape[0] // unlike quantities: a large mean must not hide a wrong variance
	}
	return v
}

func (p *program) types(in []int) []op.Type {
	t := make([]op.Type, len(in))
	for i, v := range in {
		t[i] = p.Values[v].Type
	}
	return t
}

// keep asks for values after the last step.
func (p *program) keep(values ...int) {
	for _, v := range values {
		if !slices.Contains(p.Keep, v) {
			p.Keep = append(p.Keep, v)
		}
	}
}

// backward adds the steps that compute the gradients of a scalar with respect to the given values, where dy is the
// gradient with respect to y. Without a path from y the gradient is -1.
func (p *program) backward(y, dy int, wrt ...int) []int {
	grads := map[int]int{y: dy}
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := p.Steps[i]
		d, ok := grads[s.Out]
		o, differentiable := s.Op.(op.Differentiable)
		if !ok || !differentiable {
			continue
		}
		terms, err := o.Gradients(p.types(s.In)...)
		if err != nil {
			panic(err)
		}
		done := make(map[*op.Term]int)
		for j, term := range terms {
			v := s.In[j]
			if term == nil || !p.wanted(v, wrt) {
				continue
			}
			g := p.term(term, s, d, done)
			if sum, ok := grads[v]; ok {
				g = p.apply(op.Add{}, sum, g)
			}
			grads[v] = g
		}
	}
	out := make([]int, len(wrt))
	for i, v := range wrt {
		g, ok := grads[v]
		if !ok {
			g = -1
		} else if p.roles[v] == device.Weight {
			p.roles[g] = device.Weight
		}
		out[i] = g
	}
	return out
}

// wanted reports whether one of wrt is v or goes into it.
func (p *program) wanted(v int, wrt []int) bool {
	if slices.Contains(wrt, v) {
		return true
	}
	for _, s := range p.Steps {
		if s.Out == v {
			return slices.ContainsFunc(s.In, func(u int) bool { return p.wanted(u, wrt) })
		}
	}
	return false
}

// term adds the steps of a gradient formula of s.
func (p *program) term(t *op.Term, s device.Step, dy int, done map[*op.Term]int) int {
	if t.Op == nil {
		switch t.Leaf {
		case op.Result:
			return s.Out
		case op.ResultGrad:
			return dy
		}
		return s.In[t.Leaf]
	}
	v, ok := done[t]
	if !ok {
		in := make([]int, len(t.Args))
		for i, a := range t.Args {
			in[i] = p.term(a, s, dy, done)
		}
		v = p.apply(t.Op, in...)
		done[t] = v
	}
	return v
}

// decompose replaces the composite ops that a device does not run as a whole.
func (p *program) decompose(d device.Device) {
	steps := p.Steps
	device.Decompose(d, &p.Program)
	if len(p.Steps) != len(steps) {
		p.whole = steps
	}
}

// definition is the steps whose ops define the results.
func (p *program) definition() []device.Step {
	if p.whole != nil {
		return p.whole
	}
	return p.Steps
}

// exact computes all values of p by the definitions of the ops, in float64.
func (p *program) exact() ([][]float64, error) {
	values := make([]op.Tensor, len(p.Values))
	for v, x := range p.given {
		values[v] = tensor(wide(x.Type()), floats(x))
	}
	for _, s := range p.definition() {
		in := make([]op.Tensor, len(s.In))
		for i, v := range s.In {
			in[i] = values[v]
		}
		out := op.New(wide(p.Values[s.Out].Type))
		if _, ok := s.Op.(op.InPlace); ok {
			out = tensor(in[0].Type(), floats(in[0]))
			in[0] = out
		}
		if err := wideOp(s.Op).Run(out, in...); err != nil {
			return nil, fmt.Errorf("%v: %w", s.Op, err)
		}
		values[s.Out] = out
	}
	all := make([][]float64, len(values))
	for v, x := range values {
		if x.Data != nil {
			all[v] = floats(x)
		}
	}
	return all, nil
}

// alone is every step of p as a group of its own.
func (p *program) alone() [][]int {
	groups := make([][]int, len(p.Steps))
	for i := range groups {
		groups[i] = []int{i}
	}
	return groups
}

// grouped completes the groups that a device proposes by the steps that run alone, in the order in which they run, or
// returns why they are invalid.
func (p *program) grouped(proposed [][]int) ([][]int, error) {
	at := make([][]int, len(p.Steps)) // by last step
	member := make([]bool, len(p.Steps))
	for _, g := range proposed {
		for i, s := range g {
			if s < 0 || s >= len(p.Steps) || member[s] || i > 0 && s <= g[i-1] {
				return nil, fmt.Errorf("groups %v: step %d of %d is out of order, or in two groups", proposed, s,
					len(p.Steps))
			}
			member[s] = true
		}
		if len(g) > 0 {
			at[g[len(g)-1]] = g
		}
	}
	var groups [][]int
	made, gone := make(map[int]bool), make(map[int]bool)
	for v := range p.given {
		made[v] = true
	}
	for i := range p.Steps {
		if !member[i] {
			at[i] = []int{i}
		}
		for _, j := range at[i] {
			s := p.Steps[j]
			for _, v := range s.In {
				if !made[v] || gone[v] {
					return nil,
						fmt.Errorf("groups %v: step %d, %v, runs before value %s is made, or after it is overwritten",
							proposed, j, s.Op, p.Values[v].Name)
				}
			}
			made[s.Out] = true
			if _, ok := s.Op.(op.InPlace); ok {
				gone[s.In[0]] = true
			}
		}
		if at[i] != nil {
			groups = append(groups, at[i])
		}
	}
	return groups, nil
}
