package machine

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// alignment divides every value's offset in a memory. It is a GPU's largest access, and more than a cache line of any
// CPU.
const alignment = 256

func align(bytes int) int { return (bytes + alignment - 1) / alignment * alignment }

// owner is the owner of a buffer's memory.
type owner uint8

const (
	arena  owner = iota // planned
	inputs              // the machine's memory of constants and unbound inputs, which last from run to run
	caller              // bound
)

// buffer is the storage of one value, or of several views.
type buffer struct {
	owner  owner
	bytes  int
	region device.Region // of the caller
	offset int           // in the memory of inputs; in the arena it is item's
	item   int           // in the arena: of layout.items
	kept   bool          // readable after the run
}

// place is where a value lies.
type place struct {
	buffer int
	offset int // bytes
	step   int // bytes from a portion to the next; 0 for a value that all portions share
}

// storage maps the values of a program to buffers.
type storage struct {
	buffers []buffer
	places  []place // by value; the buffer is -1 for those that stay inside a task
	inputs  int     // bytes of the memory of inputs
}

// outside sets the layouts and sizes of the values that no step makes, and gives them storage.
func (p *program) outside(c *Config) (*storage, error) {
	s := &storage{places: make([]place, len(p.Values))}
	for v := range s.places {
		s.places[v].buffer = -1
	}
	roles := p.roles()
	for v := range p.Values {
		x, b := &p.Values[v], buffer{}
		bound, isBound := c.Bind[p.nodes[v]]
		layout := c.Device.Layout(x.Type, roles[v])
		if isBound {
			layout = bound.Layout
		}
		bytes := device.Bytes(c.Device, x.Type, layout)
		switch {
		case p.sources[v] == computed:
			continue
		case p.sources[v] == constant && isBound:
			return nil, fmt.Errorf("machine: Bind has storage for the constant %s: read its value from the node",
				x.Name)
		case isBound:
			x.Fixed = bound.Fixed
			if got, want := bound.Region.Bytes, bytes; got != want {
				return nil, fmt.Errorf("machine: %s, %v, takes %d bytes but is bound to a region of %d", x.Name, x.Type,
					want, got)
			}
			b = buffer{owner: caller, region: bound.Region}
		default:
			b = buffer{owner: inputs, offset: s.inputs}
			s.inputs += align(bytes)
		}
		x.Layout, x.Bytes, b.bytes = layout, bytes, bytes
		s.add(v, b)
	}
	return s, nil
}

// roles returns for each value whether some op reads it as a parameter or as statistics.
func (p *program) roles() []device.Role {
	r := make([]device.Role, len(p.Values))
	for _, s := range p.Steps {
		o, ok := s.Op.(op.Weighted)
		if !ok {
			continue
		}
		for _, i := range o.Weights() {
			if i < len(s.In) {
				r[s.In[i]] = device.Weight
			}
		}
	}
	return r
}

func (s *storage) add(v int, b buffer) {
	s.places[v] = place{buffer: len(s.buffers)}
	s.buffers = append(s.buffers, b)
}

// results gives the tasks' results storage.
func (s *storage) results(p *program, c *Config, tasks []task) error {
	wholes := p.wholes(c, tasks)
	for _, t := range tasks {
		for _, v := range t.in {
			if whole, ok := p.portionOf[v]; ok && s.places[v].buffer < 0 {
				s.places[v] = s.portion(p, v, whole)
			}
		}
		for i, v := range t.out {
			x, o := &p.Values[v], t.plan.Outputs[i]
			bound, isBound := c.Bind[p.nodes[v]]
			if whole, ok := p.portionOf[v]; ok {
				if bound, isBound := c.Bind[p.nodes[whole]]; isBound {
					if err := p.checkBound(c, whole, bound); err != nil {
						return err
					}
					s.add(whole, buffer{owner: caller, bytes: p.Values[whole].Bytes, region: bound.Region})
				} else {
					s.add(whole, buffer{owner: arena, bytes: p.Values[whole].Bytes})
				}
				s.places[v] = s.portion(p, v, whole)
				delete(wholes, whole)
				continue
			}
			operand := p.overwrites(v, t.steps)
			inWhole := wholes[v].Bytes == o.Bytes && o.Bytes > 0 && operand < 0 && !isBound && o.View == nil
			if !inWhole {
				delete(wholes, v) // its views are copied to where they are bound
			}
			switch {
			case operand >= 0 && isBound:
				return fmt.Errorf("machine: the result of %s lies where its operand %s does: bind that", x.Name,
					p.Values[operand].Name)
			case operand >= 0:
				s.places[v] = s.places[operand]
			case isBound:
				if err := p.checkBound(c, v, bound); err != nil {
					return err
				}
				if _, in := wholes[viewed(t, i)]; in {
					s.places[v] = s.places[viewed(t, i)].view(o.View)
					continue
				}
				s.add(v, buffer{owner: caller, bytes: o.Bytes, region: bound.Region})
			case o.View != nil:
				s.places[v] = s.places[t.in[o.View.Input]].view(o.View)
			case inWhole:
				s.add(v, buffer{owner: caller, bytes: o.Bytes, region: wholes[v]})
			default:
				s.add(v, buffer{owner: arena, bytes: o.Bytes})
			}
		}
	}
	for _, v := range p.Keep {
		if !p.handed[v] {
			s.buffers[s.places[v].buffer].kept = true
		}
	}
	return s.checkOverlap()
}

