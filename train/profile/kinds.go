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

// Rest is the kind of all time outside kernels: waiting for a batch, copying pixels and labels to the device, reading
// scores.
const Rest = "other"

// Kinds sums the times of kinds of ops, step by step. The zero value is ready to use.
type Kinds struct {
	Steps []float64 // seconds of each
	Waits []float64 // seconds of each spent waiting for a batch

	kinds  []*kind // in the order of their first run
	byName map[string]*kind
	groups map[*device.Group]*cost
}

// kind is all groups with the same ops.
type kind struct {
	name  string
	now   tally   // of the current step
	steps []tally // of each step
}

type tally struct {
	calls        int
	flops, bytes int64
	took         time.Duration
}

// seconds lists the times of steps.
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

// cost is a group's cost, known after its first run.
type cost struct {
	name         string // of its ops
	layer        string // of its first step
	flops, bytes int64
}

// Group records a group of ops in the current step.
func (k *Kinds) Group(g *device.Group, took time.Duration) { k.group(g, took) }

// group is Group and returns the group's cost.
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

// Update records an optimiser's step over the given number of bytes of parameters.
func (k *Kinds) Update(o device.Optimizer, params int, took time.Duration) {
	k.Add(o.Name(), took, 0, int64(streams(o)*params))
}

// Add records a part of the current step, with its FLOPs and the bytes that it has to move.
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

// Step ends a step that took the time took, waited of it for its batch.
func (k *Kinds) Step(took, waited time.Duration) {
	k.Steps, k.Waits = append(k.Steps, took.Seconds()), append(k.Waits, waited.Seconds())
	left := took
	for _, x := range k.kinds {
		left -= x.now.took
	}
	k.Add(Rest, max(0, left), 0, 0)
	for _, x := range k.kinds {
		for len(x.steps) < len(k.Steps)-1 { // it ran in none of the earlier steps
			x.steps = append(x.steps, tally{})
		}
		x.steps, x.now = append(x.steps, x.now), tally{}
	}
}

// Forget drops all steps so far.
func (k *Kinds) Forget() {
	k.Steps, k.Waits = nil, nil
	for _, x := range k.kinds {
		x.steps = nil
	}
}

// Seconds lists a kind's time in each step.
func (k *Kinds) Seconds(name string) []float64 {
	if x := k.byName[name]; x != nil {
		return seconds(x.steps)
	}
	return nil
}

// Sum lists the kinds, the longest first, and all kinds with products as one. peak and triad are the limits in FLOP/s
// and bytes/s, 0 if unknown.
func (k *Kinds) Sum(peak, triad float64) (list []Kind, products Kind) {
	all := make([]tally, len(k.Steps)) // of kinds with products
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
	if products.Seconds > 0 { // the time that the limits allow for each kind, over the time taken
		for _, x := range list {
			if x.GFLOP > 0 {
				products.OfRoofline += x.OfRoofline * x.Seconds / products.Seconds
			}
		}
	}
	return list, products
}

// costOf names a group by its ops and counts the FLOPs of its products and its minimum bytes: each op's needed part of
// an input read once, each output written once. A view that moves no data costs nothing.
func costOf(g *device.Group) *cost {
	c := &cost{layer: layerOf(g)}
	var names []string
	view := true
	needed := make([]float64, len(g.Values)) // the part of each value that its readers need
	for _, v := range g.Outputs {
		needed[v] = 1
	}
	for _, s := range g.Steps {
		names = append(names, s.Op.Kind())
		in := make([]op.Type, len(s.In))
		for i, v := range s.In {
			in[i] = g.Values[v].Type
		}
		if n, err := op.FLOPs(s.Op, in...); err == nil { // the machine has already checked the types
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

// layerOf is the layer of a group's first step, skipping sums of gradients at branches.
func layerOf(g *device.Group) string {
	for _, s := range g.Steps {
		if s.Name != "sum" {
			return s.Name
		}
	}
	return g.Steps[0].Name
}

// streams counts an optimiser step's reads and writes of vectors as long as the parameters: a pass reads the vectors in
// its expressions and writes their results. A gradient-norm limit reads the gradient once more.
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
