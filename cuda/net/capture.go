//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

var _ device.Pipeline = (*Device)(nil)

// Record implements device.Pipeline: it captures a CUDA graph. A device that waits after each op, or is to be eager, records nothing; so does one
// whose driver or libraries refuse a capture, from then on.
func (d *Device) Record(f func() error) (device.Recording, error) {
	if d.opts.DebugSync || d.opts.Eager {
		return nil, nil
	}
	g, err := d.stream.Capture(f)
	if errors.Is(err, driver.ErrLost) {
		return nil, d.Explain(err)
	}
	if err != nil {
		d.opts.Eager = true
		if d.opts.Warn != nil {
			d.opts.Warn(fmt.Sprintf("steps run kernel by kernel, which is slower, since they cannot be recorded: %v", err))
		}
		return nil, nil
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
