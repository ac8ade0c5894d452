package bench

import (
	"cmp"
	"strings"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// rest is the kind of what no kernel does: the wait for a batch, pixels and labels that go to the device, scores that come back.
const rest = "other"

// profile adds up the times of kinds of ops, step by step.
type profile struct {
	kinds  []*kind // in the order in which they first ran
	byName map[string]*kind
	groups map[*device.Group]*cost
	steps  []float64 // seconds
	waits  []float64 // of them, for a batch
}

// kind is all groups of the same ops.
type kind struct {
	name    string
	now     tally     // of the step under way
	last    tally     // of the last step
	seconds []float64 // of each step
}

type tally struct {
	calls        int
	flops, bytes int64
	took         time.Duration
}

// cost is what is known of a group once it has run.
type cost struct {
	name         string
	flops, bytes int64
}

// group is the machine's tracer.
func (p *profile) group(g *device.Group, took time.Duration) {
	c := p.groups[g]
	if c == nil {
		c = costOf(g)
		if p.groups == nil {
			p.groups = map[*device.Group]*cost{}
		}
		p.groups[g] = c
	}
	p.add(c.name, took, c.flops, c.bytes)
}

// add enters a part of the step under way.
func (p *profile) add(name string, took time.Duration, flops, bytes int64) {
	k := p.byName[name]
	if k == nil {
		if p.byName == nil {
			p.byName = map[string]*kind{}
		}
		k = &kind{name: name}
		p.byName[name] = k
		p.kinds = append(p.kinds, k)
	}
	k.now.calls++
	k.now.took += took
	k.now.flops += flops
	k.now.bytes += bytes
}

// step ends a step that took so long, and waited so much of that for its batch.
func (p *profile) step(took, waited time.Duration) {
	p.steps, p.waits = append(p.steps, took.Seconds()), append(p.waits, waited.Seconds())
	left := took
	for _, k := range p.kinds {
		left -= k.now.took
	}
	p.add(rest, max(0, left), 0, 0)
	for _, k := range p.kinds {
		k.seconds = append(k.seconds, k.now.took.Seconds())
		k.last, k.now = k.now, tally{}
	}
}

// forget drops the steps so far.
func (p *profile) forget() {
	p.steps, p.waits = nil, nil
	for _, k := range p.kinds {
		k.seconds = nil
	}
}

// costOf names a group by its ops and counts the operations of its products and the bytes it cannot avoid: what its ops
// need of each of its inputs read once, each output written once. A view that the device need not move costs nothing.
func costOf(g *device.Group) *cost {
	c := &cost{}
	var names []string
	view := true
	needed := make([]float64, len(g.Values)) // the share of a value that its readers need
	for _, v := range g.Outputs {
		needed[v] = 1
	}
	for _, s := range g.Steps {
		names = append(names, s.Op.Kind())
		in := make([]op.Type, len(s.In))
		for i, v := range s.In {
			in[i] = g.Values[v].Type
		}
		if n, err := op.FLOPs(s.Op, in...); err == nil { // the machine has inferred the types already
			c.flops += n
		}
		if reads, err := op.Reads(s.Op, in...); err == nil {
			for i, v := range s.In {
				needed[v] = max(needed[v], float64(reads[i])/float64(in[i].Shape.Size()))
			}
		}
		_, ok := s.Op.(op.View)
		view = view && ok && g.Values[s.In[0]].Layout == g.Values[s.Out].Layout
	}
	c.name = strings.Join(names, " + ")
	if view {
		return c
	}
	for _, list := range [][]int{g.Inputs, g.Outputs} {
		for _, v := range list {
			c.bytes += int64(needed[v] * float64(cmp.Or(g.Values[v].Bytes, g.Values[v].Type.Bytes())))
		}
	}
	return c
}
