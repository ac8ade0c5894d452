//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"time"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/nvtx"
	"onlinerna/nn/device"
)

var _ device.Clock = (*Device)(nil)

// marks are events of a stream, indexed by number.
type marks []*driver.Event

func (m marks) close() error {
	var errs []error
	for _, e := range m {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// Mark implements device.Clock by an event.
func (d *Device) Mark(i int) error {
	for len(d.marks) <= i {
		e, err := d.c.NewEvent(true)
		if err != nil {
			return d.Explain(err)
		}
		d.marks = append(d.marks, e)
	}
	return d.Explain(d.marks[i].Record(d.stream))
}

// Between implements device.Clock.
func (d *Device) Between(i, j int) (time.Duration, error) {
	if min(i, j) < 0 || max(i, j) >= len(d.marks) {
		return 0, fmt.Errorf("cuda: time between marks %d and %d: only %d marks exist", i, j, len(d.marks))
	}
	if err := d.marks[j].Synchronize(); err != nil {
		return 0, d.Explain(err)
	}
	took, err := d.marks[j].Since(d.marks[i])
	return took, d.Explain(err)
}

var _ device.Observed = (*Device)(nil)

// Observe implements device.Observed.
func (d *Device) Observe(f device.Observer) error {
	if f == nil {
		return d.c.Observe(nil)
	}
	return d.c.Observe(func(w driver.Work, give func() error) error {
		return f(d.running, device.Work{Name: w.Name, Read: w.Read, Write: w.Write, FLOP: w.FLOP, Product: w.Product},
			give)
	})
}

var _ device.Annotated = (*Device)(nil)

// Profiled implements device.Annotated.
func (d *Device) Profiled() bool { return d.c != nil && nvtx.On() }

// Begin implements device.Annotated.
func (d *Device) Begin(name string) { d.c.Begin(name) }

// End implements device.Annotated.
func (d *Device) End() { d.c.End() }
