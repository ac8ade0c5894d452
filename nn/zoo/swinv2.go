package zoo

import (
	"cmp"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// The hidden layer that biases of attention come from, and the largest factor of cosines.
const (
	biasHidden      = 512
	mostCosineScale = 100
)

// cosineAttention is windowAttention whose scores are cosines of queries and keys times a trained factor for each head.
// The biases come from a net of the offsets.
func (b layer) cosineAttention(name string, x *G.Node, w window) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	c := s[1]
	scale := b.AddParam(nn.Param{Name: name + ".logit_scale", Shape: op.Shape{w.heads, 1, 1},
		Init: nn.Init{Distribution: nn.Constant, Scale: math.Log(10)}, BiasOrNorm: w.timm})
	table := w.offsetTable()
	var weight, bias, byOffset *G.Node // keys have no bias
	if w.timm {
		queries, values := b.vector(name+".q_bias", c, 0), b.vector(name+".v_bias", c, 0)
		byOffset = b.offsetNet(name, w, table)
		weight = b.matrix(name+w.qkv, 3*c, c)
		bias = b.keyless(name, queries, values)
	} else {
		b.Buffer(name+".relative_coords_table", table, 1, 2*w.Rows-1, 2*w.Columns-1, 2)
		b.offsetIndex(name, w)
		weight = b.matrix(name+w.qkv, 3*c, c)
		used := b.Constant(name+".qkv.used", op.Tensor{Shape: op.Shape{3 * c}, Data: thirds(c, 1, 0, 1)})
		bias = b.Map(name+".qkv.bias_used", expr.Arg(0).Mul(expr.Arg(1)), b.bias(name+w.qkv, 3*c), used)
	}
	proj := b.linearLater(name+w.proj, c, c)
	if !w.timm {
		byOffset = b.offsetNet(name, w, table)
	}
	y := b.Apply(name+w.qkv, op.Linear{}, x, weight, bias)
	y = b.cosines(name, y, scale, w.heads)
	y = b.selfAttention(name+".attention", y, s[0]/(w.Rows*w.Columns),
		nn.Attention{Heads: w.heads, Scale: 1, Dropout: w.dropout}, byOffset)
	return proj(y)
}

// thirds is a, then b, then c, n times each.
func thirds(n int, a, b, c float64) []float64 {
	return slices.Concat(slices.Repeat([]float64{a}, n), slices.Repeat([]float64{b}, n), slices.Repeat([]float64{c}, n))
}

// cosines divides each head's query and key in rows x by its norm, and multiplies the query by the head's factor.
func (b layer) cosines(name string, x, scale *G.Node, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	parts := 3 * heads
	y := b.Reshape(name+".parts", x, s[0]*parts, s[1]/parts)
	squares := b.Reduce(name+".squares", b.Map(name+".square", smallSquare, y), op.Sum, 1)
	squares = b.Reshape(name+".squares_by_row", squares, s[0], parts)
	factor := expr.Arg(0).Min(expr.Const(math.Log(mostCosineScale))).Exp()
	queries := b.Map(name+".scale", factor, b.Reshape(name+".scale_by_head", scale, 1, heads))
	others := b.Constant(name+".ones", op.Tensor{Shape: op.Shape{1, 2 * heads}, Data: slices.Repeat([]float64{1}, 2*heads)})
	factors := b.Concat(name+".factors", 1, queries, others)
	isValue := b.Constant(name+".is_value", op.Tensor{Shape: op.Shape{1, parts}, Data: thirds(heads, 0, 0, 1)})
	const leastNorm = 1e-12
	norm := ofSmallSquares(expr.Arg(0)).Max(expr.Const(leastNorm * leastNorm)).Sqrt()
	// Tokens that fill a window have keys of 0: a factor of 1/leastNorm would be infinite in 16 bits.
	by := expr.If(expr.Arg(0).LessEqual(expr.Const(0)), expr.Const(0), expr.Arg(1).Div(norm))
	by = expr.If(expr.Arg(2).Equal(expr.Const(1)), expr.Const(1), by)
	z := b.Reshape(name+".factors_by_part", b.Map(name+".by", by, squares, factors, isValue), s[0]*parts, 1)
	return b.Reshape(name+".cosines", b.Map(name+".normalized", expr.Arg(0).Mul(expr.Arg(1)), y, z), s...)
}

// offsetNet is offsetBias by a net that takes the offsets. timm exempts its matrices from weight decay.
func (b layer) offsetNet(name string, w window, table []float64) *G.Node {
	n, mlp := len(table)/2, name+".cpb_mlp"
	matrix := func(name string, out, in int) *G.Node {
		return b.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{out, in}, Init: nn.FanInUniform(in),
			BiasOrNorm: w.timm})
	}
	x := b.Constant(name+".coords", op.Tensor{Shape: op.Shape{n, 2}, Data: table})
	x = b.Apply(mlp+".0", op.Linear{}, x, matrix(mlp+".0", biasHidden, 2), b.bias(mlp+".0", biasHidden))
	x = b.Apply(mlp+".2", op.Linear{}, b.ReLU(mlp+".1", x), matrix(mlp+".2", w.heads, biasHidden))
	return b.biasByPair(name, b.Map(mlp+".2.sigmoid", expr.Arg(0).Sigmoid().Scale(16), x), w)
}

// offsetTable has the offsets between two tokens of a window, down and right: from −8 to 8 for those by which they are
// measured, as sign(x)·log₂(|x|+1)/3.
func (w window) offsetTable() (table []float64) {
	at := func(i, n int) float64 {
		x := 8 * float64(i-(n-1)) / float64(max(cmp.Or(w.pretrained, n)-1, 1))
		return math.Copysign(math.Log2(math.Abs(x)+1)/3, x)
	}
	for i := range 2*w.Rows - 1 {
		for j := range 2*w.Columns - 1 {
			table = append(table, at(i, w.Rows), at(j, w.Columns))
		}
	}
	return table
}
