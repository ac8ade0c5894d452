// Package portion has the first layers of a net run for a few samples at a time in evaluation: a layer then finds the
// results of the one before it in a cache. Later layers, whose images are small, run for all samples: their products
// then have many rows.
package portion

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/product"
	"onlinerna/nn/op"
)

// leastPortions is the number of portions from which on they pay.
const leastPortions = 3

// Divide lists the stages of p: from its first convolution on, the steps that treat each sample by itself, cut where
// another number of samples fits. An op's operands and result have about the given number of elements at most for the
// samples that run at a time. A program that trains has no stages, as its backward pass reads most results again. Bits
// do not depend on the stages.
func Divide(p *device.Program, elements int) []device.Stage {
	d := &division{Program: p, elements: elements, inside: make([]bool, len(p.Values)), last: make([]int, len(p.Values))}
	first := 0
	for first < len(p.Steps) && !d.isConv(first) {
		first++
	}
	if first == len(p.Steps) || slices.ContainsFunc(p.Steps, func(s device.Step) bool {
		_, ok := s.Op.(op.InPlace)
		return ok
	}) {
		return nil
	}
	source := p.Steps[first].In[0]
	d.samples, d.inside[source] = p.Values[source].Type.Shape[0], true
	for i, s := range p.Steps {
		for _, v := range s.In {
			d.last[v] = i
		}
	}
	steps := d.divisible(first)
	if !slices.ContainsFunc(steps[min(1, len(steps)):], d.isConv) { // a single layer has no one to hand results to
		return nil
	}
	var stages []device.Stage
	for _, g := range d.stages(steps, source) {
		if g.samples == d.samples {
			break // the later ones have as many
		}
		stages = append(stages, d.stage(g))
	}
	return stages
}

// division is the state of Divide.
type division struct {
	*device.Program
	samples, elements int
	inside            []bool // by value: it has all samples, and is divided
	last              []int  // by value: the last step that reads it
}

// isConv reports whether a step is a convolution.
func (d *division) isConv(step int) bool {
	_, ok := d.Steps[step].Op.(op.Conv2D)
	return ok
}

// divisible lists the steps from first on that can be divided, up to the first that reads one of their results and
// cannot.
func (d *division) divisible(first int) (steps []int) {
	for i := first; i < len(d.Steps); i++ {
		s := d.Steps[i]
		if !slices.ContainsFunc(s.In, func(v int) bool { return d.inside[v] }) {
			continue
		}
		if _, ok := d.portion(s, d.samples); !ok {
			return steps
		}
		d.inside[s.Out] = true
		steps = append(steps, i)
	}
	return steps
}

// portion is a step's op for n samples. It is not ok if the op does not treat each sample by itself.
func (d *division) portion(s device.Step, n int) (o op.Op, ok bool) {
	if shape := d.Values[s.Out].Type.Shape; len(shape) == 0 || shape[0] != d.samples || !d.operands(s) {
		return nil, false
	}
	switch t := s.Op.(type) {
	case op.Conv2D, op.Map, op.Add, op.ReLU, op.GlobalAvgPool, op.MaxPool, op.AvgPool, op.Shortcut, op.Concat:
		return t, true
	case op.BatchNorm:
		return t, t.Fixed
	case op.Permute:
		return t, t.Axes[0] == 0
	case op.Slice:
		return op.Slice{From: t.From, To: withFirst(n, t.To)}, true
	case op.Reshape:
		return op.Reshape{Shape: withFirst(n, t.Shape)}, true
	}
	return nil, false
}

// withFirst is a shape, or an end, with another first extent.
func withFirst(n int, s []int) []int {
	s = slices.Clone(s)
	s[0] = n
	return s
}

// operands reports whether each operand of a step has all samples or is the same for all.
func (d *division) operands(s device.Step) bool {
	var weights []int
	if w, ok := s.Op.(op.Weighted); ok {
		weights = w.Weights()
	}
	_, mapped := s.Op.(op.Map)
	for i, v := range s.In {
		t := d.Values[v].Type
		if mapped && d.inside[v] && len(t.Shape) != len(d.Values[s.Out].Type.Shape) { // a vector is one of channels
			return false
		}
		if !d.inside[v] && !slices.Contains(weights, i) && (len(t.Shape) == 0 || t.Shape[0] != 1) {
			return false
		}
	}
	return true
}