// view is the place of a part.
func (at place) view(v *device.View) place { return place{at.buffer, at.offset + v.Offset, at.step} }

// portion is the place of the first portion of a value.
func (s *storage) portion(p *program, v, whole int) place {
	at := s.places[whole]
	return place{at.buffer, at.offset, p.Values[v].Bytes}
}

// checkBound verifies the size and the layout of a bound result.
func (p *program) checkBound(c *Config, v int, b Binding) error {
	x := &p.Values[v]
	if b.Region.Bytes == x.Bytes && b.Layout == x.Layout {
		return nil
	}
	return fmt.Errorf("machine: %s, %v, is bound to %d bytes in layout %q, but device %s makes %d in layout %q",
		x.Name, x.Type, b.Region.Bytes, b.Layout, c.Device.Name(), x.Bytes, x.Layout)
}

// viewed is the value that contains output i of a task as a view, or -1.
func viewed(t task, i int) int {
	if view := t.plan.Outputs[i].View; view != nil {
		return t.in[view.Input]
	}
	return -1
}

// wholes are the values that consist of bound views, side by side, such as the gradients of a normalisation's scale and
// bias in a vector of gradients, with the region that the views make up: they are computed there, and nothing is copied.
func (p *program) wholes(c *Config, tasks []task) map[int]device.Region {
	views := map[int][]device.Region{} // by the whole; the offset of each, within the whole, is its order
	all := map[int]device.Region{}
	bad := map[int]bool{}
	for _, t := range tasks {
		for i, v := range t.out {
			of := viewed(t, i)
			bound, isBound := c.Bind[p.nodes[v]]
			if of < 0 || !isBound || p.sources[of] != computed {
				continue
			}
			r, view := bound.Region, t.plan.Outputs[i].View
			start := device.Region{Memory: r.Memory, Offset: r.Offset - view.Offset}
			if first, known := all[of]; known && (first.Memory != start.Memory || first.Offset != start.Offset) ||
				start.Offset < 0 || bound.Layout != t.plan.Outputs[i].Layout {
				bad[of] = true
			}
			all[of] = start
			views[of] = append(views[of], r)
		}
	}
	for of, parts := range views {
		slices.SortFunc(parts, func(a, b device.Region) int { return a.Offset - b.Offset })
		r := all[of]
		for _, part := range parts {
			if part.Offset != r.Offset+r.Bytes { // a gap would be overwritten
				bad[of] = true
			}
			r.Bytes += part.Bytes
		}
		all[of] = r
		if bad[of] {
			delete(all, of)
		}
	}
	return all
}

// overwrites returns the value whose storage the step that makes v overwrites with it, or -1.
func (p *program) overwrites(v int, steps []int) int {
	for _, i := range steps {
		if s := p.Steps[i]; s.Out == v {
			if _, ok := s.Op.(op.InPlace); ok {
				return s.In[0]
			}
		}
	}
	return -1
}

// checkOverlap verifies that bound values do not overlap.
func (s *storage) checkOverlap() error {
	regions := make(map[device.Memory][]device.Region)
	for _, b := range s.buffers {
		if b.owner == caller {
			regions[b.region.Memory] = append(regions[b.region.Memory], b.region)
		}
	}
	for _, rs := range regions {
		slices.SortFunc(rs, func(a, b device.Region) int { return a.Offset - b.Offset })
		for i := 1; i < len(rs); i++ {
			if a, b := rs[i-1], rs[i]; b.Offset < a.Offset+a.Bytes {
				return fmt.Errorf("machine: two values are bound to overlapping regions, bytes %d to %d and %d to %d",
					a.Offset, a.Offset+a.Bytes, b.Offset, b.Offset+b.Bytes)
			}
		}
	}
	return nil
}
