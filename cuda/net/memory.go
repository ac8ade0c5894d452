//go:build gpu && cgo

package net

import (
	"onlinerna/nn/device"
)

// Room implements device.OwnMemory. The spare memory is for cuDNN and cuBLAS, which load kernels and allocate
// workspaces at their first use.
func (d *Device) Room() (free, spare int64, err error) {
	free, total, err := d.c.MemInfo()
	if err != nil {
		return 0, 0, d.Explain(err)
	}
	s, err := d.c.Stats()
	return free + s.Cached, min(total/16, mostSpared), err
}

// mostSpared is 1 GiB: the libraries take no more, even on a large card.
const mostSpared = 1 << 30

// PeakMemory implements device.OwnMemory.
func (d *Device) PeakMemory() (int64, error) {
	s, err := d.c.Stats()
	return s.Peak, err
}

// Card implements device.Card: the GPU's name.
func (d *Device) Card() string { return d.info.Name }

var (
	_ device.OwnMemory = (*Device)(nil)
	_ device.Card      = (*Device)(nil)
)
