// Package profile measures the time of training steps by phase, by kind of op and by layer, as tables, and as a
// timeline that browsers show.
package profile

import (
	"cmp"
	"slices"
	"time"

	"onlinerna/nn/device"
	"onlinerna/train/network"
)

// Wait is the phase before a batch has arrived.
const Wait = "wait for the loader"

// Profile is the time measurement of some steps. Its methods record events, must be called in the order of time, and
// make it a network's tracer.
type Profile struct {
	About Description
	First int     // the number of the first step in the run
	Plain float64 // seconds of the unprofiled step before them; 0 if there was none

	kinds     Kinds
	optimizer device.Optimizer
	params    int // bytes

	began, begin time.Time     // the first step, the current step
	waited       time.Duration // in the current step
	phases       []part        // in the order of their first run
	layers       []layer       // likewise
	between      []part
	spans        []span
	passes       [2]span // of the current step's forward and backward pass
}

// Description describes the profiled training and its hardware.
type Description struct {
	Model      string `json:"model"`
	Device     string `json:"device"`
	Optimizer  string `json:"optimizer"`
	Batch      int    `json:"batch"`      // images in a forward pass
	ImageSize  int    `json:"image_size"` // their height and width
	Accumulate int    `json:"accumulate"` // batches in a step
	Rank       int    `json:"rank"`       // of the profiled process
	Ranks      int    `json:"ranks"`
}

// Phase is a part of steps.
type Phase struct {
	Name    string
	Seconds float64 // per step on average
	Calls   int     // in all steps together
}

// Layer is all groups of ops whose first op belongs to the layer.
type Layer struct {
	Name              string
	Forward, Backward float64 // seconds per step on average
}

// part sums the time of a phase over all steps, or the time between steps.
type part struct {
	name    string
	seconds float64
	calls   int
}

// layer sums the time of a layer over all steps: the forward pass and the backward pass.
type layer struct {
	name   string
	passes [2]float64 // seconds
}

// span is an event of the trace.
type span struct {
	name, category string
	layer          string
	at             time.Time
	took           time.Duration
	step           int // 0: none
}

var _ network.Tracer = (*Profile)(nil)

// New starts a profile of an optimiser's steps. It fills in the device and the optimiser's name.
func New(about Description, net *network.Network, o device.Optimizer) *Profile {
	about.Device, about.Optimizer = net.Device.Name(), o.Name()
	return &Profile{About: about, optimizer: o, params: net.Device.DType().Size() * net.Params.Len()}
}

// Steps is the number of steps.
func (p *Profile) Steps() int { return len(p.kinds.Steps) }

// Begin starts the step with the given number.
func (p *Profile) Begin(step int, at time.Time) {
	if p.began.IsZero() {
		p.began, p.First = at, step
	}
	p.begin, p.waited = at, 0
}

// Waited records a wait for a batch.
func (p *Profile) Waited(at time.Time, took time.Duration) {
	p.waited += took
	p.phase(Wait, at, took)
}

// Hook records the time of a hook in a step.
func (p *Profile) Hook(name string, at time.Time, took time.Duration) {
	p.phase("hook "+name, at, took)
}

// Between records work between two steps.
func (p *Profile) Between(name string, at time.Time, took time.Duration) {
	p.between = add(p.between, name, took)
	p.spans = append(p.spans, span{name: name, category: "between steps", at: at, took: took})
}

// Part implements network.Tracer.
func (p *Profile) Part(x network.Phase, at time.Time, took time.Duration) {
	p.pass()
	if x == network.Updating {
		p.kinds.Update(p.optimizer, p.params, took)
	}
	p.phase(x.String(), at, took)
}

// Group implements network.Tracer.
func (p *Profile) Group(x network.Phase, g *device.Group, at time.Time, took time.Duration) {
	c := p.kinds.group(g, took)
	p.phases = add(p.phases, x.String(), took)
	i := slices.IndexFunc(p.layers, func(l layer) bool { return l.name == c.layer })
	if i < 0 {
		i = len(p.layers)
		p.layers = append(p.layers, layer{name: c.layer})
	}
	which := 0
	if x != network.Forward {
		which = 1
	}
	p.layers[i].passes[which] += took.Seconds()
	pass := &p.passes[which]
	if pass.at.IsZero() {
		*pass = span{name: x.String(), category: "phase", at: at}
	}
	pass.took = at.Add(took).Sub(pass.at)
	p.spans = append(p.spans, span{name: c.name, category: x.String(), layer: c.layer, at: at, took: took,
		step: p.First + p.Steps()})
}

// pass ends the forward and the backward pass.
func (p *Profile) pass() {
	for i, s := range p.passes {
		if !s.at.IsZero() {
			s.step = p.First + p.Steps()
			p.spans = append(p.spans, s)
		}
		p.passes[i] = span{}
	}
}

// phase records a part of the current step.
func (p *Profile) phase(name string, at time.Time, took time.Duration) {
	p.phases = add(p.phases, name, took)
	p.spans = append(p.spans, span{name: name, category: "phase", at: at, took: took, step: p.First + p.Steps()})
}

// End ends the current step.
func (p *Profile) End(at time.Time) {
	p.pass()
	p.spans = append(p.spans, span{name: "step", category: "step", at: p.begin, took: at.Sub(p.begin),
		step: p.First + p.Steps()})
	p.kinds.Step(at.Sub(p.begin), p.waited)
}

func add(list []part, name string, took time.Duration) []part {
	i := slices.IndexFunc(list, func(p part) bool { return p.name == name })
	if i < 0 {
		i = len(list)
		list = append(list, part{name: name})
	}
	list[i].seconds += took.Seconds()
	list[i].calls++
	return list
}

// Phases lists the average parts of a step in their order, and last [Rest]: the remaining time. They sum to the step's
// time.
func (p *Profile) Phases() []Phase {
	var list []Phase
	steps := float64(p.Steps())
	left := sum(p.kinds.Steps)
	for _, x := range p.phases {
		list = append(list, Phase{x.name, x.seconds / steps, x.calls})
		left -= x.seconds
	}
	return append(list, Phase{Rest, left / steps, p.Steps()})
}

// Layers lists the layers by their time in a step, the longest first.
func (p *Profile) Layers() []Layer {
	var list []Layer
	steps := float64(p.Steps())
	for _, l := range p.layers {
		list = append(list, Layer{l.name, l.passes[0] / steps, l.passes[1] / steps})
	}
	slices.SortStableFunc(list, func(a, b Layer) int { return cmp.Compare(b.Forward+b.Backward, a.Forward+a.Backward) })
	return list
}

// Seconds is the average time of a step.
func (p *Profile) Seconds() float64 { return sum(p.kinds.Steps) / float64(p.Steps()) }
