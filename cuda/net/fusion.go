//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// sequence lowers steps one by one, or in groups without fusions, to run one after another. Values that only these
// steps read are stored in the workspace, or in the place of a result that may overwrite them.
func (d *Device) sequence(f *lower.Flow, steps []int) (*lowering, error) {
	values := f.Step(steps[0]).Values
	var parts []*lowering
	inside := map[int]int{} // offsets in the workspace, by value
	all := &lowering{}
	place := map[int]int{} // by value, the other value whose place it shares
	for left := slices.Clone(steps); len(left) > 0; {
		m, ok := d.separate(f, left)
		if !ok {
			return nil, lower.Reason("no kernel runs these ops as a group")
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
			if f.Kept(steps[maker]) || len(readers) == 0 || slices.ContainsFunc(readers,
				func(s int) bool { return !slices.Contains(steps, s) }) {
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
		b.calls, b.err = c.calls, c.err
	}
	return all, nil
}

// separate is the best match, within steps, of the first of them and the patterns that are no fusions.
func (d *Device) separate(f *lower.Flow, steps []int) (best lower.Match[kernel], ok bool) {
	for _, p := range d.rules.Patterns[d.fusions:] {
		for _, m := range p(f, steps[0]) {
			if !slices.ContainsFunc(m.Steps, func(s int) bool { return !slices.Contains(steps, s) }) {
				return m, true
			}
		}
	}
	return best, false
}

// A fusion is a graph of cuDNN for some steps, with the kernels that must run before and after it.
type fusion struct {
	steps []int
	graph *dnn.Graph
	// bytes that bind needs after the graph's workspace
	scratch int64
	wants   []want                                                             // operands
	outs    []want                                                             // results that the graph writes
	bind    func(b *binding, scratch driver.Span, run func(at ...driver.Span)) // calls run with the graph's places
}

// choice holds the calls of a fusion and of its separate steps, and the state that both change.
type choice struct {
	key             string
	short           bool // memory was too short for the best plans
	fused, separate []func() error
	state           []driver.Span
}

// call runs calls until one fails.
func call(calls []func() error) error {
	for _, c := range calls {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}

// either lowers steps as a sequence or as a fusion, whichever is faster on the card.
func (d *Device) either(f *lower.Flow, x fusion) (*lowering, error) {
	l, err := d.sequence(f, x.steps)
	plans := d.plansOf(x.graph)
	if err != nil || plans == nil {
		return l, err
	}
	values := f.Step(x.steps[0]).Values
	own := align(int(plans.Workspace()))
	moved := lowering{Workspace: own + align(int(x.scratch)), Kernel: kernel{narrow: true, wants: x.wants}}
	if err := d.convert(&device.Group{Values: values}, &moved); err != nil {
		return l, nil // an operand's form does not suit the graph
	}
	for _, o := range x.outs { // the graph's results must have the steps' forms
		if form, ok := d.form(values[o.value].Layout); !ok || form != o.form {
			return l, nil
		}
	}
	room := map[int]int{} // workspace offsets of results that stay inside the group
	for _, i := range x.steps {
		if v := f.Step(i).Out; !f.Kept(i) && slices.ContainsFunc(x.outs, func(o want) bool { return o.value == v }) {
			room[v] = align(moved.Workspace)
			moved.Workspace = room[v] + values[v].Bytes
		}
	}
	sequence := l.Kernel.bind
	l.Workspace = max(l.Workspace, moved.Workspace)
	l.Kernel.bind = func(b *binding) {
		separate, fused := *b, *b
		separate.calls, fused.calls = nil, nil
		sequence(&separate)
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
				if fused.err == nil {
					fused.err = d.clearZeros() // to which the timed plans have added sums
				}
				fused.calls = append(fused.calls, func() error { return plans.Run(at, work) })
			})
		}
		b.err = separate.err
		if unusable := errors.Is(fused.err, dnn.ErrNoPlan) || errors.Is(fused.err, driver.ErrOutOfMemory); !unusable &&
			b.err == nil {
			b.err = fused.err
		} else if unusable {
			fused.calls = nil
		}
		if b.err != nil {
			return
		}
		w := choice{key: x.graph.String(), short: plans.Short() || d.shortAlone(x.graph),
			fused: fused.calls, separate: separate.calls}
		for _, i := range x.steps {
			if _, overwrites := f.Step(i).Op.(op.InPlace); overwrites {
				w.state = append(w.state, b.spans[f.Step(i).Out])
			}
		}
		better, err := d.faster(x.graph.Name, &w)
		b.err = err
		if better {
			b.calls = append(b.calls, w.fused...)
		} else {
			b.calls = append(b.calls, w.separate...)
		}
	}
	return l, nil
}

