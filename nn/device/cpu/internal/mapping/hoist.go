package mapping

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// early is a part of an expression whose operands are all repeated alike. It is computed once, before the repetition,
// and becomes an operand of the rest.
type early struct {
	code    *Code
	axes    op.Axes
	size    int // elements
	result  work.Part
	scratch []work.Part
}

// hoist takes out the parts of an expression that are worth computing beforehand, for a result of the given samples and
// order. The operands of the rest are those of the expression, followed by these parts.
func hoist(nodes []expr.Node, axes []op.Axes, o order, samples int) (rest []expr.Node, all []op.Axes, parts []early) {
	along := make([]op.Axes, len(nodes))
	for i, n := range nodes {
		switch {
		case n.Kind == expr.KindArg:
			along[i] = axes[n.Index]
		case n.Kind == expr.KindRandom && n.PerSample:
			along[i] = op.Samples
		case n.Kind == expr.KindRandom:
			along[i] = op.All
		}
		for _, a := range n.In {
			along[i] |= along[a]
		}
	}
	inner := func(a op.Axes) (order, int) {
		p, n := order{1, 1, o.last}, 1
		if a&op.Samples != 0 {
			n = samples
		}
		if a&op.Channels != 0 {
			p.channels = o.channels
		}
		if a&op.Pixels != 0 {
			p.pixels = o.pixels
		}
		return p, n * p.channels * p.pixels
	}
	total := samples * o.channels * o.pixels
	out := make([]bool, len(nodes))
	for i, n := range nodes {
		for _, a := range n.In {
			if k := nodes[a].Kind; k != expr.KindArg && k != expr.KindConst && along[a] != along[i] {
				_, size := inner(along[a])
				out[a] = 2*size <= total
			}
		}
	}
	all = slices.Clone(axes)
	rest = reach(nodes, len(nodes)-1, func(i int) (expr.Node, bool) {
		if !out[i] {
			return expr.Node{}, false
		}
		p, size := inner(along[i])
		own := slices.Clone(axes)
		for j, a := range own {
			if a == along[i] {
				own[j] = op.All
			}
		}
		sub := reach(nodes, i, func(int) (expr.Node, bool) { return expr.Node{}, false })
		parts = append(parts, early{code: newCode(sub, p, own), axes: along[i], size: size})
		all = append(all, along[i])
		return expr.Node{Kind: expr.KindArg, Index: len(all) - 1}, true
	})
	return rest, all, parts
}

// reach lists the nodes that compute node root. If leaf returns a node for i, that node replaces node i.
func reach(nodes []expr.Node, root int, leaf func(i int) (expr.Node, bool)) []expr.Node {
	var list []expr.Node
	at := make(map[int]int)
	var visit func(i int) int
	visit = func(i int) int {
		if k, ok := at[i]; ok {
			return k
		}
		n, ok := leaf(i)
		if !ok {
			n = nodes[i]
			n.In = slices.Clone(n.In)
			for j, a := range n.In {
				n.In[j] = visit(a)
			}
		}
		at[i] = len(list)
		list = append(list, n)
		return at[i]
	}
	visit(root)
	return list
}

// phase computes e into dst.
func (e *early) phase(st *work.Storage, dst []float32, numbers []*work.Pieces, counters [][]int32) work.Phase {
	b := e.code.Bind(vec.For(st.Level), st.Scratches(e.scratch), Block, numbers, counters)
	const part = 4 * Block
	all := work.Whole(dst)
	return work.Phase{Blocks: work.Ceil(len(dst), part), Run: func(worker, block int) {
		lo := block * part
		b.RunAll(worker, all, lo, min(lo+part, len(dst)))
	}}
}
