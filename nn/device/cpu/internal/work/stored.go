package work

import (
	"maps"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/lower"
)

// Activations may be stored as bfloat16; kernels still compute in float32. Each worker widens and rounds the values
// that a kernel takes in pieces in its own part of the workspace, where a piece stays in the first levels of cache.
// Other values are widened as a whole before a kernel runs, and rounded after it.

// stage is the float32 copy of a value that is stored as bfloat16.
type stage struct {
	whole Part
	piece []Part // by worker, if it is taken in pieces
	out   bool   // the kernel makes it
}

// lineTail is room behind a piece for a partial last vector.
const lineTail = 16

// Store makes l, on a device with the given workers, store activations of rank 4 and narrow values as bfloat16, and
// read stored ones.
func Store(g *device.Group, l *Lowering, workers int) {
	r := Room{Bytes: l.Workspace}
	l.Kernel.stages = map[int]stage{}
	add := func(v int, out bool) {
		s := stage{out: out}
		if n, ok := l.Kernel.pieces[v]; !ok {
			s.whole = r.Floats(g.Values[v].Type.Shape.Size() + lineTail)
			s.whole.elements -= lineTail
		} else if n > 0 {
			s.piece = r.Each(workers, n+lineTail)
		}
		l.Kernel.stages[v] = s
	}
	for _, v := range g.Inputs {
		if IsStored(g.Values[v]) {
			add(v, false)
		}
	}
	for i := range l.Results {
		x := &l.Results[i]
		stored := x.Layout == NHWC || x.Layout == RowMajor && g.Values[x.Value].Narrow
		if stored {
			x.Layout, x.Bytes = x.Layout+StoredRows, x.Bytes/2
			add(x.Value, true)
		}
		if x.View != nil {
			if stored != IsStored(g.Values[x.View.Value]) {
				x.View = nil
			} else if stored {
				x.View = &lower.View{Value: x.View.Value, Offset: x.View.Offset / 2}
			}
		}
	}
	l.Workspace = r.Bytes
}

// Around adds phases that widen and round whole values before and after the phases of a kernel.
func (s *Storage) Around(phases []Phase) []Phase {
	var before, behind []Phase
	b := kern.Stored(s.Level)
	for _, v := range slices.Sorted(maps.Keys(s.stages)) {
		x := s.stages[v]
		if x.whole.elements == 0 || s.region[v].Memory == nil {
			continue
		}
		all, stored := s.Scratch(x.whole), Value[uint16](s, v)
		p := Phase{Blocks: Ceil(len(all), ElementBlock), Run: func(_, block int) {
			lo, hi := block*ElementBlock, min((block+1)*ElementBlock, len(all))
			if x.out {
				b.Narrowed(stored[lo:hi], all[lo:hi])
			} else {
				b.Widened(all[lo:hi], stored[lo:hi])
			}
		}}
		if x.out {
			behind = append(behind, p)
		} else {
			before = append(before, p)
		}
	}
	return slices.Concat(before, phases, behind)
}

// Pieces is a value that a kernel takes in pieces: float32 in place, or bfloat16 with room for a piece for each worker.
type Pieces struct {
	all    []float32
	stored []uint16
	room   [][]float32
	*kern.BFloat16
}

// Pieces returns a value, nil for a negative one. It is float32 if the kernel does not take it in pieces.
func (s *Storage) Pieces(v int) *Pieces {
	if v < 0 {
		return nil
	}
	x, ok := s.stages[v]
	if !ok || x.whole.elements > 0 {
		return Whole(s.Floats(v))
	}
	p := &Pieces{BFloat16: kern.Stored(s.Level), room: s.Scratches(x.piece)}
	if s.region[v].Memory != nil {
		p.stored = Value[uint16](s, v)
	}
	return p
}

// Whole wraps a float32 value as Pieces.
func Whole(x []float32) *Pieces { return &Pieces{all: x} }

// Stored is the elements as bfloat16, or nil if they are float32.
func (p *Pieces) Stored() []uint16 { return p.stored }

// All is the elements as float32, or nil if they are bfloat16.
func (p *Pieces) All() []float32 { return p.all }

// Read returns elements lo to hi, for a worker, valid until its next Read.
func (p *Pieces) Read(worker, lo, hi int) []float32 {
	if p.stored == nil {
		return p.all[lo:hi]
	}
	x := p.room[worker][:hi-lo]
	p.Widened(x, p.stored[lo:hi])
	return x
}

// Rows is Read for rows of width elements, the first at element from, with their stride in memory.
func (p *Pieces) Rows(worker, from, rows, width, stride int) []float32 {
	if p.stored == nil {
		return p.all[from:]
	}
	p.Copy(p.room[worker], stride, from, rows, width, stride)
	return p.room[worker]
}

// RowsTo is To for such rows, and RowsDone is Done.
func (p *Pieces) RowsTo(worker, from int) []float32 {
	if p.stored == nil {
		return p.all[from:]
	}
	return p.room[worker]
}

func (p *Pieces) RowsDone(worker, from, rows, width, stride int) {
	if p.stored != nil {
		p.Store(p.room[worker], stride, from, rows, width, stride)
	}
}

// Copy copies rows of width elements, the first at element from, stride apart, to rows that are step apart. It writes
// whole vectors.
func (p *Pieces) Copy(dst []float32, step, from, rows, width, stride int) {
	if p.stored != nil {
		if width == step && width == stride {
			rows, width = 1, rows*width
		}
		_, _ = dst[(rows-1)*step+width-1], p.stored[from+(rows-1)*stride+width-1]
		p.Widen(&dst[0], &p.stored[from], rows, width, 4*step, 2*stride)
		return
	}
	for r := range rows {
		copy(dst[r*step:][:width], p.all[from+r*stride:])
	}
}

// Store stores such rows.
func (p *Pieces) Store(src []float32, step, to, rows, width, stride int) {
	if width == step && width == stride {
		rows, width = 1, rows*width
	}
	_, _ = src[(rows-1)*step+width-1], p.stored[to+(rows-1)*stride+width-1]
	p.Narrow(&p.stored[to], &src[0], rows, width, 2*stride, 4*step)
}

// To returns the memory to which a worker writes elements lo to hi before it calls Done.
func (p *Pieces) To(worker, lo, hi int) []float32 {
	if p.stored == nil {
		return p.all[lo:hi]
	}
	return p.room[worker][:hi-lo]
}

// Done stores a worker's elements lo to hi.
func (p *Pieces) Done(worker, lo, hi int) {
	if p.stored != nil {
		p.Narrowed(p.stored[lo:hi], p.room[worker][:hi-lo])
	}
}
