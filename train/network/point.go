package network

import (
	"errors"

	"onlinerna/nn/device"
)

// Point is a set of weights: vectors like the network's parameters and running statistics. Stats is nil without
// BatchNorm.
type Point struct{ Params, Stats device.Vector }

// Point returns the network's own vectors.
func (n *Network) Point() Point { return Point{n.Params, n.Stats} }

// NewPoint allocates vectors like the network's.
func (n *Network) NewPoint() (p Point, err error) {
	if p.Params, err = n.NewParams(); err == nil && n.Stats != nil {
		p.Stats, err = n.Device.NewVector(n.Stats.Len())
	}
	if err != nil {
		p.Free()
	}
	return p, err
}

// Copy copies src to p.
func (p Point) Copy(src Point) error {
	if err := p.Params.Copy(src.Params); err != nil || src.Stats == nil {
		return err
	}
	return p.Stats.Copy(src.Stats)
}

// Temporarily runs fn, which may change the network's weights and statistics, and restores them from spare.
func (n *Network) Temporarily(spare Point, fn func() error) (err error) {
	if err := spare.Copy(n.Point()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Point().Copy(spare)) }()
	return fn()
}

// Free releases the vectors.
func (p *Point) Free() {
	for _, v := range []device.Vector{p.Params, p.Stats} {
		if v != nil {
			v.Free()
		}
	}
	*p = Point{}
}
