//go:build gpu && cgo

package net

import (
	"errors"

	"onlinerna/cuda/dnn"
)

// A Planner is a device for an absent card, known from cuDNN's description. It groups and describes the ops of a
// program as [Device] does, with the same graphs for cuDNN, and runs nothing: do not call methods that access the
// card's memory.
type Planner struct{ *Device }

// NewPlanner makes a planner for the card that h describes. It takes ownership of h.
func NewPlanner(h *dnn.Handle, o Options) (*Planner, error) {
	i := h.Info()
	if err := supports(i, o.Precision); err != nil {
		return nil, err
	}
	if o.Fuse == FuseAttention { // plans of fused convolutions are those worth making ahead
		o.Fuse = FuseTimed
	}
	d := newDevice(i, o)
	d.dnn = h
	return &Planner{d}, nil
}

// Plans are cuDNN's plans for everything described so far, in any order.
func (p *Planner) Plans() []*dnn.Plans {
	var all []*dnn.Plans
	for _, v := range p.convs {
		all = append(all, v)
	}
	for _, g := range p.graphs {
		if g != nil {
			all = append(all, g)
		}
	}
	return all
}

// Ahead makes the plans of all that was described so far, as [dnn.MakeAhead] does.
func (p *Planner) Ahead(properties string, threads int, after func(dnn.Made) error) error {
	var graphs []*dnn.Graph
	for _, x := range p.Plans() {
		graphs = append(graphs, x.Graph())
	}
	return dnn.MakeAhead(properties, graphs, p.planning(), threads, after)
}

// Close frees the plans and the description.
func (p *Planner) Close() error {
	var errs []error
	for _, v := range p.convs {
		errs = append(errs, v.Close())
	}
	for _, g := range p.graphs {
		if g != nil {
			errs = append(errs, g.Close())
		}
	}
	return errors.Join(append(errs, p.dnn.Close())...)
}
