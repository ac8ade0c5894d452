//go:build gpu && cgo

package cuda

import (
	"os"
	"time"

	"onlinerna/cuda/check/datasheet"
	"onlinerna/nn/device"
)

// A PaperNet is a device for nets that models a card by its data sheet: see package datasheet. Its clock advances by
// the least time of each piece of work.
type PaperNet struct {
	*Net
	card Card
	o    NetOptions
}

// OpenPaper opens a card's model for nets. The process must not have loaded NVIDIA's libraries, and loads none later.
func OpenPaper(card Card, o NetOptions) (*PaperNet, error) {
	if err := datasheet.Use(card); err != nil {
		return nil, err
	}
	o.Eager = true                     // the clock advances by each piece of work, not by graphs
	o.Context.KernelCache = os.DevNull // nothing is compiled or measured
	d, err := OpenNet(0, o)
	if err != nil {
		return nil, err
	}
	p := &PaperNet{d.(*Net), card, o}
	return p, p.Observe(nil)
}

// Least is the least time of the card for some work.
func (p *PaperNet) Least(w device.Work) time.Duration { return p.card.Time(w, p.o.Precision) }

// Observe implements device.Observed.
func (p *PaperNet) Observe(f device.Observer) error {
	if f == nil {
		f = func(_ *device.Group, _ device.Work, give func() error) error { return give() }
	}
	return p.Device.Observe(func(g *device.Group, w device.Work, give func() error) error {
		if w.FLOP == 0 {
			w.Instructions = datasheet.Known.Of(w.Name, p.o.Precision, w.Bytes())
		}
		datasheet.Pass(p.Least(w))
		return f(g, w, give)
	})
}
