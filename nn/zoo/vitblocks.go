package zoo

import (
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// lambda begins the names of the parameters of differential attention's factor.
const lambda = "lambda_"

// lambdas are the vectors whose products give the factor of differential attention.
func (v ViT) lambdas(b layer, name string) (list []*G.Node) {
	for _, part := range []string{"q1", "k1", "q2", "k2"} {
		list = append(list, b.AddParam(nn.Param{Name: name + "." + lambda + part, Shape: op.Shape{v.Width / v.Heads / 2},
			BiasOrNorm: true, Init: nn.Init{Distribution: nn.Normal, Scale: .1}}))
	}
	return list
}

// difference is differential attention (Ye et al. 2024) of n images: each head has two queries and keys, and subtracts
// the second's result times a trained factor. Names of the normalisation begin with name. number is the block's.
func (v ViT) difference(b layer, name string, qkv *G.Node, n, number int, lambdas []*G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	rows, c, size := qkv.Shape()[0], v.Width, v.Width/v.Heads/2
	half := func(part string, from, second int) *G.Node {
		x := b.Reshape(name+part+".pairs", b.Slice(name+part+".all", qkv, 1, from, from+c), rows*v.Heads, 2, size)
		return b.Reshape(name+part, b.Slice(name+part+".one", x, 1, second, second+1), rows, c/2)
	}
	values := b.Slice(name+".values", qkv, 1, 2*c, 3*c)
	a := nn.Attention{Heads: v.Heads}
	first := b.Attention(name+".attention1", half(".query1", 0, 0), half(".key1", c, 0), values, n, a)
	second := b.Attention(name+".attention2", half(".query2", 0, 1), half(".key2", c, 1), values, n, a)
	product := func(part string, x, y *G.Node) *G.Node {
		x = b.Reshape(name+part+".row", b.Map(name+part+".products", expr.Arg(0).Mul(expr.Arg(1)), x, y), 1, size)
		return b.Reduce(name+part, x, op.Sum, 1)
	}
	initial := .8 - .6*math.Exp(-.3*float64(number))
	factor := expr.Arg(0).Exp().Sub(expr.Arg(1).Exp()).Add(expr.Const(initial))
	by := b.Map(name+".factor", factor, product(".product1", lambdas[0], lambdas[1]), product(".product2", lambdas[2], lambdas[3]))
	by = b.Expand(name+".factors", b.Reshape(name+".factor.one", by, 1), c)
	y := b.Map(name+".difference", expr.Arg(0).Sub(expr.Arg(1).Mul(expr.Arg(2))), first, second, by)
	const eps = 1e-5
	y = b.RMSNorm(name+".sub_norm", b.Reshape(name+".heads", y, rows*v.Heads, 2*size), eps)
	return b.Reshape(name+".rows", b.Map(name+".scaled", expr.Arg(0).Scale(1-initial), y), rows, c)
}

// parallel adds attention and a perceptron of norm x to the rows x of n images. number is the block's, and drop the
// probability of dropping both in Train.
func (v ViT) parallel(b layer, name string, x *G.Node, n, number int, drop float64) *G.Node {
	var lambdas []*G.Node
	if v.Differential {
		lambdas = v.lambdas(b, name)
	}
	hidden := v.hidden()
	y := v.linear(b, name+".in_proj", v.norm(b, name+".in_norm", x), hidden+3*v.Width)
	qkv := b.Slice(name+".qkv", y, 1, hidden, hidden+3*v.Width)
	m := b.GELU(name+".mlp_act", b.Slice(name+".mlp", y, 1, 0, hidden))
	m = b.rowDropout(name+".mlp_drop", m, n, v.Dropout)
	if v.Differential {
		y = b.Concat(name+".both", 1, v.difference(b, name, qkv, n, number, lambdas), m)
		y = v.linear(b, name+".out_proj", y, v.Width)
	} else {
		y = b.selfAttention(name+".attention", qkv, n, nn.Attention{Heads: v.Heads})
		y = v.linear(b, name+".attn_out_proj", y, v.Width)
		y = b.Add(name+".both", y, v.linear(b, name+".mlp_out_proj", m, v.Width))
	}
	return b.rowResidual(name+".drop_path", v.scale(b, name+".ls", y), x, n, drop)
}
