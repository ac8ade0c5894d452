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

// Eva are the options of a vision transformer with rotary positions: timm's Eva, whose head takes the mean of the
// patches.
type Eva struct {
	Patch  int // height and width of a patch, which divide those of the image; timm's patch_size
	Width  int // elements of a token, divided equally among the heads; timm's embed_dim
	Heads  int // timm's num_heads
	Depth  int // blocks; 0 means 12; timm's depth
	Hidden int // elements of a block's hidden layer; 0 means 4·Width; timm's mlp_ratio·embed_dim

	// DINOv3 takes angles of rotation, and pairs, as DINOv3 does, has no trained positions, and normalises patches before
	// their mean instead of the mean: timm's rope_type="dinov3" with rope_rotate_half=True, use_abs_pos_emb=False and
	// use_fc_norm=False.
	DINOv3 bool

	// Grid is the side of the grid of patches that rotary positions are scaled to; 0 means that of the image: timm's
	// ref_feat_shape. Those of DINOv3 are scaled otherwise.
	Grid int

	Registers  int     // trained tokens behind the class token: timm's num_reg_tokens
	LayerScale float64 // initial factor of each element of a residual branch; 0 means no factors; timm's init_values

	NoQKVBias   bool // queries and values have no bias, as keys: timm's qkv_bias=False
	SeparateQKV bool // queries, keys and values have a matrix each: timm's qkv_fused=False

	SwiGLU      bool // the hidden layer is a product with SiLU of another's: timm's swiglu_mlp
	SeparateMLP bool // both have a matrix each, also with ScaleMLP: timm's swiglu_align_to above 0
	ScaleMLP    bool // the hidden layer is normalised: timm's scale_mlp

	// Dropout is the probability of dropping elements of tokens in Train: after their places are added, and in each block
	// after attention, in the hidden layer and after the last linear layer. It is timm's pos_drop_rate and proj_drop_rate.
	// Config has that of the head's inputs, timm's drop_rate, and DropPath, timm's drop_path_rate.
	Dropout float64

	// AttentionDropout is the probability of dropping weights of attention in Train: timm's attn_drop_rate. Training is
	// slower with it.
	AttentionDropout float64

	Eps float64 // is added to the variances of layer normalisations; 0 means 1e-6; norm_layer's eps
}

// of makes a the architecture of the net.
func (v Eva) of(a nn.Architecture) nn.Architecture {
	a.Init, a.Build, a.MinSize = evaInitial, v.Build, v.Patch
	a.Block = `^(blocks\.\d+)\.` // factors of residual branches have no layer in it
	if !v.DINOv3 {
		a.Positions = nn.Positions{Name: timmNames.place, First: v.first()}
	}
	return a
}

// first is the number of tokens before those of patches.
func (v Eva) first() int { return 1 + v.Registers }

