package rows

import (
	"slices"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// attentionGrad computes the gradients of self-attention with respect to its rows, its bias, or both.
type attentionGrad struct {
	attention
	dy           int // the value
	dRows, dBias int // results, or -1
}

// attentionGrads matches one of the gradients, or both.
func attentionGrads(workers int, level simd.Level) work.Pattern {
	return func(f *lower.Flow, first int) []work.Match {
		s := f.Step(first)
		one := attentionGrad{dRows: -1, dBias: -1}
		o, ok := one.add(s)
		if !ok {
			return nil
		}
		match := func(g attentionGrad, steps ...int) work.Match {
			return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) { return g.lower(s, o, workers, level) }}
		}
		list := []work.Match{match(one, first)}
		for _, i := range f.ReadersOf(s.In[0]) {
			both, t := one, f.Step(i)
			if p, ok := both.add(t); ok && i > first && p == o && both.dRows >= 0 && both.dBias >= 0 &&
				slices.Equal(t.In, s.In) {
				return append([]work.Match{match(both, first, i)}, list...)
			}
		}
		return list
	}
}

// add takes the result of a step if that is one of the gradients.
func (g *attentionGrad) add(s work.Step) (o op.SelfAttention, ok bool) {
	switch t := s.Op.(type) {
	case op.SelfAttentionGrad:
		g.dRows = s.Out
		return op.SelfAttention(t), true
	case op.SelfAttentionGradBias:
		g.dBias = s.Out
		return op.SelfAttention(t), true
	}
	return o, false
}

// attendGrad is the scratch of a worker.
type attendGrad struct {
	multiplier
	packed [5][]float32 // keys, their transpose, that of values; queries and dy of a block
	p, ds  []float32    // weights of a block, and the gradients of its scores
}

// shares is about the number of tasks that gradients with a bias are cut into.
const shares = 64

func (g attentionGrad) lower(s work.Step, o op.SelfAttention, workers int, level simd.Level) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	g.attention, g.dy = newAttention(s, o, level, len(s.In) > 2), s.In[len(s.In)-1]
	var r work.Room
	sizes := []int{
		packedSize(g.set, o.Tokens, g.width), packedSize(g.set, g.width, o.Tokens), packedSize(g.set, g.width, o.Tokens),
		packedSize(g.set, g.block, g.width), packedSize(g.set, g.block, g.width), g.block * g.stride, g.block * g.stride,
	}
	own := make([][]work.Part, len(sizes))
	for i, n := range sizes {
		own[i] = r.Each(workers, n)
	}
	// Matrices that share a bias run in parts, whose sums are added in order: bits do not depend on the workers.
	alike := g.matrices / g.groups
	parts, square := 1, o.Tokens*o.Tokens
	if g.dBias >= 0 {
		parts = min(work.Ceil(shares, g.groups), alike)
	}
	var partial work.Part
	if parts > 1 {
		partial = r.Floats(parts * g.groups * square)
	}
	bind := func(st *work.Storage) []work.Phase {
		x, dy := st.Floats(g.rows), st.Floats(g.dy)
		var bias, dx, sums, dBias []float32
		if g.biases >= 0 {
			bias = st.Floats(g.biases)
		}
		if g.dRows >= 0 {
			dx = st.Floats(g.dRows)
		}
		if g.dBias >= 0 {
			dBias = st.Floats(g.dBias)
			if sums = dBias; parts > 1 {
				sums = st.Scratch(partial)
			}
		}
		list, k := make([]attendGrad, workers), vec.For(st.Level)
		for i := range list {
			list[i] = attendGrad{multiplier: multiplier{set: g.set}, p: st.Scratch(own[5][i]), ds: st.Scratch(own[6][i])}
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
				g.matrix(k, &list[worker], group+i*g.groups, x, dy, bias, dx, sum)
			}
		}}}
		if parts == 1 {
			return phases
		}
		return append(phases, work.Phase{Blocks: g.groups, Run: func(_, group int) {
			dst := dBias[group*square:][:square]
			copy(dst, sums[group*square:])
			for part := 1; part < parts; part++ {
				k.Add(dst, dst, sums[(part*g.groups+group)*square:][:square])
			}
		}})
	}
	l := &work.Lowering{Workspace: r.Bytes, Kernel: work.Kernel{Bind: bind}}
	for _, v := range []int{g.dRows, g.dBias} {
		if v >= 0 {
			t := s.Values[v].Type
			l.Results = append(l.Results, lower.Result{Value: v, Layout: work.Layout(t, device.Data), Bytes: t.Bytes()})
		}
	}
	return l, nil
}

// matrix computes the gradients of matrix b: it sets dx unless that is nil, and adds that of the bias to sum unless that
// is nil.
func (g *attentionGrad) matrix(rows *vec.Set, k *attendGrad, b int, x, dy, bias, dx, sum []float32) {
	tokens, stride := g.Tokens, 3*g.wide
	keys := k.packTransposed(k.packed[1], x[g.place(b, 1, 0):], stride, g.width, tokens)
	values := k.packTransposed(k.packed[2], x[g.place(b, 2, 0):], stride, g.width, tokens)
	keys.padded, values.padded = true, true
	var back factor
	if dx != nil {
		back = k.pack(k.packed[0], x[g.place(b, 1, 0):], stride, tokens, g.width)
	}
	for from := 0; from < tokens; from += g.block {
		n := min(g.block, tokens-from)
		k.product(k.p, g.stride, x[g.place(b, 0, from):], stride, n, keys, false)
		k.product(k.ds, g.stride, dy[g.result(b, from):], g.wide, n, values, false)
		p, ds := k.p[:n*g.stride], k.ds[:n*g.stride]
		g.softmax(rows, p, bias, b, from, n)
		var part []float32
		if sum != nil {
			part = sum[from*tokens:][:n*tokens]
		}
		rows.SoftmaxGradPadded(p, ds, part, float32(g.Scale), tokens, n)
		if dx == nil {
			continue
		}
		add := from > 0
		k.outer(dx[g.place(b, 2, 0):], stride, k.p, g.stride, tokens,
			k.pack(k.packed[4], dy[g.result(b, from):], g.wide, n, g.width), add)
		k.outer(dx[g.place(b, 1, 0):], stride, k.ds, g.stride, tokens,
			k.pack(k.packed[3], x[g.place(b, 0, from):], stride, n, g.width), add)
		k.product(dx[g.place(b, 0, from):], stride, k.ds, g.stride, n, back, false)
	}
}
