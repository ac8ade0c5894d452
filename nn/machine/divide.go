package machine

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
)

// loop is a range of steps or of tasks that runs several times, each time for the next samples.
type loop struct{ from, to, times int }

// divide has the steps of a device's stages run for a portion of the samples at a time: their values are portions.
// p.portionOf lists those that lead into a stage or out of it, which are parts of values with all samples.
func (p *program) divide(d device.Divider) error {
	stages := d.Divide(&p.Program)
	if len(stages) == 0 {
		return nil
	}
	stage := slices.Repeat([]int{none}, len(p.Steps)) // by step
	end := 0                                          // of the last stage
	for i, g := range stages {
		if err := p.checkStage(d, g); err != nil {
			return err
		}
		for _, s := range g.Steps {
			stage[s], end = i, max(end, s+1)
		}
	}
	maker := p.makers()
	madeIn := func(v int) int { // the stage that makes v
		if m := maker[v]; m >= 0 {
			return stage[m]
		}
		return none
	}
	outside := make(map[int]bool) // results of stages that are read elsewhere
	for _, v := range p.Keep {
		outside[v] = true
	}
	for i, s := range p.Steps {
		for _, v := range s.In {
			from := madeIn(v)
			if from != none && stage[i] == none && i < end {
				return fmt.Errorf("machine: device %s divides %s, whose result is read by %s between stages", d.Name(),
					p.Steps[maker[v]].Name, s.Name)
			}
			if from != none && from != stage[i] {
				outside[v] = true
			}
		}
	}

	p.portionOf, p.handed = make(map[int]int), make(map[int]bool)
	var steps []device.Step
	for i, s := range p.Steps[:end] {
		if stage[i] == none {
			steps = append(steps, s)
		}
	}
	for _, g := range stages {
		from := len(steps)
		portions := make(map[int]int)
		for _, v := range g.In {
			portions[v] = p.portion(v, g.Samples)
			p.portionOf[portions[v]] = v
		}
		for j, i := range g.Steps {
			s := p.Steps[i]
			s.Op, s.In = g.Ops[j], slices.Clone(s.In)
			for k, v := range s.In {
				if maker[v] >= 0 && madeIn(v) == none {
					p.handOn(v)
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
		p.loops = append(p.loops, loop{from, len(steps), p.samples(g) / g.Samples})
	}
	p.Steps = append(steps, p.Steps[end:]...)
	p.made()
	return nil
}

const none = -1 // no stage

// samples is the number of all samples of a stage.
func (p *program) samples(g device.Stage) int { return p.Values[p.Steps[g.Steps[0]].Out].Type.Shape[0] }

// checkStage verifies the samples of a stage. The device checks the types of its groups.
func (p *program) checkStage(d device.Device, g device.Stage) error {
	if len(g.Steps) == 0 || len(g.Ops) != len(g.Steps) || g.Samples < 1 {
		return fmt.Errorf("machine: device %s divides %d steps for %d samples, with %d ops", d.Name(), len(g.Steps),
			g.Samples, len(g.Ops))
	}
	var values []int
	for _, s := range g.Steps {
		values = append(values, p.Steps[s].Out)
	}
	for _, v := range append(values, g.In...) {
		t := p.Values[v].Type
		if len(t.Shape) == 0 || t.Shape[0]%g.Samples != 0 || t.Shape[0] != p.samples(g) {
			return fmt.Errorf("machine: device %s divides %s, %v, into portions of %d samples", d.Name(), p.Values[v].Name,
				t, g.Samples)
		}
	}
	return nil
}

// handOn has the group that makes v put it out, for a stage or for others behind one, without keeping it.
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
	p.Values = append(p.Values, device.Value{Name: x.Name, Type: x.Type, Narrow: x.Narrow})
	return len(p.Values) - 1
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

// times is the number of portions in the value that v is a portion of.
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
