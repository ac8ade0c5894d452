package zoo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name  string
		sizes []int
		net   CaiT
	}{
		{"xxs24", []int{224, 384}, CaiT{Width: 192, Heads: 4, Depth: 24, LayerScale: 1e-5}},
		{"xxs36", []int{224, 384}, CaiT{Width: 192, Heads: 4, Depth: 36, LayerScale: 1e-5}},
		{"xs24", []int{384}, CaiT{Width: 288, Heads: 6, Depth: 24, LayerScale: 1e-5}},
		{"s24", []int{224, 384}, CaiT{Width: 384, Heads: 8, Depth: 24, LayerScale: 1e-5}},
		{"s36", []int{384}, CaiT{Width: 384, Heads: 8, Depth: 36, LayerScale: 1e-6}},
		{"m36", []int{384}, CaiT{Width: 768, Heads: 16, Depth: 36, LayerScale: 1e-6}},
		{"m48", []int{448}, CaiT{Width: 768, Heads: 16, Depth: 48, LayerScale: 1e-6}},
	} {
		v.net.Patch = 16
		for _, size := range v.sizes {
			imageNet(nn.Architecture{
				Name:          fmt.Sprintf("cait_%s_%d", v.name, size),
				Family:        "cait",
				Summary:       fmt.Sprintf("CaiT-%s, with timm's names", strings.ToUpper(v.name)),
				Reference:     "Touvron et al., Going deeper with image transformers, 2021",
				Size:          size,
				MinSize:       v.net.Patch,
				Resize:        size,
				Interpolation: bicubic,
				Block:         `^(blocks(?:_token_only)?\.\d+)\.`,
				Positions:     nn.Positions{Name: "pos_embed"},
				Init:          classAttentionInitial,
				Build:         v.net.Build,
			})
		}
	}
}

// CaiT are the options of a vision transformer whose class token joins the patches after their last block.
type CaiT struct {
	Patch      int     // height and width of a patch, which divide those of the image; timm's patch_size
	Width      int     // elements of a token, divided equally among the heads; timm's embed_dim
	Heads      int     // timm's num_heads
	Depth      int     // blocks among patches; timm's depth
	LayerScale float64 // initial factor of each element of a branch; 0 means 1e-4; timm's init_values
}

// classDepth is the number of blocks in which the class token attends to the patches.
const classDepth = 2

// Build adds the layers to b.
func (o CaiT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("CaiT", o).least(1, "Patch", "Width", "Heads", "Depth").least(0, "LayerScale").multiple("Width", "Heads")
	o.LayerScale = cmp.Or(o.LayerScale, 1e-4)
	if !b.multipleOf(x, o.Patch) {
		return nil
	}
	s := x.Shape()
	n, tokens := s[0], s[2]/o.Patch*(s[3]/o.Patch)
	class, place := b.embedding("cls_token", 1, o.Width), b.embedding("pos_embed", tokens, o.Width)
	x = b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: o.Patch, Stride: o.Patch, Bias: true})
	x = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), b.Apply("patches", op.Tokens{}, x), place)
	x = b.Reshape("rows", x, n*tokens, o.Width)
	for i := range o.Depth {
		x = o.block(b, fmt.Sprintf("blocks.%d", i), x, n)
	}
	y := b.Reshape("class.rows", b.Expand("class", class, n, 1, o.Width), n, o.Width)
	for i := range classDepth {
		y = o.classBlock(b, fmt.Sprintf("blocks_token_only.%d", i), y, x)
	}
	y = b.LayerNorm("norm", y, rowEps)
	return b.Linear("head", b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// block adds attention of talking heads to the rows x of n images, then a perceptron to the sum.
func (o CaiT) block(b layer, name string, x *G.Node, n int) *G.Node {
	gamma := b.factors(o.LayerScale, o.Width, name+".gamma_1", name+".gamma_2")
	y := b.talkingHeads(name+".attn", b.LayerNorm(name+".norm1", x, rowEps), n, o.Heads)
	x = b.rowResidual(name+".drop_path1", b.Scale(name+".scaled1", y, gamma[0]), x, n, b.Config().DropPath)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), 4*o.Width)
	return b.rowResidual(name+".drop_path2", b.Scale(name+".scaled2", y, gamma[1]), x, n, b.Config().DropPath)
}

