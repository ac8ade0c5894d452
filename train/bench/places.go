package bench

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"onlinerna/cuda"
	"onlinerna/internal/nearest"
	"onlinerna/nn/device"
	"onlinerna/train/ranks"
)

// Places are open places.
type Places struct {
	List  []*Place
	NoGPU string // reason for the missing GPU, if there may be one

	open []io.Closer
}

// Close closes the devices of the places.
func (p *Places) Close() (err error) {
	for _, c := range slices.Backward(p.open) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// OpenPlaces opens the places of a named device, for vectors of dim elements: for auto host memory, and a GPU's if
// there is one. The places of several ranks are rank 0 alone and all ranks, in host memory.
func OpenPlaces(name string, dim, threads int, g *ranks.Group) (*Places, error) {
	p := &Places{}
	if err := p.find(name, dim, threads, g); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Places) find(name string, dim, threads int, g *ranks.Group) error {
	kinds := device.Preferred() // in order of preference: the last one uses host memory
	host := kinds[len(kinds)-1]
	kind, unit := device.Parse(name)
	d, known := device.Find(kind)
	auto := name == "auto"
	card := auto || d.Queue
	switch {
	case !auto && (!known || unit != "" && !d.Units):
		hint := ""
		if near := nearest.To(kind, kinds); near != "" && near != kind {
			hint = fmt.Sprintf(", did you mean %s?", near)
		}
		return fmt.Errorf("unknown device %q for RNA%s Devices: auto, %s", name, cmp.Or(hint, "."), strings.Join(kinds, ", "))
	case !g.Single() && !auto && card:
		return fmt.Errorf("device %s for RNA: ranks keep their parts in the host's memory: use --rna-device %s", name, host)
	case !g.Single():
		return p.ranks(host, dim, cmp.Or(threads, g.Threads()), g)
	}
	if auto || !card {
		d, err := p.device(map[bool]string{true: host, false: kind}[auto], threads)
		if err != nil {
			return err
		}
		one, err := HostPlace(d, dim, threads)
		if err != nil {
			return err
		}
		p.List = append(p.List, one)
	}
	if !card {
		return nil
	}
	if auto {
		kind = kinds[0]
	}
	one, err := p.card(kind, unit, host, dim, threads)
	switch {
	case err == nil:
		p.List = append(p.List, one)
	case auto:
		p.NoGPU = err.Error()
	default:
		return fmt.Errorf("device %s for RNA: %w; or use --rna-device %s", name, err, host)
	}
	return nil
}

// device opens a device in host memory.
func (p *Places) device(kind string, threads int) (device.Device, error) {
	d, err := device.Of(kind).Open("", device.Options{Threads: threads, Warn: func(string) {}})
	if err == nil {
		p.open = append(p.open, d)
	}
	return d, err
}

// ranks adds the places of ranks.
func (p *Places) ranks(host string, dim, threads int, g *ranks.Group) error {
	d, err := p.device(host, threads)
	if err = g.Together(err); err != nil {
		return err
	}
	if g.First() {
		one, err := HostPlace(d, dim, threads)
		if err != nil {
			return err
		}
		one.Name = "rank 0"
		p.List = append(p.List, one)
	}
	all, err := RanksPlace(g, d, dim, threads)
	if err == nil {
		p.List = append(p.List, all)
	}
	return err
}

// card opens a GPU for RNA alone, which needs fewer libraries than nets do.
func (p *Places) card(kind, unit, host string, dim, threads int) (*Place, error) {
	ordinal, err := cuda.Ordinal(cmp.Or(unit, "0"))
	if err != nil {
		return nil, err
	}
	c, err := cuda.Open(ordinal, cuda.Options{})
	if err != nil {
		return nil, err
	}
	p.open = append(p.open, c)
	space, err := cuda.NewSpace(c, dim, cuda.SpaceOptions{})
	if err != nil {
		return nil, err
	}
	p.open = append(p.open, space)
	weights, err := c.NewPoint(dim)
	if err != nil {
		return nil, err
	}
	p.open = append(p.open, weights)
	d, err := p.device(host, threads)
	if err != nil {
		return nil, err
	}
	from, err := d.NewVector(dim)
	if err != nil {
		return nil, err
	}
	return &Place{
		Name: fmt.Sprintf("%s:%d", kind, ordinal), Device: fmt.Sprintf("%s, %s", c.Info().Name, c.Info().Arch()),
		Space: space, Weights: weights, FromHost: from,
		Bandwidth: func() (float64, error) {
			free, _, err := c.MemInfo()
			if err != nil {
				return 0, err
			}
			speed, err := c.Bandwidth(min(max(16*int64(dim), 1<<20), free/4))
			return speed, errors.Join(err, c.Trim())
		},
		Free: func() (int64, error) {
			free, _, err := c.MemInfo()
			return max(free-cuda.DefaultReserve+4*int64(dim), 1), err // the weights are already allocated
		},
	}, nil
}

// FreeOn returns the free memory of a device, 0 if unknown.
func FreeOn(d device.Device) (int64, error) {
	if own, ok := device.As[device.OwnMemory](d); ok {
		free, _, err := own.Room()
		return free, err
	}
	return FreeMemory(), nil
}
