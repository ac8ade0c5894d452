//go:build gpu && cgo

package net

import (
	"errors"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
)

// A Planner is a device for a card that is not here, of which cuDNN has the description. It groups and describes the ops of a program as
// [Device] does, with the same graphs for cuDNN, and runs nothing: methods for what is in the card's memory are not to be called.
type Planner struct{ *Device }

// NewPlanner is a planner for a card that h describes, and that has the other properties i. It takes h over.
func NewPlanner(h *dnn.Handle, i driver.Info, o Options) (*Planner, error) {
	if err := supports(i, o.Precision); err != nil {
		return nil, err
	}
	if o.Workspace == 0 {
		o.Workspace = DefaultWorkspace
	}
	d := newDevice(i, o)
	d.dnn = h
	return &Planner{d}, nil
}

// Plans are cuDNN's for all that was described so far, in any order.
func (p *Planner) Plans() []*dnn.Plans {
	var all []*dnn.Plans
	for _, v := range p.convs {
		if v.Plans() != nil {
			all = append(all, v.Plans())
		}
	}
	for _, g := range p.graphs {
		if g != nil {
			all = append(all, g)
		}
	}
	return all
}

// Close gives the plans back, and the description.
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
