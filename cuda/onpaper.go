//go:build gpu && cgo

package cuda

import (
	"os"
	"time"

	"onlinerna/cuda/check/datasheet"
	"onlinerna/nn/device"
)

// A PaperNet is the device for nets with a card on paper: see package datasheet. Its clock goes on by what each piece of work takes at least.
type PaperNet struct {
	*Net
	card Card
	o    NetOptions
}

// OpenPaper opens a card on paper for nets, in a process that has loaded none of NVIDIA's libraries, nor will.
func OpenPaper(card Card, o NetOptions) (*PaperNet, error) {
	if err := datasheet.Use(card); err != nil {
		return nil, err
	}
	o.Context.KernelCache = os.DevNull // nothing is compiled, and nothing found out
	d, err := OpenNet(0, o)
	if err != nil {
		return nil, err
	}
	p := &PaperNet{d.(*Net), card, o}
	return p, p.Observe(nil)
}

// Least is the time that so many bytes and FLOP take at least.
func (p *PaperNet) Least(bytes, flop int64) time.Duration {
	return p.card.Time(bytes, flop, p.o.Precision)
}

// Observe implements device.Observed.
func (p *PaperNet) Observe(f device.Observer) error {
	if f == nil {
		f = func(_ *device.Group, _ device.Work, give func() error) error { return give() }
	}
	return p.Device.Observe(func(g *device.Group, w device.Work, give func() error) error {
		datasheet.Pass(p.Least(w.Bytes(), w.FLOP))
		return f(g, w, give)
	})
}