// plansOf are cuDNN's plans for a graph, nil if it has none.
func (d *Device) plansOf(g *dnn.Graph) *dnn.Plans {
	key := g.String()
	p, ok := d.graphs[key]
	if !ok {
		o := d.planning()
		o.Later = true
		var err error
		p, err = d.dnn.NewPlans(g, o)
		if errors.Is(err, driver.ErrOutOfMemory) { // not stored: another net may find memory
			return nil
		}
		if err != nil { // a serious error shows in other calls, too
			p = nil
		}
		d.graphs[key] = p
		if p != nil && p.Compiles() {
			d.compiles = append(d.compiles, p)
		}
	}
	return p
}

// shortAlone reports whether the graph's convolution alone had too little memory for its best plan.
func (d *Device) shortAlone(g *dnn.Graph) bool {
	alone, ok := d.convs[convKey{g.Kind(), g.Shape()}]
	return ok && alone.Short()
}

// faster reports whether there are fused calls and they take less time than the separate ones, and restores the state that they
// change. It measures once and keeps the answer, unless the fused calls fail, or memory was too short for the best plan
// or for the measurement, which sets w.short.
func (d *Device) faster(name string, w *choice) (better bool, err error) {
	if d.opts.Fuse == FuseAlways || w.fused == nil {
		return w.fused != nil, nil
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
		two, err := d.took(w.separate)
		if err != nil {
			return err
		}
		one, err := d.took(w.fused)
		if errors.Is(err, driver.ErrLost) {
			return err
		}
		if err != nil { // it may have left sums
			if err := d.clearZeros(); err != nil {
				return err
			}
		}
		failed, better = err, err == nil && one < two
		return nil
	})
	if errors.Is(err, errUnsaved) || err == nil && errors.Is(failed, driver.ErrOutOfMemory) {
		// there may be memory for it later
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

// took is the time of calls as steps run them: in a captured graph, whose kernels start one after another without the
// host, unless the device runs steps kernel by kernel.
func (d *Device) took(calls []func() error) (least time.Duration, err error) {
	if d.opts.Eager || d.opts.DebugSync {
		return d.dnn.Time(func() error { return call(calls) }, 0)
	}
	if err := call(calls); err != nil { // libraries load kernels at their first use, which no capture may do
		return 0, err
	}
	g, err := d.stream.Capture(func() error { return call(calls) })
	if errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrOutOfMemory) {
		return 0, err
	}
	if err != nil { // a library refuses captures: steps are not captured, either
		return d.dnn.Time(func() error { return call(calls) }, 0)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return d.dnn.Time(func() error { return g.Launch(d.stream) }, 0)
}

// noteOf identifies the choice between fused and separate calls by all that affects it, except the card and cuDNN.
func (d *Device) noteOf(graphs string) string {
	return fmt.Sprintf("fused or not in a graph, with at most %d bytes of scratch and kernels %s: %s", d.planning().Workspace,
		kernels.Digest(), graphs)
}

// errUnsaved reports that memory for a copy of the state is missing.
var errUnsaved = errors.New("no memory for a copy of the state")

// preserving runs f on the owner thread and then restores the state, even if f fails. Without memory for a copy it
// fails with errUnsaved and does not run f.
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
