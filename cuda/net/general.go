//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/nn/op"
)

// placed are the distances between neighbours along each dimension of a tensor as it is stored.
func placed(s op.Shape) []int {
	if len(s) == 4 { // channels last
		return []int{s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}
	}
	return s.Strides()
}

// dimensions is a table of extents and strides for the kernels of general.cu.
func dimensions(extent op.Shape, x, y []int) []int64 {
	var t []int64
	for i, n := range extent {
		t = append(t, int64(n), int64(x[i]), int64(y[i]))
	}
	return t
}

// integers is a table on the GPU; one of no numbers has one.
func (b *binding) integers(t []int64) driver.Span {
	s, err := b.d.table(driver.Bytes(append(slices.Clone(t), 0)))
	if err != nil {
		b.fail(err)
	}
	return s
}

// A boxDim is a dimension of a box: its extent, and the strides where it comes from and where it goes.
type boxDim struct{ extent, from, to int }

// boxDims are a box's dimensions in the order of places in the result. Neighbours that lie together in both places are
// one dimension.
func boxDims(extent op.Shape, src, dst []int) []boxDim {
	var all, merged []boxDim
	for i, n := range extent {
		if n > 1 {
			all = append(all, boxDim{n, src[i], dst[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b boxDim) int { return b.to - a.to })
	for _, d := range all {
		if i := len(merged) - 1; i >= 0 && merged[i].from == d.extent*d.from && merged[i].to == d.extent*d.to {
			merged[i] = boxDim{merged[i].extent * d.extent, d.from, d.to}
		} else {
			merged = append(merged, d)
		}
	}
	return merged
}

// box adds a copy of a box between tensors, 16 bytes at a time where they lie together.
func (b *binding) box(x, y driver.Span, extent op.Shape, from, to int, src, dst []int) {
	dims, bytes := boxDims(extent, src, dst), form{narrow: b.narrow}.bytes(op.T(op.Float32, 1))
	last := len(dims) - 1
	if last < 0 || last == 0 && dims[0].from == 1 && dims[0].to == 1 {
		size := int64(extent.Size() * bytes)
		if a, c := x.Span(int64(from*bytes), size), y.Span(int64(to*bytes), size); a != c {
			b.copy(c, a)
		}
		return
	}
	unit := 16 / bytes
	packs := packed(x, y) && dims[last].from == 1 && dims[last].to == 1 && from%unit == 0 && to%unit == 0 &&
		dims[last].extent%unit == 0
	for i := range dims[:last] {
		packs = packs && dims[i].from%unit == 0 && dims[i].to%unit == 0
	}
	var table []int64
	n := 1
	for i, d := range dims {
		switch {
		case packs && i == last:
			d.extent /= unit
		case packs:
			d.from, d.to = d.from/unit, d.to/unit
		}
		n *= d.extent
		table = append(table, int64(d.extent), int64(d.from), int64(d.to))
	}
	if packs {
		from, to = from/unit, to/unit
	}
	b.each("general.cu", "nn_box", n, x, y.Updated(), b.integers(table), len(dims), int64(from), int64(to), packs)
}

// moves lowers an op that moves boxes of elements.
func (s step) moves(o op.Mover) (*lowering, error) {
	var each []int
	types := make([]op.Type, len(s.In))
	for i := range s.In {
		each, types[i] = append(each, i), s.InType(i)
	}
	y := s.OutType().Shape
	f := s.like(s.OutType(), each...)
	wants := make([]want, len(s.In))
	for i := range wants {
		wants[i] = s.want(i, form{last: len(types[i].Shape) == 4, narrow: f.narrow, scaled: f.scaled})
	}
	return s.result(f, 0, wants, func(b *binding, in []driver.Span, out driver.Span) {
		covered := 0
		moves := o.Moves(types...)
		for _, m := range moves {
			covered += m.Extent.Size()
		}
		if covered < y.Size() {
			b.each("general.cu", "nn_zero", y.Size(), out.Written())
		}
		for _, m := range moves {
			from, to, src, dst := m.Along(placed(types[m.Operand].Shape), placed(y))
			b.box(in[m.Operand], out, m.Extent, from, to, src, dst)
		}
	}), nil
}

// reduce lowers a reduction. The result may be a gradient of weights and is float32.
func (s step) reduce(o op.Reduce) (*lowering, error) {
	x, y := s.InType(0).Shape, s.OutType().Shape
	have := s.form(0)
	have.last = len(x) == 4
	var kept, reduced []int64
	from, to := placed(x), placed(y)
	for i, n := range x {
		if slices.Contains(o.Axes, i) {
			reduced = append(reduced, int64(n), int64(from[i]), 0)
		} else {
			kept = append(kept, int64(n), int64(from[i]), int64(to[i]))
		}
	}
	l := s.result(form{last: have.last}, 0, []want{s.want(0, have)},
		func(b *binding, in []driver.Span, out driver.Span) {
			var scale driver.Span
			if have.scaled {
				scale = b.d.scale()
			}
			b.each("general.cu", "nn_reduce", y.Size(), in[0], out.Written(), b.integers(slices.Concat(kept, reduced)),
				len(kept)/3, len(reduced)/3, int(o.By), int64(o.Count(x)), scale)
		})
	l.Kernel.narrow = have.narrow
	return l, nil
}

// gather lowers picked elements.
func (s step) gather(o op.Gather) (*lowering, error) {
	x, y := s.InType(0).Shape, s.OutType().Shape
	f := s.form(0)
	f.last = len(x) == 4
	return s.result(f, 0, []want{s.want(0, f)}, func(b *binding, in []driver.Span, out driver.Span) {
		b.each("general.cu", "nn_gather", y.Size(), in[0], in[1], out.Written(),
			b.integers(dimensions(y, placed(x), placed(y))), len(y), o.Axis, x[o.Axis])
	}), nil
}

// gatherGrad lowers the gradient of picked elements.
func (s step) gatherGrad(o op.GatherGrad) (*lowering, error) {
	dy, x := s.InType(0).Shape, s.OutType().Shape
	have := s.form(0)
	have.last = len(dy) == 4
	l := s.result(form{last: have.last}, 0, []want{s.want(0, have)},
		func(b *binding, in []driver.Span, out driver.Span) {
			var scale driver.Span
			if have.scaled {
				scale = b.d.scale()
			}
			b.each("general.cu", "nn_gather_grad", x.Size(), in[0], in[1], out.Written(),
				b.integers(dimensions(x, placed(dy), placed(x))), len(x), o.Axis, dy[o.Axis], scale)
		})
	l.Kernel.narrow = have.narrow
	return l, nil
}

// matMul lowers products of pairs of matrices, all in one call. Those in values of four dimensions are copied.
func (s step) matMul(o op.MatMul) (*lowering, error) {
	types := []op.Type{s.InType(0), s.InType(1), s.OutType()}
	m, k, n := o.Extents(types[0].Shape, types[1].Shape)
	batch := types[2].Shape.Size() / (m * n)
	four := len(types[0].Shape) == 4
	narrow := s.d.narrow()
	f := form{last: four, scaled: s.form(0).scaled || s.form(1).scaled}
	wants := []want{
		s.want(0, form{last: four, narrow: narrow, scaled: s.form(0).scaled}),
		s.want(1, form{last: four, narrow: narrow, scaled: s.form(1).scaled && !s.form(0).scaled}),
	}
	var room []int // bytes of each value in the workspace
	size := 0
	if four {
		for i, t := range types {
			bytes := form{narrow: narrow && i < 2}.bytes(t)
			room = append(room, size)
			size += (bytes + 255) / 256 * 256
		}
	}
	l := s.result(f, size, wants, func(b *binding, in []driver.Span, out driver.Span) {
		x, w, y := in[0], in[1], out
		wide := *b
		wide.narrow = false
		if four {
			part := func(i int) driver.Span {
				return b.work.Span(int64(room[i]), int64(form{narrow: narrow && i < 2}.bytes(types[i])))
			}
			x, w, y = part(0), part(1), part(2)
			for i, to := range []driver.Span{x, w} {
				t := types[i].Shape
				b.box(in[i], to, t, 0, 0, placed(t), t.Strides())
			}
		}
		d := b.d
		b.calls = append(b.calls, func() error {
			return d.blas.GemmBatch(d.opts.Precision, o.TransB, o.TransA, n, m, k, batch, w, x, y, false)
		})
		if four {
			wide.calls, wide.err = b.calls, b.err
			t := types[2].Shape
			wide.box(y, out, t, 0, 0, t.Strides(), placed(t))
			b.calls, b.err = wide.calls, wide.err
		}
	})
	l.Kernel.narrow = narrow
	return l, nil
}
