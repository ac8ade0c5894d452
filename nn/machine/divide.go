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

	p.portionOf, p.handed = make(map[int]int), make(map[int]bool)
	first, end := stages[0].Steps[0], 0
	for s := range stage {
		end = max(end, s+1)
	}
	steps := slices.Clone(p.Steps[:first])
	for i := first; i < end; i++ { // what the stages do not make
		if _, ok := stage[i]; ok {
			continue
		}
		for _, v := range p.Steps[i].In {
			if m := maker[v]; m >= first {
				if _, made := stage[m]; made {
					return fmt.Errorf("machine: device %s divides %s, whose result is read by %s between stages", d.Name(),
						p.Steps[m].Name, p.Steps[i].Name)
				}
			}
		}
		steps = append(steps, p.Steps[i])
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
			for _, v := range append(slices.Clone(g.In), s.Out) {
				if shape := p.Values[v].Type.Shape; len(shape) == 0 || shape[0] != all {
					return fmt.Errorf("machine: device %s divides %s, %v, which does not have %d samples", d.Name(),
						p.Values[v].Name, p.Values[v].Type, all)
				}
			}
			for k, v := range s.In {
				if m := maker[v]; m >= 0 {
					if _, made := stage[m]; !made {
						p.handOn(v)
					}
				}
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
				p.handOn(s.Out)
			}
			steps = append(steps, s)
		}
		p.loops = append(p.loops, loop{from, len(steps), all / g.Samples})
	}
	p.Steps = append(steps, p.Steps[end:]...)
	p.made()
	return p.checkPortions(d)
}

// handOn has groups put v out, which a stage's kernels read or others read behind the stage, although it is not kept.
func (p *program) handOn(v int) {
	if !slices.Contains(p.Keep, v) {
		p.Keep = append(p.Keep, v)
		p.handed[v] = true
	}
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

// straddles reports whether the start or the end of a loop lies between steps of a group.
func (p *program) straddles(group []int) bool {
	if len(group) == 0 {
		return false
	}
	first, last := group[0], group[len(group)-1]
	return slices.ContainsFunc(p.loops, func(l loop) bool {
		return first < l.from && l.from <= last || first < l.to && l.to <= last
	})
}

// taskLoops are the loops as ranges of tasks. No group straddles their ends, so the tasks of a loop are neighbours.
func (p *program) taskLoops(tasks []task) []loop {
	var loops []loop
	for _, l := range p.loops {
		in := func(t task) bool { return l.from <= t.steps[0] && t.steps[0] < l.to }
		from := slices.IndexFunc(tasks, in)
		to := from
		for to < len(tasks) && in(tasks[to]) {
			to++
		}
		loops = append(loops, loop{from, to, l.times})
	}
	return loops
}
