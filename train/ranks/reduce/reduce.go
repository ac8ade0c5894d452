// Package reduce sums gradients over the ranks of a group in the host's memory.
package reduce

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/nn/device"
	"onlinerna/train/ranks"
)

// New returns the reducer that sums gradients over the ranks of a group: the devices' own if they are connected to each
// other, else the host's.
func New(g *ranks.Group, d device.Device) device.Reducer {
	if r := joined(d); r != nil {
		return r
	}
	return &reducer{g: g}
}

// joined is the device as one of several connected ranks' devices, else nil.
func joined(d device.Device) device.Ranks {
	if c, ok := device.As[device.Collective](d); ok {
		return c.Ranks()
	}
	return nil
}

// reducer is a running step.
type reducer struct {
	g     *ranks.Group
	guard device.Region
	bad   [1]float64 // number of ranks whose guard is not finite
	under []*ranks.Pending
}

var _ device.Reducer = (*reducer)(nil)

// Guard implements device.Reducer.
func (r *reducer) Guard(number device.Region) error {
	finite, err := finiteAt(number)
	if err != nil {
		return err
	}
	r.guard, r.bad[0] = number, 0
	if !finite {
		r.bad[0] = 1
	}
	r.under = append(r.under, r.g.Sum64(r.bad[:]))
	return nil
}

// Sum implements device.Reducer.
func (r *reducer) Sum(grad device.Vector, part device.Span) error {
	p, err := startSum(r.g, grad, part)
	r.under = append(r.under, p)
	return err
}

// Wait implements device.Reducer.
func (r *reducer) Wait() error {
	for _, p := range r.under {
		if err := p.Wait(); err != nil {
			return err
		}
	}
	r.under = r.under[:0]
	if r.bad[0] == 0 {
		return nil
	}
	return spoil(r.guard)
}

// finiteAt reports whether the number at an address in the host's memory is finite.
func finiteAt(at device.Region) (bool, error) {
	if x, err := device.HostSlice[float32](at); err == nil && at.Bytes == 4 {
		return x[0]-x[0] == 0, nil
	}
	x, err := device.HostSlice[float64](at)
	if err == nil && len(x) != 1 {
		err = errors.New("a guard is one number")
	}
	return err == nil && x[0]-x[0] == 0, err
}

// spoil sets the number at an address in the host's memory to NaN.
func spoil(at device.Region) error {
	if x, err := device.HostSlice[float32](at); err == nil && at.Bytes == 4 {
		x[0] = float32(math.NaN())
		return nil
	}
	x, err := device.HostSlice[float64](at)
	if err == nil {
		x[0] = math.NaN()
	}
	return err
}

// Takes returns an error if a device's vector cannot be summed over the ranks.
func Takes(d device.Device, v device.Vector) error {
	_, err32 := device.HostElements[float32](v, v.Len())
	_, err64 := device.HostElements[float64](v, v.Len())
	if joined(d) != nil || err32 == nil || err64 == nil {
		return nil
	}
	return fmt.Errorf("device %s has not joined those of the other ranks, and has memory of its own", d.Name())
}

// startSum starts summing a part of a vector over the ranks.
func startSum(g *ranks.Group, v device.Vector, part device.Span) (*ranks.Pending, error) {
	if x, err := device.HostElements[float32](v, v.Len()); err == nil {
		return g.Sum32(x[part.Off : part.Off+part.Len]), nil
	}
	x, err := device.HostElements[float64](v, v.Len())
	if err != nil {
		return nil, fmt.Errorf("%s adds up vectors of the host: %w", g.Engine(), err)
	}
	return g.Sum64(x[part.Off : part.Off+part.Len]), nil
}
