package work

import (
	"fmt"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
)

// Storage locates the values of a bound group. It keeps the first error.
type Storage struct {
	group  *device.Group
	region []device.Region // by value; zero for values that stay inside the group
	work   device.Region
	kept   device.Region
	stages map[int]stage
	Level  simd.Level // of the kernels
	Err    error
}

// NewStorage returns the storage of a bound group, for kernels of a level. kept is memory of b.Kept bytes, nil for 0.
func NewStorage(b *lower.Bound[Kernel], kept device.Memory, l simd.Level) *Storage {
	s := &Storage{Level: l, group: b.Group, region: b.Regions, work: b.Workspace, stages: b.Kernel.stages}
	if kept != nil {
		s.kept = device.Region{Memory: kept, Bytes: b.Kept}
	}
	return s
}

func elements[T device.HostElement](s *Storage, r device.Region, name string) []T {
	if s.Err != nil || r.Bytes == 0 { // a workspace of no bytes need not have a memory
		return nil
	}
	x, err := device.HostSlice[T](r)
	if err != nil {
		s.Err = fmt.Errorf("%s: %w", name, err)
	}
	return x
}

// Value is the storage of a value of the group.
func Value[T device.HostElement](s *Storage, v int) []T {
	x := s.group.Values[v]
	e := elements[T](s, s.region[v], "value "+x.Name)
	if s.Err == nil && len(e) != x.Type.Shape.Size() {
		s.Err = fmt.Errorf("value %s: region of %d bytes for %v", x.Name, s.region[v].Bytes, x.Type)
	}
	return e
}

// Floats is a value of float32, nil if it stays inside the group. A value stored as bfloat16 has a float32 copy in the
// workspace: inputs are widened before the kernel runs, and results are stored after it.
func (s *Storage) Floats(v int) []float32 {
	if s.region[v].Memory == nil {
		return nil
	}
	if x, ok := s.stages[v]; ok {
		return s.Scratch(x.whole)
	}
	return Value[float32](s, v)
}

// Room hands out parts of a workspace, and of memory that keeps its content between runs, while a group is lowered.
type Room struct{ Bytes, Kept int }

// Part is a piece of the workspace, or of kept memory: elements of one type for each worker, or for all of them.
type Part struct {
	off, elements int
	kept          bool
}

const cacheLine = 64

func (r *Room) take(elements, size int) Part {
	return take(&r.Bytes, Part{elements: elements}, size)
}

func take(bytes *int, p Part, size int) Part {
	p.off = *bytes
	*bytes += Ceil(p.elements*size, cacheLine) * cacheLine
	return p
}

// Keep takes n float32 for all workers, whose content lasts from run to run if keep is set.
func (r *Room) Keep(keep bool, n int) Part {
	if !keep {
		return r.Floats(n)
	}
	return take(&r.Kept, Part{elements: n, kept: true}, 4)
}

// Floats and Doubles take n elements for all workers.
func (r *Room) Floats(n int) Part  { return r.take(n, 4) }
func (r *Room) Doubles(n int) Part { return r.take(n, 8) }

// Several takes n float32 count times.
func (r *Room) Several(count, n int) []Part {
	p := make([]Part, count)
	for i := range p {
		p[i] = r.Floats(n)
	}
	return p
}

// apart is the distance in bytes between parts of different workers: kernels prefetch memory behind their operands,
// and would take cache lines from each other.
const apart = 4<<10 + cacheLine

// Each takes n float32 for each worker.
func (r *Room) Each(workers, n int) []Part {
	p := make([]Part, workers)
	for i := range p {
		p[i] = r.Floats(n)
		r.Bytes += apart
	}
	return p
}

// Scratch, Scratch64 and Scratches give the memory of parts of a Room.
func (s *Storage) Scratch(p Part) []float32 {
	if p.kept {
		return elements[float32](s, s.kept.Part(p.off, 4*p.elements), "kept memory")
	}
	return elements[float32](s, s.work.Part(p.off, 4*p.elements), "workspace")
}

func (s *Storage) Scratch64(p Part) []float64 {
	return elements[float64](s, s.work.Part(p.off, 8*p.elements), "workspace")
}

func (s *Storage) Scratches(p []Part) [][]float32 {
	x := make([][]float32, len(p))
	for i := range p {
		x[i] = s.Scratch(p[i])
	}
	return x
}