// Build adds the layers to b.
func (v Eva) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("Eva", v).least(1, "Patch", "Width", "Heads").
		least(0, "Depth", "Hidden", "Grid", "Registers", "LayerScale", "Eps").
		multiple("Width", "Heads").that(v.Width/max(v.Heads, 1)%4 == 0, "Width", "divisible by 4·Heads").
		that(!v.DINOv3 || v.Grid == 0, "Grid", "0 with DINOv3").
		that(!v.SeparateMLP || v.SwiGLU, "SeparateMLP", "false without SwiGLU").
		probability("Dropout", "AttentionDropout")
	v.Depth, v.Hidden, v.Eps = cmp.Or(v.Depth, 12), cmp.Or(v.Hidden, 4*v.Width), cmp.Or(v.Eps, rowEps)
	if !b.multipleOf(x, v.Patch) {
		return nil
	}
	s := x.Shape()
	n, first, height, width := s[0], v.first(), s[2]/v.Patch, s[3]/v.Patch
	tokens := first + height*width
	r := rope{height: height, width: width, first: first, heads: v.Heads, head: v.Width / v.Heads,
		centred: v.DINOv3, grid: v.Grid}
	r.tables(b)
	all := []*G.Node{b.Expand("class", b.embedding(timmNames.class, 1, v.Width), n, 1, v.Width)}
	if v.Registers > 0 {
		more := b.embedding(registers, v.Registers, v.Width)
		all = append(all, b.Expand("registers", more, n, v.Registers, v.Width))
	}
	var place *G.Node
	if !v.DINOv3 {
		place = b.embedding(timmNames.place, tokens, v.Width)
	}
	y := b.Conv(timmNames.patches, x, nn.Conv{Filters: v.Width, Kernel: v.Patch, Stride: v.Patch, Bias: true})
	y = b.Concat("tokens", 1, append(all, b.Apply("patches", op.Tokens{}, y))...)
	if place != nil {
		y = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), y, place)
	}
	y = b.rowDropout(timmNames.dropPlaces, b.Reshape("rows", y, n*tokens, v.Width), n, v.Dropout)
	for i := range v.Depth {
		y = v.block(b, fmt.Sprintf(timmNames.block, i), y, n, r, b.Config().DropPathAt(i, v.Depth))
	}
	y = b.Slice("all_patches", b.Reshape("by_image", y, n, tokens, v.Width), 1, first, tokens)
	if v.DINOv3 {
		y = b.LayerNorm(timmNames.norm, y, v.Eps)
	}
	y = b.GlobalAvgPool("pool", b.Apply("planes", op.Planes{Height: height, Width: width}, y))
	if !v.DINOv3 {
		y = b.LayerNorm("fc_norm", y, v.Eps)
	}
	return b.Linear(timmNames.head, b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// block adds attention(norm x) to x, then perceptron(norm y) to the sum y, for the rows x of n images. drop is the
// probability of dropping either in Train.
func (v Eva) block(b layer, name string, x *G.Node, n int, r rope, drop float64) *G.Node {
	gamma := b.factors(v.LayerScale, v.Width, name+".gamma_1", name+".gamma_2")
	y := v.attention(b, name, b.LayerNorm(name+timmNames.norm1, x, v.Eps), n, r)
	x = b.rowResidual(name+".drop_path1", b.times(name+".scaled1", y, gamma[0]), x, n, drop)
	y = v.perceptron(b, name+".mlp", b.LayerNorm(name+timmNames.norm2, x, v.Eps), n)
	return b.rowResidual(name+".drop_path2", b.times(name+".scaled2", y, gamma[1]), x, n, drop)
}

// attention is that of a block.
func (v Eva) attention(b layer, block string, x *G.Node, n int, r rope) *G.Node {
	name := block + ".attn"
	y := b.Apply(name+".qkv", op.Linear{}, append([]*G.Node{x}, v.qkv(b, name)...)...)
	y = b.selfAttention(block+".attention", r.rotate(b, name+".rope", y, n), n,
		nn.Attention{Heads: v.Heads, Dropout: v.AttentionDropout})
	return b.rowDropout(block+timmNames.dropProj, b.Linear(block+timmNames.proj, y, v.Width), n, v.Dropout)
}

// qkv are the matrix that makes queries, keys and values, and the bias, which keys lack.
func (v Eva) qkv(b layer, name string) []*G.Node {
	c := v.Width
	bias := func(name string) *G.Node {
		if v.NoQKVBias {
			return nil
		}
		return b.vector(name, c, 0)
	}
	var weight, query, value *G.Node
	if v.SeparateQKV {
		q := b.matrix(name+".q_proj", c, c)
		query = bias(name + ".q_proj.bias")
		k := b.matrix(name+".k_proj", c, c)
		weight = b.Concat(name+".qkv.weights", 0, q, k, b.matrix(name+".v_proj", c, c))
		value = bias(name + ".v_proj.bias")
	} else {
		query, value = bias(name+".q_bias"), bias(name+".v_bias")
		weight = b.matrix(name+".qkv", 3*c, c)
	}
	if v.NoQKVBias {
		return []*G.Node{weight}
	}
	return []*G.Node{weight, b.keyless(name, query, value)}
}

// perceptron is that of a block.
func (v Eva) perceptron(b layer, name string, x *G.Node, n int) *G.Node {
	if v.SwiGLU {
		x = b.swiGLU(name, x, v.Hidden, v.SeparateMLP || v.ScaleMLP, b.Linear)
	} else {
		x = b.GELU(name+".gelu", b.Linear(name+".fc1", x, v.Hidden))
	}
	x = b.rowDropout(name+".drop1", x, n, v.Dropout)
	if v.ScaleMLP {
		x = b.LayerNorm(name+".norm", x, v.Eps)
	}
	return b.rowDropout(name+".drop2", b.Linear(name+".fc2", x, v.Width), n, v.Dropout)
}

// evaInitial is the initial distribution of a parameter, also of BEiT. The last layers of branches start the smaller
// the deeper they are.
func evaInitial(p nn.Param) nn.Init {
	deviation, block := .02, 0
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case len(p.Shape) == 1 && p.Init.Distribution == nn.Uniform && !strings.HasPrefix(p.Name, timmNames.patches):
		return nn.Init{} // a bias
	case len(p.Shape) != 2, strings.HasSuffix(p.Name, "_bias_table"):
		return p.Init
	case strings.HasPrefix(p.Name, timmNames.head):
		deviation *= .001
	case strings.HasSuffix(p.Name, ".attn.proj.weight"), strings.HasSuffix(p.Name, ".fc2.weight"):
		if _, err := fmt.Sscanf(p.Name, timmNames.block, &block); err == nil {
			deviation /= math.Sqrt(2 * float64(block+1))
		}
	}
	return nn.Init{Distribution: nn.Normal, Scale: deviation}
}
