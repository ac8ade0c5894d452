package zoo

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// norm is a normalisation of rows.
func (v ViT) norm(b layer, name string, x *G.Node) *G.Node {
	if v.RMSNorm {
		return b.RMSNorm(name, x, v.Eps)
	}
	return b.LayerNorm(name, x, v.Eps)
}

// linear is a linear layer of a block behind attention.
func (v ViT) linear(b layer, name string, x *G.Node, out int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	return b.Apply(name, op.Linear{}, append([]*G.Node{x}, v.linearParams(b, name, out, x.Shape()[1])...)...)
}

// linearParams are the parameters of such a layer.
func (v ViT) linearParams(b layer, name string, out, in int) []*G.Node {
	list := []*G.Node{b.matrix(name, out, in)}
	if !v.NoLinearBias {
		list = append(list, b.AddParam(nn.Param{Name: name + ".bias", Shape: op.Shape{out}, BiasOrNorm: true,
			Init: nn.FanInUniform(in)}))
	}
	return list
}

// block adds attention(norm x) to x, then perceptron(norm y) to the sum y, for the rows x of n images; with PostNorm
// norm(attention x), then norm(perceptron y). number is the block's, and drop the probability of dropping either in
// Train.
func (v ViT) block(b layer, name string, x *G.Node, n, number int, drop float64) *G.Node {
	of := v.names()
	for i, branch := range []func(b layer, name string, x *G.Node, n, number int) *G.Node{v.attention, v.perceptron} {
		norm := []string{name + of.norm1, name + of.norm2}[i]
		y := x
		if !v.PostNorm {
			y = v.norm(b, norm, y)
		}
		y = branch(b, name, y, n, number)
		if v.PostNorm {
			y = v.norm(b, norm, y)
		} else {
			y = v.scale(b, fmt.Sprintf("%s.ls%d", name, i+1), y)
		}
		x = b.rowResidual(fmt.Sprintf("%s.drop_path%d", name, i+1), y, x, n, drop)
	}
	return x
}

// attention is that of a block.
func (v ViT) attention(b layer, name string, x *G.Node, n, number int) *G.Node {
	of := v.names()
	var lambdas []*G.Node
	if v.Differential {
		lambdas = v.lambdas(b, name+".attn")
	}
	qkv := []*G.Node{x, b.AddParam(nn.Param{Name: name + of.qkvWeight, Shape: op.Shape{3 * v.Width, v.Width},
		Init: nn.FanInUniform(v.Width)})}
	if !v.NoQKVBias {
		qkv = append(qkv, b.AddParam(nn.Param{Name: name + of.qkvBias, Shape: op.Shape{3 * v.Width}, BiasOrNorm: true}))
	}
	y := b.Apply(name+".qkv", op.Linear{}, qkv...)
	if v.Differential { // its normalisation follows the last layer in the state dict
		proj := v.linearParams(b, name+of.proj, v.Width, v.Width)
		y = v.difference(b, name+".attn", y, n, number, lambdas)
		y = b.Apply(name+of.proj, op.Linear{}, append([]*G.Node{y}, proj...)...)
		return b.rowDropout(name+of.dropProj, y, n, v.Dropout)
	}
	var bias []*G.Node
	if v.biases != nil {
		bias = append(bias, v.biases(name+".attn"))
	}
	y = b.selfAttention(name+".attention", y, n, nn.Attention{Heads: v.Heads, Dropout: v.AttentionDropout}, bias...)
	if v.ScaleNorms {
		y = v.norm(b, name+".attn.norm", y)
	}
	return b.rowDropout(name+of.dropProj, v.linear(b, name+of.proj, y, v.Width), n, v.Dropout)
}

// perceptron is that of a block.
func (v ViT) perceptron(b layer, name string, x *G.Node, n, _ int) *G.Node {
	of := v.names()
	if v.vitamin != nil {
		return v.vitamin.perceptron(b, name+".mlp", x)
	}
	y := b.rowDropout(name+of.dropExpand, v.expand(b, name, of.expand, x), n, v.Dropout)
	if v.ScaleNorms {
		y = v.norm(b, name+".mlp.norm", y)
	}
	return b.rowDropout(name+of.dropContract, v.linear(b, name+of.contract, y, v.Width), n, v.Dropout)
}

// expand is the first layer of a perceptron, and its activation.
func (v ViT) expand(b layer, name, layer string, x *G.Node) *G.Node {
	if v.SwiGLU {
		linear := func(name string, x *G.Node, out int) *G.Node { return v.linear(b, name, x, out) }
		return b.swiGLU(name+".mlp", x, v.hidden(), v.SeparateMLP, linear)
	}
	act := (*nn.Builder).GELU
	switch {
	case v.QuickGELU:
		act = quickGELU
	case v.GELUTanh:
		act = (*nn.Builder).GELUTanh
	}
	return act(b.Builder, name+".gelu", v.linear(b, name+layer, x, v.hidden()))
}

// hidden is the number of elements of a block's hidden layer.
func (v ViT) hidden() int { return cmp.Or(v.Hidden, 4*v.Width) }

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
	by := b.Map(name+".factor", factor, product(".product1", lambdas[0], lambdas[1]),
		product(".product2", lambdas[2], lambdas[3]))
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
