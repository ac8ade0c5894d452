package rows

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// attentionGrad computes gradients of an attention, those whose values are not -1.
type attentionGrad struct {
	lookup            // its result is the gradient with respect to the attention's
	by     [3]strided // with respect to queries, keys and values
	bias   int
}

// attentionGrads matches gradients of one attention: all of them, or the first alone.
func attentionGrads(workers int, kernels Kernels) work.Pattern {
	return func(f *lower.Flow, first int) []work.Match {
		s := f.Step(first)
		of := attentionOf(s.Op)
		if of == nil {
			return nil
		}
		match := func(g attentionGrad, steps ...int) work.Match {
			return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) {
				outs := make([]int, len(steps))
				for i, at := range steps {
					outs[i] = f.Step(at).Out
				}
				return g.lower(s, outs, workers, kernels)
			}}
		}
		none := strided{value: -1}
		one := attentionGrad{lookup: gradLookup(s, kernels), by: [3]strided{none, none, none}, bias: -1}
		one.add(s)
		all, steps := one, []int{first}
		for _, i := range f.ReadersOf(s.In[0]) {
			if t := f.Step(i); i > first && attentionOf(t.Op) == of && slices.Equal(t.In, s.In) && all.add(t) {
				steps = append(steps, i)
			}
		}
		if len(steps) == 1 {
			return []work.Match{match(one, first)}
		}
		return []work.Match{match(all, steps...), match(one, first)}
	}
}

// attentionOf is the attention that o is a gradient of, or nil.
func attentionOf(o op.Op) op.Op {
	switch o := o.(type) {
	case op.SelfAttentionGrad:
		return op.SelfAttention(o)
	case op.SelfAttentionGradBias:
		return op.SelfAttention(o)
	case op.AttentionGrad:
		return op.Attention{Scale: o.Scale}
	}
	return nil
}

// gradLookup takes the operands of a gradient: those of the attention and the gradient with respect to its result.
func gradLookup(s work.Step, kernels Kernels) lookup {
	last := len(s.In) - 1
	if o, ok := attentionOf(s.Op).(op.SelfAttention); ok {
		return selfLookup(o, s, s.In[:last], s.In[last], kernels)
	}
	return lookupOf(op.Attention{Scale: s.Op.(op.AttentionGrad).Scale}, s, s.In[:last], s.In[last], kernels)
}

// add takes the result of a gradient, unless it has that already.
func (g *attentionGrad) add(s work.Step) bool {
	bias, by := false, 0
	switch o := s.Op.(type) {
	case op.SelfAttentionGrad:
		if g.by[0].value >= 0 {
			return false
		}
		g.by[0], g.by[1], g.by[2] = selfParts(op.SelfAttention(o), s.Out, s.OutType().Shape[1]/3)
		return true
	case op.SelfAttentionGradBias:
		bias = true
	case op.AttentionGrad:
		bias, by = o.By == len(g.by), o.By
	}
	switch {
	case bias && g.bias < 0:
		g.bias = s.Out
	case !bias && g.by[by].value < 0:
		rows := s.OutType().Shape
		g.by[by] = dense(s.Out, rows[1], rows[2])
	default:
		return false
	}
	return true
}

// attendGrad is the scratch of a worker.
type attendGrad struct {
	multiplier
	packed [5][]float32 // keys, their transpose, that of values; queries and dy of a block
	p, ds  []float32    // weights of a block, and the gradients of its scores
	_      [128]byte    // workers write to cache lines of their own
}

// shares is about the number of tasks that gradients with a bias are cut into.
const shares = 64

