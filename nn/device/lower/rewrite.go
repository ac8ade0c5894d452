package lower

import (
	"slices"

	"onlinerna/nn/device"
)

// Forward moves step i of a program to directly behind the last step that makes one of its operands, and returns its
// new index. Nobody but an op.InPlace may overwrite what it reads, and that runs behind all other readers.
func Forward(p *device.Program, i int) int {
	s := p.Steps[i]
	to := i
	for to > 0 && !slices.Contains(s.In, p.Steps[to-1].Out) {
		to--
	}
	p.Steps = slices.Insert(slices.Delete(p.Steps, i, i+1), to, s)
	return to
}

// Repeat puts copies of steps, in execution order, in front of step before. Where one reads what another makes so do
// the copies. It returns the value that the last copy makes.
func Repeat(p *device.Program, before int, steps ...int) int {
	made := map[int]int{}
	copies := make([]device.Step, len(steps))
	for i, at := range steps {
		s := p.Steps[at]
		s.In = slices.Clone(s.In)
		for j, v := range s.In {
			if again, ok := made[v]; ok {
				s.In[j] = again
			}
		}
		again := len(p.Values)
		p.Values = append(p.Values, p.Values[s.Out])
		made[s.Out], s.Out = again, again
		copies[i] = s
	}
	p.Steps = slices.Insert(p.Steps, before, copies...)
	return copies[len(copies)-1].Out
}
