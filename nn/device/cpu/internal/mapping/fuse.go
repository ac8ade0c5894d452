package mapping

import (
	"math"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op/expr"
)

// A fused node stands for several nodes of an expression that one kernel computes: hardswish, ReLU6 and their gradients
// with the same bits, the others with other rounding and other values at infinities.
const (
	fusedSiLU expr.Kind = 128 + iota
	fusedSiLUGrad
	fusedHardswish
	fusedHardswishGrad
	fusedReLU6
	fusedReLU6Grad
	fusedGELU
	fusedGELUGrad
)

// fusible are the expressions that have kernels, of operands 0 and, for gradients, 1, by kind from fusedSiLU on. That
// of GELU is without the factor ½, which may have become part of another one.
var fusible = func() (list [][]expr.Node) {
	x, dy := expr.Arg(0), expr.Arg(1)
	twice := x.Mul(x.Scale(math.Sqrt2 / 2).Erf().Shift(1))
	for _, e := range []struct{ pattern, whole expr.Expr }{
		{pattern: x.Mul(x.Sigmoid())},
		{pattern: x.Mul(x.Shift(3).Clamp(0, 6)).Scale(1. / 6)},
		{pattern: x.Clamp(0, 6)},
		{twice, twice.Scale(.5)},
	} {
		if !e.whole.Valid() {
			e.whole = e.pattern
		}
		list = append(list, e.pattern.Nodes(), e.whole.Gradient(dy)[0].Nodes())
	}
	return list
}()

// fuse replaces parts of an expression that have kernels.
func fuse(nodes []expr.Node) []expr.Node {
	for k, pattern := range fusible {
		for i := range nodes {
			m := match{pattern: pattern, nodes: nodes}
			if !m.at(len(pattern)-1, i) || !m.inside(i) {
				continue
			}
			n := expr.Node{Kind: fusedSiLU + expr.Kind(k), In: m.operands()}
			if n.Kind == fusedGELU {
				nodes = doubled(nodes, i, n)
			} else {
				nodes = slices.Clone(nodes)
				nodes[i] = n
			}
			nodes = reach(nodes, len(nodes)-1, func(int) (expr.Node, bool) { return expr.Node{}, false })
			return fuse(nodes)
		}
	}
	return nodes
}

// countFused is the number of parts of an expression that have kernels.
func countFused(nodes []expr.Node) (n int) {
	for _, x := range fuse(nodes) {
		if x.Kind >= fusedSiLU {
			n++
		}
	}
	return n
}

// doubled replaces node i by 2n, or c times node i by 2c times n. So a number c that comes from the next expression
// gives the bits that it gives there, except for results that overflow or are subnormal.
func doubled(nodes []expr.Node, i int, n expr.Node) []expr.Node {
	factor := 2.0
	if j := soleReader(nodes, i); j >= 0 && nodes[j].Kind == expr.KindMul {
		for _, a := range nodes[j].In {
			if nodes[a].Kind == expr.KindConst {
				i, factor = j, 2*nodes[a].Value
			}
		}
	}
	list := slices.Clone(nodes)
	if factor == 1 {
		list[i] = n
		return list
	}
	list = slices.Insert(list, i, n, expr.Node{Kind: expr.KindConst, Value: factor})
	list[i+2] = expr.Node{Kind: expr.KindMul, In: []int{i, i + 1}}
	for j := i + 3; j < len(list); j++ {
		in := slices.Clone(list[j].In)
		for k, a := range in {
			if a >= i {
				in[k] = a + 2
			}
		}
		list[j].In = in
	}
	return list
}

// soleReader is the only node that reads node i, or -1.
func soleReader(nodes []expr.Node, i int) int {
	reader := -1
	for j, n := range nodes {
		for _, a := range n.In {
			if a == i && reader >= 0 {
				return -1
			}
			if a == i {
				reader = j
			}
		}
	}
	return reader
}

// match finds a pattern in an expression.
type match struct {
	pattern, nodes []expr.Node
	pairs          [][2]int // nodes of the pattern and of the expression
}

// at reports whether node p of the pattern can stand for node i. Operands of commutative functions may be exchanged.
func (m *match) at(p, i int) bool {
	a, b, old := m.pattern[p], m.nodes[i], len(m.pairs)
	for _, q := range m.pairs {
		if q[0] == p {
			return q[1] == i
		}
	}
	m.pairs = append(m.pairs, [2]int{p, i})
	switch {
	case a.Kind == expr.KindArg:
		return true
	case a.Kind != b.Kind || a.Value != b.Value || len(a.In) != len(b.In):
	case m.all(a.In, b.In):
		return true
	case len(a.In) == 2 && (a.Kind == expr.KindAdd || a.Kind == expr.KindMul):
		m.pairs = m.pairs[:old+1]
		if m.all(a.In, []int{b.In[1], b.In[0]}) {
			return true
		}
	}
	m.pairs = m.pairs[:old]
	return false
}

