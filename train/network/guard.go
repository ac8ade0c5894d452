package network

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// guard is a running sum of losses in the device's memory. A loss that is not finite makes the sum so, too, and
// optimiser steps that read it leave the weights unchanged: the device sees the loss before the host does.
type guard struct {
	sum   device.Memory // one element; nil until there are lanes
	space device.Memory // workspace of the kernels that add to it, or nil
}

// open allocates the sum, 0.
func (g *guard) open(dev device.Device) (err error) {
	if g.sum == nil {
		g.sum, err = dev.NewMemory(dev.DType().Size())
	}
	return err
}

// region is the memory that an optimiser step reads.
func (g *guard) region() device.Region { return device.Region{Memory: g.sum, Bytes: g.sum.Bytes()} }

// clear sets the sum to 0.
func (g *guard) clear(dev device.Device) error {
	if g.sum == nil {
		return nil
	}
	return dev.Upload(g.region(), "", op.Tensor{Shape: op.Shape{1}, Data: []float64{0}})
}

// adding is a kernel that adds the number at loss to the sum.
func (g *guard) adding(dev device.Device, loss device.Region) (device.Kernel, error) {
	t := op.T(dev.DType())
	group := &device.Group{
		Values: slices.Repeat([]device.Value{{Name: "loss", Type: t, Bytes: t.Bytes()}}, 3),
		Steps:  []device.Step{{Name: "guard", Op: op.Add{}, In: []int{0, 1}, Out: 2}},
		Inputs: []int{0, 1}, Outputs: []int{2},
	}
	p, err := dev.Describe(group)
	if err != nil {
		return nil, err
	}
	if o := p.Outputs[0]; o.Layout != "" || o.Bytes != t.Bytes() || !slices.Contains(o.Over, 0) {
		return nil, fmt.Errorf("device %s cannot add up losses in place", dev.Name())
	}
	if p.Workspace > 0 && g.space == nil {
		if g.space, err = dev.NewMemory(p.Workspace); err != nil {
			return nil, err
		}
	}
	return dev.Bind(group, p, device.Args{
		In: []device.Region{g.region(), loss}, Out: []device.Region{g.region()},
		Workspace: device.Region{Memory: g.space, Bytes: p.Workspace},
	})
}

func (g *guard) free() {
	for _, m := range []device.Memory{g.sum, g.space} {
		if m != nil {
			m.Free()
		}
	}
	*g = guard{}
}
