package cpu

import (
	"fmt"

	"onlinerna/nn/device"
)

// storage is where the values of a group lie while it is bound. The first error is kept.
type storage struct {
	group  *device.Group
	region []device.Region // by value; zero for those that stay inside the group
	work   device.Region
	err    error
}

func elements[T device.HostElement](s *storage, r device.Region, name string) []T {
	if s.err != nil {
		return nil
	}
	x, err := device.HostSlice[T](r)
	if err != nil {
		s.err = fmt.Errorf("%s: %w", name, err)
	}
	return x
}

// value is the storage of a value of the group.
func value[T device.HostElement](s *storage, v int) []T {
	x := s.group.Values[v]
	e := elements[T](s, s.region[v], "value "+x.Name)
	if s.err == nil && len(e) != x.Type.Shape.Size() {
		s.err = fmt.Errorf("value %s: region of %d bytes for %v", x.Name, s.region[v].Bytes, x.Type)
	}
	return e
}

// floats is a value that is stored as float32, nil if it stays inside the group.
func (s *storage) floats(v int) []float32 {
	if s.region[v].Memory == nil {
		return nil
	}
	return value[float32](s, v)
}

// room hands out parts of a workspace while a group is lowered.
type room struct{ bytes int }

// part is a piece of the workspace: elements of one type for each worker, or for all of them.
type part struct{ off, elements int }

const cacheLine = 64

func (r *room) take(elements, size int) part {
	p := part{r.bytes, elements}
	r.bytes += (elements*size + cacheLine - 1) / cacheLine * cacheLine
	return p
}

func (r *room) floats(n int) part  { return r.take(n, 4) }
func (r *room) doubles(n int) part { return r.take(n, 8) }

// each takes n float32 for each worker.
func (r *room) each(workers, n int) []part {
	p := make([]part, workers)
	for i := range p {
		p[i] = r.floats(n)
	}
	return p
}

func (s *storage) scratch(p part) []float32 {
	return elements[float32](s, s.work.Part(p.off, 4*p.elements), "workspace")
}

func (s *storage) scratch64(p part) []float64 {
	return elements[float64](s, s.work.Part(p.off, 8*p.elements), "workspace")
}

func (s *storage) scratches(p []part) [][]float32 {
	x := make([][]float32, len(p))
	for i := range p {
		x[i] = s.scratch(p[i])
	}
	return x
}
