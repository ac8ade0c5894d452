package mapping

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// Elements is the body of a pass of an optimiser as calls of vector kernels on blocks of elements.
type Elements struct {
	nodes   []expr.Node
	slot    []int // by node: its buffer; -1 for operands
	slots   int
	results []output
}

// output is a result with its destination.
type output struct{ node, to int }

// NewElements compiles a body.
func NewElements(b *update.Body) *Elements {
	nodes, results, to := b.Nodes()
	e := &Elements{nodes: nodes}
	last := make([]int, len(nodes)) // the last reader of each node
	for i, n := range nodes {
		for _, a := range n.In {
			last[a] = i
		}
	}
	stored := make([]bool, len(nodes))
	for k, i := range results {
		e.results = append(e.results, output{i, to[k]})
		last[i] = len(nodes) // results stay until all are known
		stored[i] = stored[i] || to[k] < update.Vectors
	}
	var free []int
	for i, n := range nodes {
		for _, a := range slices.Compact(slices.Sorted(slices.Values(n.In))) { // kernels may overwrite their operands
			if s := e.slot[a]; s >= 0 && last[a] == i {
				free = append(free, s)
			}
		}
		s := -1
		switch k := len(free); {
		case n.Kind == expr.KindArg && n.Index < update.Vectors && !stored[i]: // read in place
		case n.Kind == expr.KindArg || n.Kind == expr.KindConst: // filled once
			s = e.slots
			e.slots++
			last[i] = len(nodes)
		case k > 0:
			s, free = free[k-1], free[:k-1]
		default:
			s = e.slots
			e.slots++
		}
		e.slot = append(e.slot, s)
	}
	return e
}

// Scratch is the number of elements of scratch of a worker.
func (e *Elements) Scratch() int { return e.slots * Block }

// Run computes the body on p and adds squares to sums, in the order of elements.
func (e *Elements) Run(k *vec.Set, scratch []float32, p *update.Piece[float32], c *[update.MaxCoefficients + 1]float32,
	sums *update.Sums) {
	const most = 64
	var few [most][]float32
	values := few[:]
	if len(e.nodes) > most {
		values = make([][]float32, len(e.nodes))
	}
	for i, n := range e.nodes {
		switch {
		case n.Kind == expr.KindArg && n.Index >= update.Vectors:
			k.Fill(scratch[e.slot[i]*Block:][:Block], c[n.Index-update.Vectors])
		case n.Kind == expr.KindConst:
			k.Fill(scratch[e.slot[i]*Block:][:Block], float32(n.Value))
		}
	}
	vectors := [update.Vectors][]float32{p.W, p.G, p.State[0], p.State[1]}
	for lo := 0; lo < len(p.W); lo += Block {
		size := min(Block, len(p.W)-lo)
		for i, n := range e.nodes {
			if e.slot[i] < 0 {
				values[i] = vectors[n.Index][lo:][:size]
				continue
			}
			to := scratch[e.slot[i]*Block:][:size]
			switch {
			case n.Kind == expr.KindArg && n.Index < update.Vectors:
				copy(to, vectors[n.Index][lo:])
			case n.Kind != expr.KindArg && n.Kind != expr.KindConst:
				var in [3][]float32
				for j, a := range n.In {
					in[j] = values[a]
				}
				compute(k, n.Kind, to, &in)
			}
			values[i] = to
		}
		e.put(values, &vectors, lo, sums)
	}
}

// put stores the results of a block from lo on. Squares come first: their operands may be overwritten.
func (e *Elements) put(values [][]float32, vectors *[update.Vectors][]float32, lo int, sums *update.Sums) {
	for _, r := range e.results {
		if r.to >= update.Vectors {
			lanes := &sums[r.to-update.Vectors]
			for j, x := range values[r.node] { // a block begins at lane 0
				lanes[j%8] += float64(float64(x) * float64(x))
			}
		}
	}
	for _, r := range e.results {
		if r.to < update.Vectors {
			copy(vectors[r.to][lo:], values[r.node])
		}
	}
}
