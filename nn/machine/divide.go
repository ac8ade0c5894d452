package machine

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// loop is a range of steps or of tasks that runs several times, each time for the next samples.
type loop struct{ from, to, times int }

// divide has the steps of a device's stages run for a portion of the samples at a time. Their values are portions: those
// that lead into a stage or out of it are parts of values with all samples, which p.portionOf lists.
func (p *program) divide(d device.Divider) error {
	stages := d.Divide(&p.Program)
	if len(stages) == 0 {
		return nil
	}
	stage := make(map[int]int) // by step
	for i, g := range stages {
		if len(g.Steps) == 0 || len(g.Ops) != len(g.Steps) || g.Samples < 1 {
			return fmt.Errorf("machine: device %s divides %d steps for %d samples, with %d ops", d.Name(), len(g.Steps),
				g.Samples, len(g.Ops))
		}
		for _, s := range g.Steps {
			stage[s] = i
		}
	}
	outside := make(map[int]bool) // results of stages that are read elsewhere
	for _, v := range p.Keep {
		outside[v] = true
	}
	maker := p.makers()
	for i, s := range p.Steps {
		for _, v := range s.In {
			if m := maker[v]; m >= 0 {
				from, made := stage[m]
				if to, read := stage[i]; made && (!read || from != to) {
					outside[v] = true
				}
			}
		}
	}

	p.portionOf = make(map[int]int)
	first, end := stages[0].Steps[0], 0
	for s := range stage {
		end = max(end, s+1)
	}
	steps := slices.Clone(p.Steps[:first])
	for i := first; i < end; i++ { // what the stages do not make
		if _, ok := stage[i]; !ok {
			steps = append(steps, p.Steps[i])
		}
	}
	for _, g := range stages {
		all := p.Values[p.Steps[g.Steps[0]].Out].Type.Shape[0]
		if all%g.Samples != 0 {
			return fmt.Errorf("machine: device %s divides %d samples into portions of %d", d.Name(), all, g.Samples)
		}
		from := len(steps)
		portions := make(map[int]int)
		for j, i := range g.Steps {
			s := p.Steps[i]
			s.Op, s.In = g.Ops[j], slices.Clone(s.In)
			for k, v := range s.In {
				if _, ok := portions[v]; !ok && slices.Contains(g.In, v) {
					portions[v] = p.portion(v, g.Samples)
					p.portionOf[portions[v]] = v
				}
				if u, ok := portions[v]; ok {
					s.In[k] = u
				}
			}
			out := s.Out
			s.Out = p.portion(out, g.Samples)
			portions[out] = s.Out
			if outside[out] {
				p.portionOf[s.Out] = out
				p.Keep = append(p.Keep, s.Out) // so that groups put it out
			}
			steps = append(steps, s)
		}
		p.loops = append(p.loops, loop{from, len(steps), all / g.Samples})
	}
	p.Steps = append(steps, p.Steps[end:]...)
	p.made()
	return p.checkPortions(d)
}

// portion adds a value for some samples of v.
func (p *program) portion(v, samples int) int {
	x := p.Values[v]
	x.Type.Shape = slices.Clone(x.Type.Shape)
	x.Type.Shape[0] = samples
	p.Values = append(p.Values, device.Value{Name: x.Name, Type: x.Type})
	return len(p.Values) - 1
}

// checkPortions verifies the types of the loops' steps.
func (p *program) checkPortions(d device.Device) error {
	for _, l := range p.loops {
		for _, s := range p.Steps[l.from:l.to] {
			in := make([]op.Type, len(s.In))
			for i, v := range s.In {
				in[i] = p.Values[v].Type
			}
			t, err := s.Op.Infer(in...)
			if want := p.Values[s.Out].Type; err == nil && !t.Equal(want) {
				err = fmt.Errorf("%v gives %v, not %v", s.Op, t, want)
			}
			if err != nil {
				return fmt.Errorf("machine: device %s divides %s: %w", d.Name(), s.Name, err)
			}
		}
	}
	return nil
}

// fromWhole sets the layout and size of a portion that is a part of a value; toWhole does the reverse.
func (p *program) fromWhole(v int) error {
	whole, ok := p.portionOf[v]
	if !ok || p.Values[v].Bytes > 0 {
		return nil
	}
	x, w, n := &p.Values[v], &p.Values[whole], p.times(v)
	if w.Bytes%n != 0 {
		return fmt.Errorf("machine: %s takes %d bytes, which are not %d equal portions", w.Name, w.Bytes, n)
	}
	x.Layout, x.Bytes = w.Layout, w.Bytes/n
	return nil
}

func (p *program) toWhole(v int) {
	if whole, ok := p.portionOf[v]; ok {
		x := p.Values[v]
		p.Values[whole].Layout, p.Values[whole].Bytes = x.Layout, x.Bytes*p.times(v)
	}
}

// times is the number of portions of which v is one.
func (p *program) times(v int) int {
	return p.Values[p.portionOf[v]].Type.Shape[0] / p.Values[v].Type.Shape[0]
}

// taskLoops are the loops as ranges of tasks.
func (p *program) taskLoops(c *Config, tasks []task) ([]loop, error) {
	of := func(step int) int {
		return slices.IndexFunc(p.loops, func(l loop) bool { return l.from <= step && step < l.to })
	}
	loops := make([]loop, len(p.loops))
	for i, t := range tasks {
		n := of(t.steps[0])
		for _, s := range t.steps {
			if of(s) != n {
				return nil, fmt.Errorf("machine: device %s groups %v, of which some are divided otherwise than others",
					c.Device.Name(), t.group)
			}
		}
		if n < 0 {
			continue
		}
		if l := &loops[n]; l.times == 0 {
			*l = loop{i, i + 1, p.loops[n].times}
		} else if l.to == i {
			l.to++
		} else {
			return nil, fmt.Errorf("machine: device %s groups steps so that %v is apart from its portion's others",
				c.Device.Name(), t.group)
		}
	}
	return loops, nil
}