// stage is consecutive steps that run for the same number of samples at a time.
type stage struct {
	steps   []int
	samples int
}

// stages cuts steps where a single value is handed on, so that the first stages have the fewest samples.
func (d *division) stages(steps []int, source int) []stage {
	var parts []stage
	from := 0
	for i := range steps {
		end := i+1 == len(steps) || !elementwise(d.Steps[steps[i+1]].Op)
		if end && d.handedOn(source, steps, i) <= 1 {
			parts = append(parts, stage{steps[from : i+1], d.fitting(steps[from : i+1])})
			from = i + 1
		}
	}
	for i := len(parts) - 2; i >= 0; i-- {
		parts[i].samples = min(parts[i].samples, parts[i+1].samples)
	}
	var stages []stage
	for len(parts) > 0 {
		next := stage{parts[0].steps, d.chosen(parts[0].steps, parts[0].samples)}
		parts = parts[1:]
		for len(parts) > 0 {
			n := d.joined(next, parts)
			if n == 0 {
				break
			}
			for _, p := range parts[:n] { // its steps lie behind those of next
				next.steps = next.steps[:len(next.steps)+len(p.steps)]
			}
			parts = parts[n:]
		}
		stages = append(stages, next)
	}
	return stages
}

// joined is the number of parts that join the stage before them: one that has the same number of samples, or the next
// one or two if the stage then ends at a smaller value, as all of that value has to be stored.
func (d *division) joined(g stage, parts []stage) int {
	if d.chosen(parts[0].steps, parts[0].samples) == g.samples {
		return 1
	}
	const few = 2
	for i, p := range parts[:min(few, len(parts))] {
		if d.chosen(p.steps, g.samples) != g.samples {
			break
		}
		if d.result(p.steps) < d.result(g.steps) {
			return i + 1
		}
	}
	return 0
}

// result is the number of elements of the last step's result.
func (d *division) result(steps []int) int {
	return d.Values[d.Steps[steps[len(steps)-1]].Out].Type.Shape.Size()
}

// elementwise reports whether an op may run in place, or within the kernel of a product.
func elementwise(o op.Op) bool {
	switch o.(type) {
	case op.Map, op.Add, op.ReLU, op.BatchNorm:
		return true
	}
	return false
}

// handedOn counts the values that steps behind steps[i] read.
func (d *division) handedOn(source int, steps []int, i int) int {
	n := 0
	if d.last[source] > steps[i] {
		n++
	}
	for _, s := range steps[:i+1] {
		if d.last[d.Steps[s].Out] > steps[i] {
			n++
		}
	}
	return n
}

// fitting is the number of samples whose operands and results fit.
func (d *division) fitting(steps []int) int {
	most := 1
	for _, i := range steps {
		s := d.Steps[i]
		n := 0
		if !elementwise(s.Op) {
			n = d.Values[s.Out].Type.Shape.Size()
		}
		for _, v := range s.In {
			if d.inside[v] {
				n += d.Values[v].Type.Shape.Size()
			}
		}
		most = max(most, n/d.samples)
	}
	return max(1, d.elements/most)
}

// chosen is the largest divisor of the number of samples up to fitting. It is all samples if that divisor is at most
// half of fitting, makes too few portions or changes bits.
func (d *division) chosen(steps []int, fitting int) int {
	n := min(fitting, d.samples)
	for d.samples%n != 0 {
		n--
	}
	if d.samples < leastPortions*n || 2*n <= fitting {
		return d.samples
	}
	for _, i := range steps {
		s := d.Steps[i]
		if o, ok := s.Op.(op.Conv2D); ok &&
			!product.SameWay(o, d.samples, n, d.Values[s.In[1]].Type.Shape, d.Values[s.Out].Type.Shape) {
			return d.samples
		}
	}
	return n
}

// stage is a stage with its ops for some samples.
func (d *division) stage(g stage) device.Stage {
	list := device.Stage{Steps: g.steps, Samples: g.samples}
	made := map[int]bool{}
	for _, i := range g.steps {
		s := d.Steps[i]
		o, _ := d.portion(s, g.samples)
		list.Ops = append(list.Ops, o)
		for _, v := range s.In {
			if d.inside[v] && !made[v] && !slices.Contains(list.In, v) {
				list.In = append(list.In, v)
			}
		}
		made[s.Out] = true
	}
	return list
}
