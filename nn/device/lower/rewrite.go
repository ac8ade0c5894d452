package lower

import (
	"slices"

	"onlinerna/nn/device"
)

// Forward moves step i of a program to directly after the last step that makes one of its operands, and returns its
// new index. Only an op.InPlace may overwrite its operands, and that runs after all other readers.
func Forward(p *device.Program, i int) int {
	s := p.Steps[i]
	to := i
	for to > 0 && !slices.Contains(s.In, p.Steps[to-1].Out) {
		to--
	}
	p.Steps = slices.Insert(slices.Delete(p.Steps, i, i+1), to, s)
	return to
}

// Repeat inserts copies of steps, in execution order, before step before. A copy of a step that reads another's
// result reads the copied result. Repeat returns the result of the last copy.
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
