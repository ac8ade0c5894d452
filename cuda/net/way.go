//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// inTurn lowers steps one by one, or as patterns from one on group them, to run behind each other at once. What only they read lies in the
// workspace, or where a result does that may take its place.
func (d *Device) inTurn(f *lower.Flow, steps []int, from int) (*lowering, error) {
	values := f.Step(steps[0]).Values
	var parts []*lowering
	inside := map[int]int{} // values to places in the workspace
	all := &lowering{}
	place := map[int]int{} // values to those in whose place they lie
	for left := slices.Clone(steps); len(left) > 0; {
		m, ok := d.separate(f, left, from)
		if !ok {
			return nil, lower.Reason("these ops are not run as a group")
		}
		l, err := m.Lower()
		if err == nil {
			err = d.convert(&device.Group{Values: values}, l)
		}
		if err != nil {
			return nil, err
		}
		for _, s := range m.Steps {
			left = slices.DeleteFunc(left, func(x int) bool { return x == s })
		}
		for _, r := range l.Results {
			values[r.Value].Layout, values[r.Value].Bytes = r.Layout, r.Bytes
			all.Results = append(all.Results, lower.Result{Value: r.Value, Layout: r.Layout, Bytes: r.Bytes})
		}
		parts = append(parts, l)
	}
	for i, l := range parts {
		for _, r := range l.Results {
			maker := slices.IndexFunc(steps, func(s int) bool { return f.Step(s).Out == r.Value })
			if maker < 0 {
				continue
			}
			readers := f.Readers(steps[maker])
			if f.Kept(steps[maker]) || len(readers) == 0 || slices.ContainsFunc(readers, func(s int) bool { return !slices.Contains(steps, s) }) {
				continue
			}
			for _, later := range parts[i+1:] {
				for _, x := range later.Results {
					if _, taken := place[r.Value]; !taken && x.Bytes == r.Bytes && slices.Contains(x.Over, r.Value) {
						place[r.Value] = x.Value
					}
				}
			}
			if _, ok := place[r.Value]; !ok {
				inside[r.Value] = all.Workspace
				all.Workspace += align(r.Bytes)
			}
		}
	}
	room := all.Workspace
	for _, l := range parts {
		all.Workspace = max(all.Workspace, room+l.Workspace)
	}
	all.Kernel.bind = func(b *binding) {
		c := *b
		c.spans, c.owner = slices.Clone(b.spans), slices.Clone(b.owner)
		for v, at := range inside {
			if c.spans[v].Bytes() == 0 {
				c.spans[v] = b.work.Span(int64(at), int64(values[v].Bytes))
			}
		}
		for v, other := range place {
			if c.spans[v].Bytes() == 0 {
				c.spans[v] = c.spans[other]
			}
		}
		for _, l := range parts {
			c.narrow, c.work = l.Kernel.narrow, b.work.Span(int64(room), int64(l.Workspace))
			spans := slices.Clone(c.spans)
			c.convert(l.Kernel.moves)
			if c.err == nil {
				l.Kernel.bind(&c)
			}
			c.spans = spans
		}
		b.calls, b.err, b.short = c.calls, c.err, c.short
	}
	return all, nil
}

// separate is the best match of the first of steps, and of others of them, of the patterns from one on.
func (d *Device) separate(f *lower.Flow, steps []int, from int) (best lower.Match[kernel], ok bool) {
	for _, p := range d.rules.Patterns[from:] {
		for _, m := range p(f, steps[0]) {
			if !slices.ContainsFunc(m.Steps, func(s int) bool { return !slices.Contains(steps, s) }) {
				return m, true
			}
		}
	}
	return best, false
}

// A fusion is a graph of cuDNN's that does what steps do, and what comes before and behind it.
type fusion struct {
	steps   []int
	graph   *dnn.Graph
	wide    bool                                                               // others, which are not, may do parts of it
	leaves  *int                                                               // a result that it does not write, and that a fusion takes
	takes   *int                                                               // an operand that it does not read, and that a fusion leaves
	scratch int64                                                              // bytes that bind wants behind the workspace of the graph
	wants   []want                                                             // operands
	outs    []want                                                             // results that the graph writes
	bind    func(b *binding, scratch driver.Span, run func(at ...driver.Span)) // has run called with the graph's places
}