func (m *match) all(p, i []int) bool {
	for k := range p {
		if !m.at(p[k], i[k]) {
			return false
		}
	}
	return true
}

// operands are the nodes that stand for the pattern's operands.
func (m *match) operands() []int {
	list := make([]int, 0, 2)
	for _, q := range m.pairs {
		if n := m.pattern[q[0]]; n.Kind == expr.KindArg {
			list = append(list, make([]int, max(0, n.Index+1-len(list)))...)
			list[n.Index] = q[1]
		}
	}
	return list
}

// inside reports whether nothing but root is read outside the match: else parts would be computed twice.
func (m *match) inside(root int) bool {
	matched := func(i int) bool {
		return slices.ContainsFunc(m.pairs, func(q [2]int) bool {
			k := m.pattern[q[0]].Kind
			return q[1] == i && k != expr.KindArg && k != expr.KindConst
		})
	}
	for i, n := range m.nodes {
		for _, a := range n.In {
			if a != root && matched(a) && !matched(i) {
				return false
			}
		}
	}
	return true
}

// computeFused applies a fused function to elements.
func computeFused(k *vec.Set, kind expr.Kind, to []float32, in *[3][]float32) {
	switch kind {
	case fusedSiLU:
		k.SiLU(to, in[0])
	case fusedSiLUGrad:
		k.SiLUGrad(to, in[0], in[1])
	case fusedHardswish:
		k.Hardswish(to, in[0])
	case fusedHardswishGrad:
		k.HardswishGrad(to, in[0], in[1])
	case fusedReLU6:
		k.ReLU6(to, in[0])
	case fusedReLU6Grad:
		k.ReLU6Grad(to, in[0], in[1])
	case fusedGELU:
		k.GELU(to, in[0])
	case fusedGELUGrad:
		k.GELUGrad(to, in[0], in[1])
	}
}

// activation is the one that has kernels behind a batch normalisation.
func activation(k expr.Kind) (a vec.Activation, ok bool) {
	switch k {
	case fusedSiLU, fusedSiLUGrad:
		return vec.SiLU, true
	case fusedHardswish, fusedHardswishGrad:
		return vec.Hardswish, true
	case fusedReLU6, fusedReLU6Grad:
		return vec.ReLU6, true
	}
	return 0, false
}

// Activation finds the activation that the chain is of the other kernel's result. Only activations with kernels behind
// a batch normalisation are ok.
func (c *Chain) Activation() (a vec.Activation, ok bool) {
	nodes := fuse(c.Map.Expr.Nodes())
	a, ok = activation(nodes[len(nodes)-1].Kind)
	return a, ok && len(nodes) == 2 && c.reads(nodes[0])
}

// ActivationGrad finds such an activation whose gradient the chain takes at the other kernel's result, and the chain
// that makes the gradient's dy without that result.
func (c *Chain) ActivationGrad() (a vec.Activation, dy Chain, ok bool) {
	nodes := fuse(c.Map.Expr.Nodes())
	last := nodes[len(nodes)-1]
	if a, ok = activation(last.Kind); !ok || len(last.In) != 2 {
		return 0, Chain{}, false
	}
	dy = *c
	dy.nodes = reach(nodes, last.In[1], func(int) (expr.Node, bool) { return expr.Node{}, false })
	return a, dy, c.reads(nodes[last.In[0]]) && !slices.ContainsFunc(dy.nodes, c.reads)
}

// reads reports whether a node is the operand that another kernel makes.
func (c *Chain) reads(n expr.Node) bool { return n.Kind == expr.KindArg && n.Index == c.made }

// Value is the activation of the result's shape that a chain of ActivationGrad is, or -1 if it computes something.
func (c *Chain) Value() int {
	if len(c.nodes) != 1 || c.nodes[0].Kind != expr.KindArg {
		return -1
	}
	v := c.In[c.nodes[0].Index]
	x, y := c.Last.Values[v], c.Last.OutType()
	if !x.Type.Shape.Equal(y.Shape) || work.Order(x) != work.Layout(y, device.Data) {
		return -1
	}
	return v
}
