package zoo

import (
	"cmp"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// window is attention among the tokens of windows.
type window struct {
	nn.Windows
	heads   int
	scale   float64 // of the scores; 0 means 1/√(elements of a head)
	dropout float64 // of the attention's weights
	mask    *G.Node // added to the scores: [windows of an image, heads, tokens²]; nil: none

	qkv, proj string // names of the linear layers
	index     []int  // shape that the state dict gives the indices of offsets

	timm       bool // biases of queries and values are two parameters, and the state dict has no buffers
	pretrained int  // height of the windows by which offsets are measured; 0: of these
}

// windowAttention is attention for rows x of windows, one after the other.
func (b layer) windowAttention(name string, x *G.Node, w window) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	bias := b.offsetBias(name, w)
	x = b.selfAttention(name+".attention", b.Linear(name+w.qkv, x, 3*s[1]), s[0]/(w.Rows*w.Columns),
		nn.Attention{Heads: w.heads, Scale: w.scale, Dropout: w.dropout}, bias)
	return b.Linear(name+w.proj, x, s[1])
}

// selfAttention is SelfAttention of n sequences with more options.
func (b layer) selfAttention(name string, qkv *G.Node, n int, a nn.Attention, bias ...*G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := qkv.Shape()
	c := s[1] / 3
	if a.Dropout == 0 || b.Config().Mode == nn.Eval {
		o := op.SelfAttention{Tokens: s[0] / n, Heads: a.Heads, Scale: cmp.Or(a.Scale, 1/math.Sqrt(float64(c/a.Heads)))}
		return b.Apply(name, o, append([]*G.Node{qkv}, bias...)...)
	}
	queries := b.Slice(name+".queries", qkv, 1, 0, c)
	keys := b.Slice(name+".keys", qkv, 1, c, 2*c)
	return b.Attention(name, queries, keys, b.Slice(name+".values", qkv, 1, 2*c, 3*c), n, a, bias...)
}

// offsetBias is the bias of scores, one for each head and offset between two tokens, plus the mask.
func (b layer) offsetBias(name string, w window) *G.Node {
	table := b.AddParam(nn.Param{Name: name + ".relative_position_bias_table",
		Shape: op.Shape{(2*w.Rows - 1) * (2*w.Columns - 1), w.heads},
		Init:  nn.Init{Distribution: nn.Normal, Scale: .02}, BiasOrNorm: true})
	if !w.timm {
		b.offsetIndex(name, w)
	}
	return b.biasByPair(name, table, w)
}

// logOffsets is offsetBias by a biasNet: timm's RelPosMlp with the mode "cr".
func (b layer) logOffsets(name string, w window, hidden int, drop float64, exempt bool) *G.Node {
	var offsets []float64
	for i := range 2*w.Rows - 1 {
		for j := range 2*w.Columns - 1 {
			offsets = append(offsets, logOffset(i-(w.Rows-1)), logOffset(j-(w.Columns-1)))
		}
	}
	return b.biasByPair(name, b.biasNet(name+".mlp", offsets, w.heads, hidden, drop, exempt), w)
}

// biasNet gives offsets [n,2] a number for each head, by a net whose hidden elements are dropped with probability
// drop in Train. exempt says whether its matrices are without weight decay.
func (b layer) biasNet(name string, offsets []float64, heads, hidden int, drop float64, exempt bool) *G.Node {
	param := func(part string, fanIn int, shape ...int) *G.Node {
		return b.AddParam(nn.Param{Name: name + part, Shape: shape, Init: nn.FanInUniform(fanIn),
			BiasOrNorm: exempt || len(shape) == 1})
	}
	n := len(offsets) / 2
	x := b.Constant(name+".offsets", op.Tensor{Shape: op.Shape{n, 2}, Data: offsets})
	x = b.Apply(name+".fc1", op.Linear{}, x, param(".fc1.weight", 2, hidden, 2), param(".fc1.bias", 2, hidden))
	x = b.Dropout(name+".drop1", b.Reshape(name+".row", b.ReLU(name+".act", x), 1, n*hidden), drop)
	return b.Apply(name+".fc2", op.Linear{}, b.Reshape(name+".rows", x, n, hidden),
		param(".fc2.weight", hidden, heads, hidden), param(".fc2.bias", hidden, heads))
}

// logOffset is the logarithm of 1+|d| with the sign of d.
func logOffset(d int) float64 { return math.Copysign(math.Log(1+math.Abs(float64(d))), float64(d)) }

// offsetIndex adds the numbers of offsets to the state dict.
func (b layer) offsetIndex(name string, w window) {
	index := w.Offsets().Data.([]int32)
	stored := make([]int64, len(index))
	for i, v := range index {
		stored[i] = int64(v)
	}
	b.Buffer(name+".relative_position_index", stored, w.index...)
}

// biasByPair spreads the rows of a table, one for each offset, to the pairs of tokens, and adds the mask.
func (b layer) biasByPair(name string, table *G.Node, w window) *G.Node {
	places := b.Constant(name+".offsets", w.Offsets())
	return b.biasByHead(name, b.Permute(name+".by_head", b.Gather(name+".by_pair", table, 0, places), 1, 0), w)
}

// biasByHead adds the mask to the biases of each head [heads,tokens²].
func (b layer) biasByHead(name string, bias *G.Node, w window) *G.Node {
	t, n := w.Rows*w.Columns, w.heads
	if w.mask != nil {
		bias = b.Reshape(name+".all", bias, 1, w.heads, t*t)
		bias = b.Map(name+".masked", expr.Arg(0).Add(expr.Arg(1)), w.mask, bias)
		n *= w.mask.Shape()[0]
	}
	return b.Reshape(name+".bias", bias, n, t, t)
}
