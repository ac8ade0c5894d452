//go:build gpu && cgo

package net

import (
	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

var _ device.Observed = (*Device)(nil)

// Observe implements device.Observed.
func (d *Device) Observe(f device.Observer) error {
	if f == nil {
		return d.c.Observe(nil)
	}
	return d.c.Observe(func(w driver.Work, give func() error) error { return f(d.running, device.Work(w), give) })
}
