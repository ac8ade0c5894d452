package zoo

import (
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
		heads int
	}{{"tiny", 4}, {"small", 9}, {"base", 16}} {
		o := ConViT{Patch: 16, Width: 48 * v.heads, Heads: v.heads, Depth: 12, Local: 10}
		imageNet(nn.Architecture{
			Name:    "convit_" + v.name,
			Family:  "convit",
			Summary: "ConViT, " + v.name + ", with timm's names",
			Reference: "D'Ascoli et al., ConViT: improving vision transformers with soft convolutional inductive biases, " +
				"2021",
			MinSize:       16,
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(blocks\.\d+)\.`,
			Positions:     nn.Positions{Name: timmNames.place},
			Init:          o.Initial,
			Build:         o.Build,
		})
	}
}

// ConViT are the options of a vision transformer whose first blocks attend by positions, too: each head mixes weights
// by content and weights by offset, which start as a convolution's. A class token joins the patches behind them.
type ConViT struct {
	Patch int // height and width of a patch, which divide those of the image; timm's patch_size
	Width int // elements of a token, divided equally among the heads; timm's embed_dim·num_heads
	Heads int // a square, for the first weights; timm's num_heads
	Depth int // blocks; timm's depth
	Local int // first blocks that attend by positions; timm's local_up_to_layer
}

// Build adds the layers to b.
func (o ConViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	root := int(math.Round(math.Sqrt(float64(max(o.Heads, 0)))))
	b.options("ConViT", o).least(1, "Patch", "Width", "Heads", "Depth").least(0, "Local").multiple("Width", "Heads").
		that(o.Local < o.Depth, "Local", "below Depth").that(root*root == o.Heads, "Heads", "a square")
	if !b.multipleOf(x, o.Patch) {
		return nil
	}
	s := x.Shape()
	n, side := s[0], s[2]/o.Patch
	tokens := side * side
	if s[2] != s[3] || tokens*tokens > mostPairs {
		b.Fail(fmt.Errorf("images of %d×%d pixels: height and width must be equal, of at most %d patches", s[2], s[3],
			int(math.Sqrt(mostPairs))))
		return nil
	}
	class, place := b.embedding("cls_token", 1, o.Width), b.embedding("pos_embed", tokens, o.Width)
	x = b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: o.Patch, Stride: o.Patch, Bias: true})
	x = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), b.Apply("patches", op.Tokens{}, x), place)
	x = b.Reshape("rows", x, n*tokens, o.Width)
	offsets := b.Constant("offsets", squareOffsets(side))
	for i := range o.Depth {
		name, drop := fmt.Sprintf("blocks.%d", i), b.Config().DropPathAt(i, o.Depth)
		if i == o.Local {
			x = b.Concat("tokens", 1, b.Expand("class", class, n, 1, o.Width), b.Reshape("by_image", x, n, tokens, o.Width))
			x = b.Reshape("tokens.rows", x, n*(1+tokens), o.Width)
		}
		y := b.LayerNorm(name+".norm1", x, rowEps)
		if i < o.Local {
			y = o.gated(b, name+".attn", y, offsets, n)
		} else {
			y = b.selfAttention(name+".attention", b.unbiased(name+".attn.qkv", y, 3*o.Width), n, nn.Attention{Heads: o.Heads})
			y = b.Linear(name+".attn.proj", y, o.Width)
		}
		x = b.rowResidual(name+".drop_path1", y, x, n, drop)
		y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), 4*o.Width)
		x = b.rowResidual(name+".drop_path2", y, x, n, drop)
	}
	y := b.Slice("first", b.Reshape("all", x, n, 1+tokens, o.Width), 1, 0, 1)
	y = b.LayerNorm("norm", b.Reshape("first.rows", y, n, o.Width), rowEps)
	return b.Linear("head", b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// mostPairs is the most pairs of patches of an image: a list has them all.
const mostPairs = 1 << 24

// offsetParts are the columns of squareOffsets.
const offsetParts = 3

// squareOffsets has for each pair of places of a square the offset across and down and the square of the distance.
func squareOffsets(side int) op.Tensor {
	t := side * side
	x := op.New(op.T(op.Float64, t*t, offsetParts))
	for i := range t * t {
		from, to := i/t, i%t
		across, down := float64(to%side-from%side), float64(to/side-from/side)
		copy(x.Data.([]float64)[offsetParts*i:], []float64{across, down, across*across + down*down})
	}
	return x
}

// gated is attention among the rows x of n images whose weights are a mixture of those by content and by offset. As
// both sum to 1, so does the mixture, which timm divides by its sum.
func (o ConViT) gated(b layer, name string, x, offsets *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, d, t := o.Width, o.Width/o.Heads, x.Shape()[0]/n
	gate := b.vector(name+".gating_param", o.Heads, 1)
	qk, v := b.matrix(name+".qk", 2*c, c), b.matrix(name+".v", c, c)
	qkv := b.Apply(name+".qkv", op.Linear{}, x, b.Concat(name+".weights", 0, qk, v))
	y := b.selfAttention(name+".attention", qkv, n, nn.Attention{Heads: o.Heads})
	proj := b.linearLater(name+".proj", c, c)

	// Attention with queries and keys of 0, and offsets' scores for its biases, is faster than a product of matrices.
	bias := b.Permute(name+".by_head", b.Linear(name+".pos_proj", offsets, o.Heads), 1, 0)
	bias = b.Reshape(name+".by_query", bias, o.Heads, t, t)
	zero := b.Expand(name+".zeros", b.Constant(name+".zero", op.New(op.T(op.Float64, 1, 1, t))), n, o.Heads, t)
	zero = b.Reshape(name+".nothing", zero, n*o.Heads, t, 1)
	z := b.byHead(name+".values", b.Slice(name+".values.rows", qkv, 1, 2*c, 3*c), n, o.Heads)
	z = b.ofHeads(name+".local.rows", b.Apply(name+".local", op.Attention{Scale: 1}, zero, zero, z, bias), n)

	gate = b.Expand(name+".gates", b.Reshape(name+".gate", gate, o.Heads, 1), o.Heads, d)
	share := expr.Arg(2).Sigmoid()
	y = b.Map(name+".mixed", expr.Const(1).Sub(share).Mul(expr.Arg(0)).Add(share.Mul(expr.Arg(1))), y, z,
		b.Reshape(name+".gates.row", gate, c))
	return proj(y)
}

// Initial is the initial distribution of a parameter, for Architecture.Init. Values start as the tokens, and each head
// attends to another neighbour.
func (o ConViT) Initial(p nn.Param) nn.Init {
	switch {
	case strings.HasSuffix(p.Name, ".attn.v.weight"):
		return nn.Init{Given: identity(o.Width)}
	case strings.HasSuffix(p.Name, ".pos_proj.weight"):
		return nn.Init{Given: neighbours(math.Sqrt(float64(o.Heads)))}
	}
	return truncated(.02)(p)
}

// identity is a matrix with this number of columns.
type identity int

// At is 1 in the diagonal.
func (n identity) At(i int) float64 {
	if i/int(n) == i%int(n) {
		return 1
	}
	return 0
}

// neighbours are rows of weights of offsets, whose scores are largest for one neighbour each, of a square with this
// number of rows.
type neighbours int

// At has the neighbour's place across and down, twice, and −1 for the square of the distance.
func (n neighbours) At(i int) float64 {
	head, side := i/offsetParts, int(n)
	centre := float64(side-1) / 2
	switch i % offsetParts {
	case 0:
		return 2 * (float64(head/side) - centre)
	case 1:
		return 2 * (float64(head%side) - centre)
	}
	return -1
}