// talkingHeads is attention among the rows x of n images, whose scores and weights are mixed among the heads (Shazeer
// et al. 2020).
func (b layer) talkingHeads(name string, x *G.Node, n, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	rows, c := x.Shape()[0], x.Shape()[1]
	tokens := rows / n
	qkv := b.Linear(name+".qkv", x, 3*c)
	proj := b.linearLater(name+".proj", c, c)
	mix := func(layer string, scores *G.Node) *G.Node {
		weight, bias := b.matrix(name+layer, heads, heads), b.bias(name+layer, heads)
		weight = b.Expand(name+layer+".by_image", b.Reshape(name+layer+".matrix", weight, 1, heads, heads), n, heads, heads)
		y := b.MatMul(name+layer, weight, b.Reshape(name+layer+".heads", scores, n, heads, tokens*tokens), false)
		return b.Reshape(name+layer+".scores", b.Map(name+layer+".biased", expr.Arg(0).Add(expr.Arg(1)), y, bias),
			n*heads, tokens, tokens)
	}
	var parts [3]*G.Node
	for i, part := range []string{".queries", ".keys", ".values"} {
		parts[i] = b.byHead(name+part, b.Slice(name+part, qkv, 1, i*c, (i+1)*c), n, heads)
	}
	queries := b.Map(name+".scaled", expr.Arg(0).Scale(1/math.Sqrt(float64(c/heads))), parts[0])
	y := mix(".proj_l", b.MatMul(name+".products", queries, parts[1], true))
	y = mix(".proj_w", b.Softmax(name+".softmax", y))
	y = b.ofHeads(name+".mixture", b.MatMul(name+".mixed", y, parts[2], false), n)
	return proj(y)
}

// byHead makes of the rows x of n images a matrix [tokens,elements] for each image and head. Values of five dimensions
// are no images to devices.
func (b layer) byHead(name string, x *G.Node, n, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	t, d := x.Shape()[0]/n, x.Shape()[1]/heads
	x = b.Permute(name+".by_head", b.Reshape(name+".heads", x, 1, n, t, heads, d), 0, 1, 3, 2, 4)
	return b.Reshape(name+".matrices", x, n*heads, t, d)
}

// ofHeads is the reverse of byHead.
func (b layer) ofHeads(name string, x *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	heads, t, d := x.Shape()[0]/n, x.Shape()[1], x.Shape()[2]
	x = b.Permute(name+".by_token", b.Reshape(name+".heads", x, 1, n, heads, t, d), 0, 1, 3, 2, 4)
	return b.Reshape(name+".rows", x, n*t, heads*d)
}

// classBlock adds the class tokens' attention to themselves and the patches, and then a perceptron, to the tokens.
func (o CaiT) classBlock(b layer, name string, class, patches *G.Node) *G.Node {
	gamma := b.factors(o.LayerScale, o.Width, name+".gamma_1", name+".gamma_2")
	norm := b.sharedNorm(name+".norm1", o.Width, rowEps)
	y := b.classAttention(name+".attn", norm("", class), norm(".patches", patches), o.Heads)
	class = b.Add(name+".add1", b.Scale(name+".scaled1", y, gamma[0]), class)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", class, rowEps), 4*o.Width)
	return b.Add(name+".add2", b.Scale(name+".scaled2", y, gamma[1]), class)
}

// classAttention is attention of the class tokens, one an image, to themselves and to the rows of patches.
func (b layer) classAttention(name string, class, patches *G.Node, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, c := class.Shape()[0], class.Shape()[1]
	tokens := patches.Shape()[0] / n
	all := b.Concat(name+".tokens", 1, b.Reshape(name+".class", class, n, 1, c),
		b.Reshape(name+".patches", patches, n, tokens, c))
	all = b.Reshape(name+".rows", all, n*(1+tokens), c)
	q, k, v := b.Linear(name+".q", class, c), b.Linear(name+".k", all, c), b.Linear(name+".v", all, c)
	return b.Linear(name+".proj", b.Attention(name+".attention", q, k, v, n, nn.Attention{Heads: heads}), c)
}

// classAttentionInitial is the initial distribution of a parameter of CaiT and XCiT. Convolutions start as PyTorch's.
func classAttentionInitial(p nn.Param) nn.Init {
	conv := false
	for _, part := range []string{"patch_embed.", "pos_embed.", ".local_mp."} {
		conv = conv || strings.Contains(p.Name, part)
	}
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case len(p.Shape) == 2:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case p.Init.Distribution == nn.Uniform && !conv: // a bias
		return nn.Init{}
	}
	return p.Init
}
