//go:build gpu && cgo

package cuda

import (
	"errors"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/net"
	"onlinerna/cuda/nvml"
	"onlinerna/cuda/space"
	"onlinerna/nn/device"
	"onlinerna/rna"
)

// Devices lists the GPUs. Without a usable driver it fails with a [*lazy.NotFoundError] or [*lazy.DriverError].
func Devices() ([]Info, error) { return driver.Devices() }

// A Context is a GPU in use: see package driver.
type Context = driver.Context

// Open opens GPU number ordinal. A missing or unusable driver is a [*lazy.NotFoundError] or [*lazy.DriverError], an
// unknown number a [*NoDeviceError].
func Open(ordinal int, o Options) (*Context, error) { return driver.Open(ordinal, o) }

// A Point is a vector of float32 elements in GPU memory, made by [Context.NewPoint].
type Point = driver.Point

// A Space keeps the vectors of RNA in GPU memory: see package space.
type Space = space.Space

// NewSpace returns a space of vectors of dim elements in the memory of c's GPU.
func NewSpace(c *Context, dim int, o SpaceOptions) (*Space, error) { return space.New(c, dim, o) }

var (
	_ rna.Point     = (*Point)(nil)
	_ rna.Space     = (*Space)(nil)
	_ device.Device = (*Net)(nil)
)

// A Net is a GPU on which nets run: package net's device, with spaces in its memory.
type Net struct {
	*net.Device
	spaces []*Space
	over   chan bool // ends the watch over its work with other ranks; nil without ranks
}

// OpenNet opens GPU number ordinal for nets. Missing libraries are a [*lazy.NotFoundError].
func OpenNet(ordinal int, o NetOptions) (device.Device, error) {
	d, err := net.Open(ordinal, o)
	if err != nil {
		return nil, err
	}
	return &Net{Device: d}, nil
}

// NewSpace returns a space for vectors of dim elements in the GPU's memory; the device closes it. The device's vectors
// are stored in it, and combinations are written back, without a copy through the host.
func (d *Net) NewSpace(dim int) (rna.Space, error) {
	s, err := space.New(d.Context(), dim, SpaceOptions{})
	if err != nil {
		return nil, d.Explain(err)
	}
	d.spaces = append(d.spaces, s)
	return s, nil
}

// SpaceBytes is the memory in bytes of a space for this many vectors of dim elements, with its working memory.
func (d *Net) SpaceBytes(dim, vectors int) int64 { return space.Bytes(dim, vectors) }

var _ device.Monitored = (*Net)(nil)

// CardState implements device.Monitored.
func (d *Net) CardState() (device.CardState, error) {
	s, err := nvml.Read(d.Context().Info().UUID)
	return device.CardState{Clock: s.Clock, MemoryClock: s.MemoryClock, Power: s.Power, PowerLimit: s.PowerLimit,
		Temperature: s.Temperature, Used: s.Total - s.Free, Slowed: s.Slowed}, err
}

// Close implements device.Device. A second call does nothing.
func (d *Net) Close() error {
	var errs []error
	if d.over != nil {
		close(d.over)
		d.over = nil
	}
	for _, s := range d.spaces {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, d.Device.Close())...)
}