// pair is a fusion that leaves a result out, and one that does without it. Both run, or neither does.
type pair struct {
	ways
	fused bool
}

// ways are the calls of a fusion and those of its steps in turn, both with the state that they change.
type ways struct {
	key             string
	short           bool // memory was too short for the best plans
	fused, separate []func() error
	state           []driver.Span
}

// with are both ways of two groups, one behind the other.
func (w ways) with(v ways) ways {
	return ways{w.key + "; " + v.key, w.short || v.short, slices.Concat(w.fused, v.fused), slices.Concat(w.separate, v.separate), slices.Concat(w.state, v.state)}
}

// call makes calls.
func call(calls []func() error) error {
	for _, c := range calls {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}

// either lowers steps in turn or as a fusion, whichever is faster on the card.
func (d *Device) either(f *lower.Flow, x fusion) (*lowering, error) {
	from := d.fusions
	if x.wide {
		from = d.wide
	}
	l, err := d.inTurn(f, x.steps, from)
	plans := d.plansOf(x.graph)
	if err != nil || plans == nil {
		return l, err
	}
	values := f.Step(x.steps[0]).Values
	own := align(int(plans.Workspace()))
	moved := lowering{Workspace: own + align(int(x.scratch)), Kernel: kernel{narrow: true, wants: x.wants}}
	if err := d.convert(&device.Group{Values: values}, &moved); err != nil {
		return l, nil // operands lie in ways that the graph cannot have
	}
	for _, o := range x.outs { // in the form in which the steps leave them
		if form, ok := d.form(values[o.value].Layout); !ok || form != o.form {
			return l, nil
		}
	}
	room := map[int]int{} // places in the workspace of results that stay inside the group
	for _, i := range x.steps {
		if v := f.Step(i).Out; !f.Kept(i) && slices.ContainsFunc(x.outs, func(o want) bool { return o.value == v }) {
			room[v] = align(moved.Workspace)
			moved.Workspace = room[v] + values[v].Bytes
		}
	}
	inTurn := l.Kernel.bind
	l.Workspace = max(l.Workspace, moved.Workspace)
	l.Kernel.bind = func(b *binding) {
		var partner *pair
		if x.takes != nil {
			partner = d.pairs[b.spans[*x.takes]]
		}
		separate, fused := *b, *b
		separate.calls, fused.calls, separate.short = nil, nil, false
		inTurn(&separate)
		fused.spans, fused.narrow = slices.Clone(b.spans), true
		for v, at := range room {
			fused.spans[v] = b.work.Span(int64(at), int64(values[v].Bytes))
		}
		fused.convert(moved.Kernel.moves)
		if fused.err == nil {
			x.bind(&fused, b.work.Span(int64(own), x.scratch), func(at ...driver.Span) {
				work := b.work.Span(0, int64(own))
				if fused.err == nil {
					fused.err = plans.Settle(at, work)
				}
				fused.calls = append(fused.calls, func() error { return plans.Run(at, work) })
			})
		}
		b.err = separate.err
		if unusable := errors.Is(fused.err, dnn.ErrNoPlan) || errors.Is(fused.err, driver.ErrOutOfMemory); !unusable && b.err == nil {
			b.err = fused.err
		} else if unusable {
			fused.calls = nil
		}
		if b.err != nil {
			return
		}
		w := ways{key: x.graph.String(), short: plans.Short() || d.shortAlone(x.graph) || separate.short, fused: fused.calls, separate: separate.calls}
		for _, i := range x.steps {
			if _, overwrites := f.Step(i).Op.(op.InPlace); overwrites {
				w.state = append(w.state, b.spans[f.Step(i).Out])
			}
		}
		b.short = b.short || w.short
		b.calls = append(b.calls, d.chosen(b, x, w, partner)...)
	}
	return l, nil
}

// plansOf are cuDNN's for a graph, nil where it has none.
func (d *Device) plansOf(g *dnn.Graph) *dnn.Plans {
	key := g.String()
	p, ok := d.graphs[key]
	if !ok {
		o := d.planning()
		o.Later = true
		var err error
		p, err = d.dnn.NewPlans(g, o)
		if errors.Is(err, driver.ErrOutOfMemory) { // another net may find some
			return nil
		}
		if err != nil { // one that matters shows elsewhere
			p = nil
		}
		d.graphs[key] = p
	}
	return p
}

// chosen are the calls of the faster way. Where a fusion leaves a result out the choice is made later, when the one is bound that takes it.
func (d *Device) chosen(b *binding, x fusion, w ways, partner *pair) []func() error {
	if x.leaves != nil {
		delete(d.pairs, b.spans[*x.leaves]) // of a program whose other half was never bound
	}
	if w.fused == nil || x.takes != nil && partner == nil {
		return w.separate
	}
	if x.leaves != nil {
		p := &pair{ways: w}
		d.pairs[b.spans[*x.leaves]] = p
		return []func() error{func() error {
			if p.fused {
				return call(p.ways.fused)
			}
			return call(p.separate)
		}}
	}
	both := w
	if partner != nil {
		both = partner.with(w)
	}
	better, err := d.faster(x.graph.Name, &both)
	if err != nil {
		b.err = err
	}
	b.short = b.short || both.short
	if !better {
		return w.separate
	}
	if partner != nil {
		partner.fused = true
	}
	return w.fused
}

// shortAlone says whether the convolution of a graph had too little memory for the best plan by itself.
func (d *Device) shortAlone(g *dnn.Graph) bool {
	alone, ok := d.convs[convKey{g.Kind(), g.Shape()}]
	return ok && alone.Short()
}

// faster says whether fusions with what belongs to them take less time than the separate calls. It is found out once, and kept, unless memory
// was too short for the best plan of either, or for this, which w says then, or the fusions fail. State that the calls change stays what it is.
func (d *Device) faster(name string, w *ways) (better bool, err error) {
	if d.opts.Fuse == FuseAlways {
		return true, nil
	}
	key := d.noteOf(w.key)
	if better, ok := d.better[key]; ok {
		return better, nil
	}
	if kept, ok := d.dnn.Kept(key); ok && (kept == "fused" || kept == "separate") {
		d.better[key] = kept == "fused"
		return d.better[key], nil
	}
	var failed error
	err = d.preserving(w.state, func() error {
		two, err := d.dnn.Time(func() error { return call(w.separate) })
		if err != nil {
			return err
		}
		one, err := d.dnn.Time(func() error { return call(w.fused) })
		if errors.Is(err, driver.ErrLost) {
			return err
		}
		failed, better = err, err == nil && one < two
		return nil
	})
	if errors.Is(err, errUnsaved) || err == nil && errors.Is(failed, driver.ErrOutOfMemory) { // there may be room for it later
		w.short = true
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("timing %s: %w", name, err)
	}
	d.better[key] = better
	if !w.short && failed == nil {
		d.dnn.Keep(key, map[bool]string{true: "fused", false: "separate"}[better])
	}
	return better, nil
}

// noteOf names the choice between graphs and separate calls with all that it may depend on, but the card and cuDNN.
func (d *Device) noteOf(graphs string) string {
	return fmt.Sprintf("fused or not, with at most %d bytes of scratch and kernels %s: %s", d.planning().Workspace, kernels.Digest(), graphs)
}

// errUnsaved says that there is no memory for a copy of state.
var errUnsaved = errors.New("no memory for a copy of what is changed")

// preserving runs f on the owner thread, and puts back what was in memory before, whatever f gives. Without room for that it is errUnsaved, and f does
// not run.
func (d *Device) preserving(state []driver.Span, f func() error) error {
	return d.c.Do(func() (err error) {
		before := make([]*driver.Memory, len(state))
		defer func() {
			for _, m := range before {
				if m != nil {
					err = errors.Join(err, m.Close())
				}
			}
		}()
		for i, s := range state {
			if before[i], err = d.c.AllocApart(s.Bytes()); errors.Is(err, driver.ErrOutOfMemory) {
				return errUnsaved
			}
			if err != nil {
				return err
			}
			if err := d.stream.Copy(before[i].All(), s); err != nil {
				return err
			}
		}
		err = f()
		for i, s := range state {
			if errors.Is(err, driver.ErrLost) {
				break
			}
			err = errors.Join(err, d.stream.Copy(s, before[i].All()))
		}
		return err
	})
}
