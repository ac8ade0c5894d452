package product

import (
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// matMul runs each pair of matrices as a linear layer with the second matrix as weights. Operands and results in
// another storage order are copied.
func (d Options) matMul(s work.Step, o op.MatMul) (*work.Lowering, error) {
	a, b := s.InType(0).Shape, s.InType(1).Shape
	rows, inner, columns := o.Extents(a, b)
	weightRow, weightChannel := 1, columns
	if o.TransB {
		weightRow, weightChannel = inner, 1
	}
	p := linearProduct(rows, inner, columns, weightRow, weightChannel)
	batch := a.Size() / (rows * inner)
	var r work.Room
	left := ordered(&r, a, work.Strides(s.InValue(0)), o.TransA)
	right := ordered(&r, b, work.Strides(s.InValue(1)), false)
	y := s.OutType()
	strides := work.DataStrides(y)
	var made work.Part
	inPlace := work.InOrder(y.Shape, strides)
	if !inPlace {
		made = r.Floats(y.Shape.Size())
	}
	run := d.batched(&r, p, batch)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		var phases []work.Phase
		x := left.bind(st, s.In[0], &phases)
		w := right.bind(st, s.In[1], &phases)
		dst := st.Floats(s.Out)
		to := dst
		if !inPlace {
			to = st.Scratch(made)
		}
		if st.Err != nil {
			return nil
		}
		phases = append(phases, run(st, x, w, to)...)
		if !inPlace {
			phases = append(phases, work.NewBox(y.Shape, 0, 0, y.Shape.Strides(), strides).Phase(dst, to))
		}
		return phases
	})
	l.Workspace = r.Bytes
	return l, nil
}

// operand is an operand in row-major order, copied if its storage differs.
type operand struct {
	copied bool
	room   work.Part
	box    work.Box
}

// ordered makes an operand from a shape with strides; transposed exchanges the last two dimensions.
func ordered(r *work.Room, shape op.Shape, strides []int, transposed bool) operand {
	if !transposed && work.InOrder(shape, strides) {
		return operand{}
	}
	to := shape.Strides()
	if n := len(shape); transposed {
		to[n-2], to[n-1] = 1, shape[n-2]
	}
	return operand{true, r.Floats(shape.Size()), work.NewBox(shape, 0, 0, strides, to)}
}

// bind returns the elements and adds the phase that copies them, if any.
func (x operand) bind(st *work.Storage, value int, phases *[]work.Phase) []float32 {
	from := st.Floats(value)
	if !x.copied {
		return from
	}
	to := st.Scratch(x.room)
	*phases = append(*phases, x.box.Phase(to, from))
	return to
}

// batched runs batch products like p on consecutive operands.
func (d Options) batched(r *work.Room, p *product, batch int) func(st *work.Storage, x, w, y []float32) []work.Phase {
	part := func(x []float32, i int) []float32 {
		n := len(x) / batch
		return x[i*n:][:n:n]
	}
	set := d.kernels(p)
	if set == nil {
		prepare := p.prepare(d, r, batch)
		return func(st *work.Storage, x, w, y []float32) []work.Phase {
			kernels := prepare(st)
			for i, k := range kernels {
				k.src, k.weights, k.dst = part(x, i), part(w, i), part(y, i)
			}
			return together(kernels)
		}
	}
	t := newTiled(p, set, work.Ceil(d.shares(), batch), work.Ceil(d.Workers, batch), false)
	size, tile := t.scratch()
	packed, tiles, made := r.Several(batch, size), r.Each(d.Workers, tile), t.made.rooms(r, d.Workers)
	split, fresh := splitRooms(r, set.Tiles, d.Workers), t.freshRooms(r, d.Workers)
	return func(st *work.Storage, x, w, y []float32) []work.Phase {
		args, splitters := make([]workerArgs, d.Workers), newSplitters(set.Tiles, st.Scratches(split))
		kernels := make([]*tiledKernel, batch)
		for i := range kernels {
			kernels[i] = &tiledKernel{tiled: t, args: args, src: work.Whole(part(x, i)), weights: part(w, i),
				dst: work.Whole(part(y, i)), packed: st.Scratch(packed[i]), tiles: st.Scratches(tiles),
				rooms: st.Scratches(made), fresh: st.Scratches(fresh), splitters: splitters, bad: make([]uint32, len(t.pieces))}
		}
		return []work.Phase{
			{Blocks: batch * len(t.pieces), Run: func(w, i int) { kernels[i/len(t.pieces)].pack(w, i%len(t.pieces)) }},
			{Blocks: batch * len(t.blocks), Run: func(w, i int) { kernels[i/len(t.blocks)].run(w, i%len(t.blocks)) }},
		}
	}
}