// lower computes the gradients outs of the attention that s is one of.
func (g attentionGrad) lower(s work.Step, outs []int, workers int, kernels Kernels) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	var r work.Room
	stride := vec.Padded(g.keys)
	sizes := []int{
		kernels.packedSize(g.keys, g.width), kernels.packedSize(g.width, g.keys), kernels.packedSize(g.wide, g.keys),
		kernels.packedSize(g.block, g.width), kernels.packedSize(g.block, g.wide), g.block * stride, g.block * stride,
	}
	room := kernels.tiledRoom(&r, workers, g.block, max(g.width, g.wide, g.keys), g.keys)
	query := hold(&r, s, g.query.value, workers, g.block, g.width)
	key := hold(&r, s, g.key.value, workers, g.keys, g.width)
	content := hold(&r, s, g.content.value, workers, g.keys, g.wide)
	result := hold(&r, s, g.result.value, workers, g.block, g.wide)
	by := [3]held{
		hold(&r, s, g.by[0].value, workers, g.block, g.width), hold(&r, s, g.by[1].value, workers, g.keys, g.width),
		hold(&r, s, g.by[2].value, workers, g.keys, g.wide),
	}
	own := make([][]work.Part, len(sizes))
	for i, n := range sizes {
		own[i] = r.Each(workers, n)
	}
	// Matrices whose gradients of a bias are added run in parts, whose sums are added in order: bits do not depend on the
	// workers.
	alike := g.matrices / g.groups
	parts, square := alike, g.queries*g.keys
	if g.bias >= 0 {
		parts = min(work.Ceil(shares, g.groups), alike)
	}
	added := g.bias >= 0 && parts > 1
	var partial work.Part
	if added {
		partial = r.Floats(parts * g.groups * square)
	}
	bind := func(st *work.Storage) []work.Phase {
		b := gradStorage{k: vec.For(st.Level), q: query.bind(st), x: key.bind(st), v: content.bind(st), dy: result.bind(st)}
		if g.biases >= 0 {
			b.bias = st.Floats(g.biases)
		}
		for i, d := range g.by {
			if d.value >= 0 {
				b.by[i] = by[i].bind(st)
			}
		}
		var sums, dBias []float32
		if g.bias >= 0 {
			dBias = st.Floats(g.bias)
			if sums = dBias; added {
				sums = st.Scratch(partial)
			}
		}
		list := make([]attendGrad, workers)
		for i := range list {
			list[i] = attendGrad{
				multiplier: kernels.multiplier(st, room, i), p: st.Scratch(own[5][i]), ds: st.Scratch(own[6][i]),
			}
			for j := range list[i].packed {
				list[i].packed[j] = st.Scratch(own[j][i])
			}
		}
		phases := []work.Phase{{Blocks: g.groups * parts, Run: func(worker, block int) {
			group, part := block%g.groups, block/g.groups
			var sum []float32
			if sums != nil {
				sum = sums[block*square:][:square]
				clear(sum)
			}
			for i := part * alike / parts; i < (part+1)*alike/parts; i++ {
				g.matrix(worker, &list[worker], group+i*g.groups, &b, sum)
			}
		}}}
		if !added {
			return phases
		}
		return append(phases, work.Phase{Blocks: g.groups, Run: func(_, group int) {
			dst := dBias[group*square:][:square]
			copy(dst, sums[group*square:])
			for part := 1; part < parts; part++ {
				b.k.Add(dst, dst, sums[(part*g.groups+group)*square:][:square])
			}
		}})
	}
	l := &work.Lowering{Workspace: r.Bytes, Kernel: work.Kernel{Bind: bind}}
	l.Kernel.Take(0, g.query.value, g.key.value, g.content.value, g.result.value)
	l.Kernel.Take(0, g.by[0].value, g.by[1].value, g.by[2].value)
	for _, v := range outs {
		t := s.Values[v].Type
		l.Results = append(l.Results, lower.Result{Value: v, Layout: work.Layout(t, device.Data), Bytes: t.Bytes()})
	}
	return l, nil
}

// gradStorage are the operands, and the results that are computed.
type gradStorage struct {
	k           *vec.Set
	q, x, v, dy *held
	bias        []float32
	by          [3]*held // nil for none
}

// matrix computes the gradients of matrix b, and adds that of the bias to sum unless that is nil.
func (g *attentionGrad) matrix(worker int, k *attendGrad, b int, s *gradStorage, sum []float32) {
	stride := vec.Padded(g.keys)
	x, ldx := s.x.read(worker, g.key.at(b, 0), g.keys, g.key.stride)
	keys := k.packTransposed(k.packed[1], x, ldx, g.width, g.keys)
	var back factor
	if s.by[0] != nil {
		back = k.pack(k.packed[0], x, ldx, g.keys, g.width)
	}
	v, ldv := s.v.read(worker, g.content.at(b, 0), g.keys, g.content.stride)
	values := k.packTransposed(k.packed[2], v, ldv, g.wide, g.keys)
	keys.padded, values.padded = true, true
	for from := 0; from < g.queries; from += g.block {
		n, add := min(g.block, g.queries-from), from > 0
		q, ldq := s.q.read(worker, g.query.at(b, from), n, g.query.stride)
		dy, ldy := s.dy.read(worker, g.result.at(b, from), n, g.result.stride)
		k.product(k.p, stride, q, ldq, n, keys, false)
		k.product(k.ds, stride, dy, ldy, n, values, false)
		p, ds := k.p[:n*stride], k.ds[:n*stride]
		g.softmax(s.k, p, s.bias, b, from, n)
		var part []float32
		if sum != nil {
			part = sum[from*g.keys:][:n*g.keys]
		}
		s.k.SoftmaxGradPadded(p, ds, part, float32(g.scale), g.keys, n)
		if dv := s.by[2]; dv != nil {
			to, ldc := dv.to(worker, g.by[2].at(b, 0), g.by[2].stride)
			k.outer(to, ldc, k.p, stride, g.keys, k.pack(k.packed[4], dy, ldy, n, g.wide), add)
		}
		if dk := s.by[1]; dk != nil {
			to, ldc := dk.to(worker, g.by[1].at(b, 0), g.by[1].stride)
			k.outer(to, ldc, k.ds, stride, g.keys, k.pack(k.packed[3], q, ldq, n, g.width), add)
		}
		if dq := s.by[0]; dq != nil {
			at := g.by[0].at(b, from)
			to, ldc := dq.to(worker, at, g.by[0].stride)
			k.product(to, ldc, k.ds, stride, n, back, false)
			dq.done(worker, at, n, g.by[0].stride)
		}
	}
	for i, d := range s.by[1:] {
		if d != nil {
			d.done(worker, g.by[1+i].at(b, 0), g.keys, g.by[1+i].stride)
		}
	}
}
