package profile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// Rest is the kind of what no kernel does: the wait for a batch, pixels and labels that go to the device, scores that come back.
const Rest = "other"

// Kinds adds up the times of kinds of ops, step by step. The zero value is ready.
type Kinds struct {
	Steps []float64 // seconds of each
	Waits []float64 // of them, for a batch

	kinds  []*kind // in the order in which they first ran
	byName map[string]*kind
	groups map[*device.Group]*cost
}

// kind is all groups of the same ops.
type kind struct {
	name  string
	now   tally   // of the step under way
	steps []tally // of each
}

type tally struct {
	calls        int
	flops, bytes int64
	took         time.Duration
}

// seconds are those of steps.
func seconds(steps []tally) []float64 {
	return each(steps, func(t tally) float64 { return t.took.Seconds() })
}

func each(steps []tally, of func(tally) float64) []float64 {
	list := make([]float64, len(steps))
	for i, t := range steps {
		list[i] = of(t)
	}
	return list
}

// cost is what is known of a group once it has run.
type cost struct {
	name         string // of its ops
	layer        string // the first of its steps
	flops, bytes int64
}

// Group enters a group of ops of the step under way.
func (k *Kinds) Group(g *device.Group, took time.Duration) { k.group(g, took) }

// group is Group with what is known of it.
func (k *Kinds) group(g *device.Group, took time.Duration) *cost {
	c := k.groups[g]
	if c == nil {
		c = costOf(g)
		if k.groups == nil {
			k.groups = map[*device.Group]*cost{}
		}
		k.groups[g] = c
	}
	k.Add(c.name, took, c.flops, c.bytes)
	return c
}

// Update enters a step of an optimiser over a number of bytes of parameters.
func (k *Kinds) Update(o device.Optimizer, params int, took time.Duration) {
	k.Add(o.Name(), took, 0, int64(streams(o)*params))
}

// Add enters a part of the step under way, with the operations of its products and the bytes that it has to move.
func (k *Kinds) Add(name string, took time.Duration, flops, bytes int64) {
	x := k.byName[name]
	if x == nil {
		if k.byName == nil {
			k.byName = map[string]*kind{}
		}
		x = &kind{name: name}
		k.byName[name] = x
		k.kinds = append(k.kinds, x)
	}
	x.now.calls++
	x.now.took += took
	x.now.flops += flops
	x.now.bytes += bytes
}

// Step ends a step that took so long, and waited so much of that for its batch.
func (k *Kinds) Step(took, waited time.Duration) {
	k.Steps, k.Waits = append(k.Steps, took.Seconds()), append(k.Waits, waited.Seconds())
	left := took
	for _, x := range k.kinds {
		left -= x.now.took
	}
	k.Add(Rest, max(0, left), 0, 0)
	for _, x := range k.kinds {
		for len(x.steps) < len(k.Steps)-1 { // it was in none of the steps before
			x.steps = append(x.steps, tally{})
		}
		x.steps, x.now = append(x.steps, x.now), tally{}
	}
}

// Forget drops the steps so far.
func (k *Kinds) Forget() {
	k.Steps, k.Waits = nil, nil
	for _, x := range k.kinds {
		x.steps = nil
	}
}

// Seconds are those of a kind in each step.
func (k *Kinds) Seconds(name string) []float64 {
	if x := k.byName[name]; x != nil {
		return seconds(x.steps)
	}
	return nil
}

// Sum lists the kinds, the longest first, and all that have products as one, beside limits in operations and bytes a second, 0 where they are not known.
func (k *Kinds) Sum(peak, triad float64) (list []Kind, products Kind) {
	all := make([]tally, len(k.Steps)) // of products
	total := sum(k.Steps)
	for _, x := range k.kinds {
		list = append(list, newKind(x.name, x.steps, total, peak, triad))
		if !slices.ContainsFunc(x.steps, func(t tally) bool { return t.flops > 0 }) {
			continue
		}
		for i, t := range x.steps {
			all[i].calls += t.calls
			all[i].flops += t.flops
			all[i].took += t.took
		}
	}
	slices.SortStableFunc(list, func(a, b Kind) int { return cmp.Compare(b.Share, a.Share) })
	products = newKind("all products", all, total, peak, triad)
	products.OfRoofline = 0
	if products.Seconds > 0 { // the times that the limits allow each kind, over the time taken
		for _, x := range list {
			if x.GFLOP > 0 {
				products.OfRoofline += x.OfRoofline * x.Seconds / products.Seconds
			}
		}
	}
	return list, products
}

// costOf names a group by its ops and counts the operations of its products and the bytes it cannot avoid: what its ops
// need of each of its inputs read once, each output written once. A view that the device need not move costs nothing.
func costOf(g *device.Group) *cost {
	c := &cost{layer: layerOf(g)}
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

// layerOf is the layer of a group's first step, but for a sum of gradients where branches meet.
func layerOf(g *device.Group) string {
	for _, s := range g.Steps {
		if s.Name != "sum" {
			return s.Name
		}
	}
	return g.Steps[0].Name
}

// streams is how often a step of an optimiser goes through the parameters or a vector of their size: a pass reads the vectors that its
// expressions do, and writes those that they give. A limit on the gradient's norm reads it once more.
func streams(o device.Optimizer) (n int) {
	for _, p := range o.Passes() {
		nodes, _, to := p.Nodes()
		for _, x := range nodes {
			if x.Kind == expr.KindArg && x.Index < update.Vectors {
				n++
			}
		}
		for _, at := range to {
			if at < update.Vectors {
				n++
			}
		}
	}
	if l, ok := o.(device.Limited); ok && l.MaxNorm() > 0 {
		n++
	}
	return n
}
