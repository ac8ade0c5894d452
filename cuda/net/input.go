//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

// lane is a device.Lane: pinned memory of the host, its counterpart in the GPU's memory, and events that order the two
// streams.
type lane struct {
	d       *Device
	in, out *memory
	pinned  [2]*driver.HostMemory // for input and output
	host    [2]*device.HostMemory // the same memory
	sent    *driver.Event         // after the copies of the input
	done    *driver.Event         // after the step
	sending bool                  // the copies may still run
	running bool                  // the step may still run
}

// NewLane implements device.Pipeline.
func (d *Device) NewLane(input, output int) (device.Lane, error) {
	if input < 0 || output < 0 {
		return nil, fmt.Errorf("cuda: lane for %d and %d bytes", input, output)
	}
	l := &lane{d: d}
	err := d.c.Do(func() error { return l.open(input, output) })
	if err != nil {
		l.Free()
		return nil, d.Explain(fmt.Errorf("cuda: lane for %d and %d bytes: %w", input, output, err))
	}
	return l, nil
}

func (l *lane) open(input, output int) (err error) {
	d := l.d
	if d.input == nil {
		if d.input, err = d.c.NewStream(); err != nil {
			return err
		}
		d.input.Name("input")
	}
	if l.in, err = d.newMemory(input); err != nil {
		return err
	}
	if l.out, err = d.newMemory(output); err != nil {
		return err
	}
	for i, n := range []int{input, output} {
		const line = 64 // a multiple of every element's size
		if l.pinned[i], err = d.c.AllocHost(int64(max(n+line-1, line)) / line * line); err != nil {
			return err
		}
		clear(l.pinned[i].Bytes())
		l.host[i] = device.ViewHostMemory(l.pinned[i].Bytes()[:n])
	}
	for _, e := range []**driver.Event{&l.sent, &l.done} {
		if *e, err = d.c.NewEvent(false); err != nil {
			return err
		}
	}
	return d.stream.Synchronize() // so that zeroing the memory cannot overwrite the first input
}

// Input implements device.Lane.
func (l *lane) Input() device.Memory { return l.in }

// Output implements device.Lane.
func (l *lane) Output() device.Memory { return l.out }

// Host implements device.Lane.
func (l *lane) Host() (*device.HostMemory, error) {
	if l.sending {
		if err := l.sent.Synchronize(); err != nil {
			return nil, l.d.Explain(err)
		}
		l.sending = false
	}
	return l.host[0], nil
}

// Send implements device.Lane.
func (l *lane) Send(parts ...device.Span) error {
	d := l.d
	return d.Explain(d.c.Do(func() error {
		if l.running {
			if err := d.input.Wait(l.done); err != nil {
				return err
			}
		}
		for _, p := range parts {
			if p.Off < 0 || p.Len < 0 || p.Off > l.in.bytes-p.Len {
				return fmt.Errorf("cuda: bytes %d to %d of a lane of %d", p.Off, p.Off+p.Len, l.in.bytes)
			}
			if p.Len == 0 {
				continue
			}
			l.sending = true
			if err := d.input.CopyIn(l.in.m.Span(int64(p.Off), int64(p.Len)),
				l.pinned[0].Bytes()[p.Off:p.Off+p.Len]); err != nil {
				return err
			}
		}
		if err := l.sent.Record(d.input); err != nil {
			return err
		}
		return d.stream.Wait(l.sent)
	}))
}

// Fetch implements device.Lane.
func (l *lane) Fetch() error {
	if l.out.bytes == 0 {
		return nil
	}
	return l.d.Explain(l.d.stream.CopyOut(l.pinned[1].Bytes()[:l.out.bytes], l.out.m.All()))
}

// End implements device.Lane.
func (l *lane) End() error {
	l.running = true
	err := l.done.Record(l.d.stream)
	if err == nil && l.d.opts.DebugSync {
		_, err = l.Results() // a later failure does not belong to this step
	}
	return l.d.Explain(err)
}

// Results implements device.Lane.
func (l *lane) Results() (*device.HostMemory, error) {
	if l.running {
		if err := l.done.Synchronize(); err != nil {
			return nil, l.d.Explain(err)
		}
		l.running, l.sending = false, false // the step has waited for the copies
	}
	return l.host[1], nil
}

// Free implements device.Lane. It waits for the GPU; a failure shows at the next Sync.
func (l *lane) Free() {
	var errs []error
	for i, p := range l.pinned {
		if p != nil {
			errs = append(errs, p.Close()) // first, because it waits for the GPU
			l.host[i] = nil
		}
	}
	for _, m := range []*memory{l.in, l.out} {
		if m != nil {
			m.Free()
		}
	}
	for _, e := range []*driver.Event{l.sent, l.done} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	l.d.failed = errors.Join(append(errs, l.d.failed)...)
}
