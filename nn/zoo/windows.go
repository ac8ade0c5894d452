package zoo

import (
	"cmp"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// window is attention among size×size tokens.
type window struct {
	size, heads int
	scale       float64 // of the scores; 0 means 1/√(elements of a head)
	mask        *G.Node // added to the scores: [windows of an image, heads, size⁴]; nil: none

	qkv, proj string // names of the linear layers
	index     []int  // shape that the state dict gives the indices of offsets
}

// windowAttention is attention for rows x of windows, one after the other.
func (b layer) windowAttention(name string, x *G.Node, w window) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	bias := b.offsetBias(name, w)
	o := op.SelfAttention{Tokens: w.size * w.size, Heads: w.heads,
		Scale: cmp.Or(w.scale, 1/math.Sqrt(float64(c)/float64(w.heads)))}
	x = b.Apply(name+".attention", o, b.Linear(name+w.qkv, x, 3*c), bias)
	return b.Linear(name+w.proj, x, c)
}

// offsetBias is the bias of scores, one for each head and offset between two tokens, plus the mask.
func (b layer) offsetBias(name string, w window) *G.Node {
	extent, t := 2*w.size-1, w.size*w.size
	table := b.AddParam(nn.Param{Name: name + ".relative_position_bias_table", Shape: op.Shape{extent * extent, w.heads},
		BiasOrNorm: true})
	index, stored := make([]int32, t*t), make([]int64, t*t)
	for i := range index {
		from, to := i/t, i%t
		down, right := from/w.size-to/w.size, from%w.size-to%w.size
		index[i] = int32((down+w.size-1)*extent + right + w.size - 1)
		stored[i] = int64(index[i])
	}
	b.Buffer(name+".relative_position_index", stored, w.index...)
	places := b.Constant(name+".offsets", op.Tensor{Shape: op.Shape{t * t}, Data: index})
	bias := b.Permute(name+".by_head", b.Gather(name+".by_pair", table, 0, places), 1, 0)
	n := w.heads
	if w.mask != nil {
		bias = b.Reshape(name+".all", bias, 1, w.heads, t*t)
		bias = b.Map(name+".masked", expr.Arg(0).Add(expr.Arg(1)), w.mask, bias)
		n *= w.mask.Shape()[0]
	}
	return b.Reshape(name+".bias", bias, n, t, t)
}

// perceptron is two linear layers with a GELU in between.
func (b layer) perceptron(expand, contract string, x *G.Node, hidden, out int) *G.Node {
	return b.Linear(contract, b.GELU(expand+".gelu", b.Linear(expand, x, hidden)), out)
}
