package machine

import (
	"cmp"
	"fmt"
	"slices"

	"onlinerna/nn/device"
)

// task is a group of steps with the device's plan for it. Its values are the program's.
type task struct {
	group   *device.Group
	plan    *device.Plan
	steps   []int // of the program
	in, out []int // values of group.Inputs and group.Outputs
}

// groups splits the program's steps as the device proposes, in an order in which the groups can run.
func (p *program) groups(c *Config) ([][]int, error) {
	var proposed [][]int
	if g, ok := device.As[device.Grouper](c.Device); ok && !c.Ungrouped {
		proposed = slices.DeleteFunc(g.Group(&p.Program), p.straddles)
	}
	groupOf := make([]int, len(p.Steps))
	for i := range groupOf {
		groupOf[i] = -1
	}
	bad := func(g []int, format string, a ...any) error {
		return fmt.Errorf("machine: device %s proposes a group of steps %v: %s", c.Device.Name(), g,
			fmt.Sprintf(format, a...))
	}
	all := slices.Clone(proposed)
	for i, g := range proposed {
		if len(g) == 0 {
			return nil, bad(g, "it is empty")
		}
		for j, s := range g {
			switch {
			case s < 0 || s >= len(p.Steps):
				return nil, bad(g, "there are %d steps", len(p.Steps))
			case j > 0 && s <= g[j-1]:
				return nil, bad(g, "they are not in execution order")
			case groupOf[s] >= 0:
				return nil, bad(g, "step %d is in group %v too", s, proposed[groupOf[s]])
			}
			groupOf[s] = i
		}
	}
	for s := range p.Steps {
		if groupOf[s] < 0 {
			groupOf[s] = len(all)
			all = append(all, []int{s})
		}
	}

	// Groups run in the order of their last steps, so earlier groups must make the operands of later ones.
	last := func(g int) int { return all[g][len(all[g])-1] }
	maker := p.makers()
	for s, step := range p.Steps {
		for _, v := range step.In {
			m := maker[v]
			if m < 0 || groupOf[m] == groupOf[s] || last(groupOf[m]) < last(groupOf[s]) {
				continue
			}
			g, first := all[groupOf[s]], all[groupOf[m]]
			if len(g) == 1 {
				g = first
			}
			return nil, bad(g, "it cannot run at the place of its last step, since step %d (%s) reads the result of "+
				"step %d (%s)", s, step.Name, m, p.Steps[m].Name)
		}
	}
	slices.SortFunc(all, func(a, b []int) int { return cmp.Compare(a[len(a)-1], b[len(b)-1]) })
	return all, nil
}

// makers returns for each value the step that makes it, or -1.
func (p *program) makers() []int {
	m := make([]int, len(p.Values))
	for v := range m {
		m[v] = -1
	}
	for s, step := range p.Steps {
		m[step.Out] = s
	}
	return m
}

// describe asks the device for its plan of each group, in order, and notes the layouts and sizes of results.
// Layouts of values from outside are set already.
func (p *program) describe(c *Config, groups [][]int) ([]task, error) {
	tasks := make([]task, len(groups))
	for i, steps := range groups {
		for _, step := range steps {
			for _, v := range p.Steps[step].In {
				if err := p.fromWhole(v); err != nil {
					return nil, err
				}
			}
		}
		group, value := p.Group(steps...)
		t := task{group: group, steps: steps}
		for _, v := range t.group.Inputs {
			t.in = append(t.in, value[v])
		}
		for _, v := range t.group.Outputs {
			t.out = append(t.out, value[v])
		}
		var err error
		if t.plan, err = c.Device.Describe(t.group); err != nil {
			return nil, fmt.Errorf("machine: %w", err)
		}
		if len(t.plan.Outputs) != len(t.out) {
			return nil, fmt.Errorf("machine: device %s describes %d outputs of %v, which has %d", c.Device.Name(),
				len(t.plan.Outputs), t.group, len(t.out))
		}
		for j, o := range t.plan.Outputs {
			v := &p.Values[t.out[j]]
			v.Layout, v.Bytes = o.Layout, o.Bytes
			p.toWhole(t.out[j])
			t.group.Values[t.group.Outputs[j]] = *v
			if w := o.View; w != nil && (w.Input < 0 || w.Input >= len(t.in) || w.Offset < 0 ||
				w.Offset+o.Bytes > p.Values[t.in[w.Input]].Bytes) {
				return nil, fmt.Errorf("machine: device %s describes an output of %v as bytes %d to %d of input %d",
					c.Device.Name(), t.group, w.Offset, w.Offset+o.Bytes, w.Input)
			}
		}
		tasks[i] = t
	}
	return tasks, nil
}
