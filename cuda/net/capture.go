//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"strings"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

var _ device.Pipeline = (*Device)(nil)

// Record implements device.Pipeline: it captures a CUDA graph. It records nothing on a device that waits after each op
// or is eager, nor after the driver or a library has refused a capture. A mistake in f itself, such as a wait for the
// device, is an error.
func (d *Device) Record(f func() error) (device.Recording, error) {
	if d.opts.DebugSync || d.opts.Eager {
		return nil, nil
	}
	var own error
	g, err := d.stream.Capture(func() error {
		own = f()
		return own
	})
	if errors.Is(err, driver.ErrLost) || own != nil && !refused(own) {
		return nil, d.Explain(err)
	}
	if err != nil {
		d.opts.Eager = true
		if d.opts.Warn != nil {
			d.opts.Warn(fmt.Sprintf("steps run kernel by kernel, which is slower, because they cannot be captured: %v",
				err))
		}
		return nil, nil
	}
	return &recording{d, g}, nil
}

// refused reports whether a library may have failed because of the capture. An error that mentions captures is not
// such: it comes from a call that f must not make.
func refused(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && !strings.HasPrefix(e.Name, "CUDA_ERROR_STREAM_CAPTURE_")
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
