//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

var _ device.Pipeline = (*Device)(nil)

// Record implements device.Pipeline: it captures a CUDA graph. A device that waits after each op, or is to be eager, records nothing.
func (d *Device) Record(f func() error) (device.Recording, error) {
	if d.opts.DebugSync || d.opts.Eager {
		return nil, nil
	}
	g, err := d.stream.Capture(f)
	if err != nil && !errors.Is(err, driver.ErrLost) {
		return nil, fmt.Errorf("%w; to train without recording, run again with RNA_CUDA_EAGER=1 in the environment", err)
	}
	if err != nil {
		return nil, d.Explain(err)
	}
	return &recording{d, g}, nil
}

// recording is a graph on the device's stream.
type recording struct {
	d *Device
	g *driver.Graph
}

// Run implements device.Recording.
func (r *recording) Run() error { return r.d.Explain(r.g.Launch(r.d.stream)) }

// Valid implements device.Recording.
func (r *recording) Valid() bool { return r.g.Valid() }

// Free implements device.Recording. A failure shows at the next Sync.
func (r *recording) Free() { r.d.failed = errors.Join(r.d.failed, r.g.Close()) }

// Lanes implements device.Pipeline.
func (d *Device) Lanes() int { return 2 }

// Step implements device.Pipeline.
func (d *Device) Step(params, grad, momentum device.Vector, s device.SGD, live device.Live) error {
	v, ok := params.(*vector)
	if !ok || v.d != d {
		return fmt.Errorf("cuda: sgd: vector %T belongs to another device", params)
	}
	numbers, err := d.span(live.Numbers)
	if err == nil && numbers.Bytes() != 8 {
		err = fmt.Errorf("cuda: sgd: region of %d bytes for the rate and the scale: want 8", numbers.Bytes())
	}
	var guard driver.Span
	if err == nil && live.Guard.Memory != nil {
		if guard, err = d.span(live.Guard); err == nil && guard.Bytes() != 4 {
			err = fmt.Errorf("cuda: sgd: region of %d bytes for the guard: want 4", guard.Bytes())
		}
	}
	if err != nil {
		return err
	}
	return v.sgd(grad, momentum, s, numbers, guard)
}
