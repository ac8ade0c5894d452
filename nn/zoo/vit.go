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
	const paper = "Dosovitskiy et al., An image is worth 16×16 words, 2021"
	for _, size := range []struct {
		name    string
		patches []int
		net     ViT
	}{
		{"tiny", []int{16}, ViT{Width: 192, Heads: 3}},
		{"small", []int{16, 32}, ViT{Width: 384, Heads: 6}},
		{"base", []int{16, 32}, ViT{Width: 768, Heads: 12}},
		{"base", []int{16}, ViT{Width: 768, Heads: 16, Mean: true}},
		{"large", []int{16, 32}, ViT{Width: 1024, Heads: 16, Depth: 24}},
	} {
		for _, patch := range size.patches {
			v := size.net
			v.Patch = patch
			a := nn.Architecture{
				Name:          fmt.Sprintf("vit_%s_patch%d_224", size.name, patch),
				Family:        "vit",
				Summary:       fmt.Sprintf("vision transformer, %s, patches of %d×%[2]d, with timm's names", size.name, patch),
				Reference:     paper,
				Size:          224,
				Channels:      3,
				Classes:       1000,
				MinSize:       patch,
				Mean:          []float64{.5, .5, .5},
				Std:           []float64{.5, .5, .5},
				Resize:        248,
				Interpolation: bicubic,
			}
			if v.Mean {
				a.Name = fmt.Sprintf("vit_%s_patch%d_gap_224", size.name, patch)
				a.Summary = fmt.Sprintf("vision transformer, %s, patches of %d×%[2]d, by the mean of its tokens", size.name, patch)
			}
			nn.Register(v.of(a))
		}
	}
	for _, size := range []struct {
		name         string
		width, heads int
	}{{"tiny", 192, 3}, {"small", 384, 6}, {"base", 768, 12}} {
		for _, distilled := range []bool{false, true} {
			v := ViT{Patch: 16, Width: size.width, Heads: size.heads, Distilled: distilled}
			a := nn.Architecture{
				Name:          fmt.Sprintf("deit_%s_patch16_224", size.name),
				Family:        "deit",
				Summary:       fmt.Sprintf("DeiT, %s, with timm's names", size.name),
				Reference:     "Touvron et al., Training data-efficient image transformers, 2021",
				MinSize:       16,
				DropPath:      .1,
				Resize:        248,
				Interpolation: bicubic,
			}
			if distilled {
				a.Name = fmt.Sprintf("deit_%s_distilled_patch16_224", size.name)
				a.Summary = fmt.Sprintf("DeiT, %s, with the token and the head of distillation", size.name)
				a.Heads = []string{"head", "head_dist"}
			}
			imageNet(v.of(a))
		}
	}
	for _, v := range []struct {
		size string
		net  ViT
	}{
		{"small", ViT{Width: 384, Heads: 6}}, {"medium", ViT{Width: 512, Heads: 8}}, {"base", ViT{Width: 768, Heads: 12}},
		{"large", ViT{Width: 1024, Heads: 16, Depth: 24}},
	} {
		v.net.Patch, v.net.NoEmbedClass, v.net.LayerScale = 16, true, 1e-6
		imageNet(v.net.of(nn.Architecture{
			Name:          "deit3_" + v.size + "_patch16_224",
			Family:        "deit",
			Summary:       "DeiT III, " + v.size + ", with timm's names",
			Reference:     "Touvron et al., DeiT III: revenge of the ViT, 2022",
			MinSize:       16,
			Resize:        248,
			Interpolation: bicubic,
		}))
	}
	for _, size := range []struct {
		letter, name        string
		patch, size, resize int
		net                 ViT
	}{
		{"b", "base", 16, 0, 0, ViT{Width: 768, Heads: 12}},
		{"b", "base", 32, 0, 0, ViT{Width: 768, Heads: 12}},
		{"l", "large", 16, 0, 242, ViT{Width: 1024, Heads: 16, Depth: 24}},
		{"l", "large", 32, 0, 0, ViT{Width: 1024, Heads: 16, Depth: 24}},
		{"h", "huge", 14, 518, 518, ViT{Width: 1280, Heads: 16, Depth: 32}},
	} {
		v := size.net
		v.Patch, v.Torchvision = size.patch, true
		a := nn.Architecture{
			Name:      fmt.Sprintf("vit_%s_%d", size.letter, v.Patch),
			Family:    "vit",
			Summary:   fmt.Sprintf("vision transformer, %s, patches of %d×%[2]d", size.name, v.Patch),
			Reference: paper,
			MinSize:   v.Patch,
			Size:      size.size,
			Resize:    size.resize,
			Block:     `^(encoder\.layers\.encoder_layer_\d+)\.`,
		}
		if size.name == "huge" {
			a.Interpolation = bicubic
		}
		imageNet(v.of(a))
	}
	v := ViT{Patch: 4, Width: 192, Heads: 3}
	cifar(v.of(nn.Architecture{
		Name:      "vit_tiny_patch4_32",
		Family:    "vit",
		Summary:   "vision transformer, tiny, patches of 4×4, with timm's names",
		Reference: paper,
		MinSize:   4,
	}))
}

// ViT are the options of a vision transformer, with a class token unless Mean is set.
type ViT struct {
	Patch       int  // height and width of a patch, which divide those of the image; patch_size
	Width       int  // elements of a token, divided equally among the heads; torchvision's hidden_dim, timm's embed_dim
	Heads       int  // num_heads
	Depth       int  // blocks; 0 means 12; torchvision's num_layers, timm's depth
	Hidden      int  // elements of a block's hidden layer; 0 means 4·Width; torchvision's mlp_dim, timm's mlp_ratio·embed_dim
	Torchvision bool // names and initial values are torchvision's, else timm's

	// Mean gives the head the mean of all tokens, none of which is a class token: timm's global_pool="avg" with
	// class_token=False and fc_norm=False. It is not of Torchvision or Distilled.
	Mean bool

	// AttentionPool attends to all tokens, none of which is a class token, from a trained query, for the head: timm's
	// global_pool="map".
	AttentionPool bool

	Distilled bool // a second token has a head of its own, as timm's DeiT: the logits are the mean of both heads'

	// Representation is the number of outputs of a linear layer and tanh before the head; 0 means none. Only Torchvision
	// has it: representation_size.
	Representation int

	// Dropout is the probability of dropping elements of tokens in Train: after their places are added, and in each block
	// after attention, the GELU and the last linear layer. It is torchvision's dropout, and timm's pos_drop_rate and
	// proj_drop_rate. Config has that of the head's inputs, timm's drop_rate, and DropPath, timm's drop_path_rate.
	Dropout float64

	// AttentionDropout is the probability of dropping weights of attention in Train: torchvision's attention_dropout,
	// timm's attn_drop_rate. Training is slower with it.
	AttentionDropout float64

	LayerScale float64 // initial factor of each element of a residual branch; 0 means no factors; timm's init_values
	NoQKVBias  bool    // queries, keys and values have no bias: timm's qkv_bias=False

	// Registers are the number of trained tokens behind the class token, which the head does not take: timm's reg_tokens.
	Registers int

	NoEmbedClass bool // only tokens of patches have places: timm's no_embed_class

	PreNorm   bool    // tokens are normalised before the first block, and patches have no bias: timm's pre_norm
	QuickGELU bool    // the activation is x·sigmoid(1.702·x): timm's act_layer="quick_gelu"
	GELUTanh  bool    // the activation is the approximation of GELU by tanh: timm's act_layer="gelu_tanh"
	Eps       float64 // is added to the variances of layer normalisations; 0 means 1e-6; norm_layer's eps
	Truncate  bool    // pixels behind the last whole patch are left out; else they are an error
}

// vitNames are the names of parameters and layers; those inside a block follow the block's.
type vitNames struct {
	class, place, patches, block, norm, head                 string
	norm1, qkvWeight, qkvBias, proj, norm2, expand, contract string
	dropPlaces, dropProj, dropExpand, dropContract           string
}

var timmNames = vitNames{"cls_token", "pos_embed", "patch_embed.proj", "blocks.%d", "norm", "head",
	".norm1", ".attn.qkv.weight", ".attn.qkv.bias", ".attn.proj", ".norm2", ".mlp.fc1", ".mlp.fc2",
	"pos_drop", ".attn.proj_drop", ".mlp.drop1", ".mlp.drop2"}

var torchvisionNames = vitNames{"class_token", "encoder.pos_embedding", "conv_proj", "encoder.layers.encoder_layer_%d",
	"encoder.ln", "heads.head", ".ln_1", ".self_attention.in_proj_weight", ".self_attention.in_proj_bias",
	".self_attention.out_proj", ".ln_2", ".mlp.0", ".mlp.3",
	"encoder.dropout", ".dropout", ".mlp.2", ".mlp.4"}

// preLogits is torchvision's layer before the head.
const preLogits = "heads.pre_logits"

// of makes a the architecture of the net.
func (v ViT) of(a nn.Architecture) nn.Architecture {
	a.Init, a.Build, a.Positions = v.initial, v.Build, nn.Positions{Name: v.names().place}
	if v.AttentionPool {
		a.Block = `^(blocks\.\d+|attn_pool)\.`
	}
	if v.NoEmbedClass {
		a.Positions.Class = v.names().class
	} else {
		a.Positions.First = v.first()
	}
	return a
}

// first is the number of tokens before those of patches.
func (v ViT) first() int { return v.classes() + v.Registers }

// classes is the number of tokens that heads take, the first ones.
func (v ViT) classes() int {
	switch {
	case v.Mean || v.AttentionPool:
		return 0
	case v.Distilled:
		return 2
	}
	return 1
}

// names are the net's.
func (v ViT) names() vitNames {
	if v.Torchvision {
		return torchvisionNames
	}
	return timmNames
}

// rowEps is added to the variances of layer normalisations, unless options say otherwise.
const rowEps = 1e-6

// cutNormal is the standard deviation of normal numbers from −2 to 2, as timm's trunc_normal_tf_ draws them.
const cutNormal = .8796

// preNorm is timm's layer before the blocks, registers its parameter.
const preNorm, registers = "norm_pre", "reg_token"

// latent is the query of timm's attention pooling.
const latent = ".latent"

var quickGELU nn.Activation = func(b *nn.Builder, name string, x *G.Node) *G.Node {
	return b.Map(name, expr.Arg(0).Mul(expr.Arg(0).Scale(1.702).Sigmoid()), x)
}

// Build adds the layers to b.
func (v ViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, of, depth := layer{builder}, v.names(), cmp.Or(v.Depth, 12)
	own := !v.Torchvision && !v.Mean && !v.Distilled && !v.AttentionPool
	b.options("ViT", v).least(1, "Patch", "Width", "Heads").
		least(0, "Depth", "Hidden", "Representation", "LayerScale", "Registers", "Eps").
		multiple("Width", "Heads").probability("Dropout", "AttentionDropout").
		that(!v.Mean || !v.Torchvision && !v.Distilled, "Mean", "false with Torchvision or Distilled").
		that(!v.AttentionPool || !v.Mean && !v.Torchvision && !v.Distilled, "AttentionPool",
			"false with Mean, Torchvision or Distilled").
		that(v.Torchvision && !v.Distilled || v.Representation == 0, "Representation", "0 without Torchvision or with Distilled").
		that(!v.Torchvision || v.LayerScale == 0, "LayerScale", "0 with Torchvision").
		that(!v.Torchvision || !v.NoQKVBias, "NoQKVBias", "false with Torchvision").
		that(own || v.Registers == 0, "Registers", "0 with Torchvision, Mean, AttentionPool or Distilled").
		that(own || !v.NoEmbedClass, "NoEmbedClass", "false with Torchvision, Mean, AttentionPool or Distilled").
		that(!v.Torchvision || !v.PreNorm, "PreNorm", "false with Torchvision").
		that(!v.Torchvision || !v.QuickGELU, "QuickGELU", "false with Torchvision").
		that(!v.Torchvision && !v.QuickGELU || !v.GELUTanh, "GELUTanh", "false with Torchvision or QuickGELU")
	v.Eps = cmp.Or(v.Eps, rowEps)
	if v.Truncate && !b.atLeast(x, v.Patch) || !v.Truncate && !b.multipleOf(x, v.Patch) {
		return nil
	}
	s := x.Shape()
	n, first, height, width := s[0], v.first(), s[2]/v.Patch, s[3]/v.Patch
	tokens := first + height*width
	places := tokens
	if v.NoEmbedClass {
		places = height * width
	}
	var place *G.Node // its place in the state dict differs
	var prefix []*G.Node
	if v.classes() > 0 {
		prefix = append(prefix, b.Expand("class", b.embedding(of.class, 1, v.Width), n, 1, v.Width))
	}
	if v.Registers > 0 {
		more := b.embedding(registers, v.Registers, v.Width)
		prefix = append(prefix, b.Expand("registers", more, n, v.Registers, v.Width))
	}
	if !v.Torchvision {
		place = b.embedding(of.place, places, v.Width)
	}
	if v.Distilled {
		prefix = append(prefix, b.Expand("distillation", b.embedding("dist_token", 1, v.Width), n, 1, v.Width))
	}
	y := b.Conv(of.patches, x, nn.Conv{Filters: v.Width, Kernel: v.Patch, Stride: v.Patch, Bias: !v.PreNorm})
	if v.Torchvision {
		place = b.embedding(of.place, places, v.Width)
	}
	y = b.Apply("patches", op.Tokens{}, y)
	located := func(y *G.Node) *G.Node { return b.Map("places", expr.Arg(0).Add(expr.Arg(1)), y, place) }
	if v.NoEmbedClass {
		y = located(y)
	}
	if len(prefix) > 0 {
		y = b.Concat("tokens", 1, append(prefix, y)...)
	}
	if !v.NoEmbedClass {
		y = located(y)
	}
	y = b.rowDropout(of.dropPlaces, b.Reshape("rows", y, n*tokens, v.Width), n, v.Dropout)
	if v.PreNorm {
		y = b.LayerNorm(preNorm, y, v.Eps)
	}
	for i := range depth {
		y = v.block(b, fmt.Sprintf(of.block, i), y, n, b.Config().DropPathAt(i, depth))
	}
	if v.Mean {
		y = b.Reshape("by_image", b.LayerNorm(of.norm, y, v.Eps), n, tokens, v.Width)
		y = b.GlobalAvgPool("pool", b.Apply("planes", op.Planes{Height: height, Width: width}, y))
		return b.Linear(of.head, b.Dropout("dropout", y, b.Config().Dropout), b.Config().Classes)
	}
	if v.AttentionPool {
		y = v.attend(b, "attn_pool", b.LayerNorm(of.norm, y, v.Eps), n)
		return b.Linear(of.head, b.Dropout("dropout", y, b.Config().Dropout), b.Config().Classes)
	}
	y = b.Slice("first", b.Reshape("by_image", y, n, tokens, v.Width), 1, 0, v.classes())
	y = b.LayerNorm(of.norm, b.Reshape("first_rows", y, n*v.classes(), v.Width), v.Eps)
	if v.Representation > 0 {
		y = b.Map("heads.act", expr.Arg(0).Tanh(), b.Linear(preLogits, y, v.Representation))
	}
	if !v.Distilled {
		return b.Linear(of.head, b.Dropout("dropout", y, b.Config().Dropout), b.Config().Classes)
	}
	var logits [2]*G.Node
	y = b.Reshape("pairs", y, n, 2, v.Width)
	for i, head := range []string{of.head, of.head + "_dist"} {
		part := b.Reshape(head+".row", b.Slice(head+".token", y, 1, i, i+1), n, v.Width)
		logits[i] = b.Linear(head, b.Dropout(head+".dropout", part, b.Config().Dropout), b.Config().Classes)
	}
	return b.Map("mean", meanOfTwo, logits[0], logits[1])
}

// block adds attention(norm x) to x, then perceptron(norm y) to the sum y, for the rows x of n images. drop is the
// probability of dropping either in Train.
func (v ViT) block(b layer, name string, x *G.Node, n int, drop float64) *G.Node {
	of := v.names()
	y := b.LayerNorm(name+of.norm1, x, v.Eps)
	qkv := []*G.Node{y, b.AddParam(nn.Param{Name: name + of.qkvWeight, Shape: op.Shape{3 * v.Width, v.Width},
		Init: nn.FanInUniform(v.Width)})}
	if !v.NoQKVBias {
		qkv = append(qkv, b.AddParam(nn.Param{Name: name + of.qkvBias, Shape: op.Shape{3 * v.Width}, BiasOrNorm: true}))
	}
	y = b.selfAttention(name+".attention", b.Apply(name+".qkv", op.Linear{}, qkv...), n,
		nn.Attention{Heads: v.Heads, Dropout: v.AttentionDropout})
	y = b.rowDropout(name+of.dropProj, b.Linear(name+of.proj, y, v.Width), n, v.Dropout)
	x = b.rowResidual(name+".drop_path1", v.scale(b, name+".ls1", y), x, n, drop)
	y = v.expand(b, name, of.expand, b.LayerNorm(name+of.norm2, x, v.Eps))
	y = b.rowDropout(name+of.dropExpand, y, n, v.Dropout)
	y = b.rowDropout(name+of.dropContract, b.Linear(name+of.contract, y, v.Width), n, v.Dropout)
	return b.rowResidual(name+".drop_path2", v.scale(b, name+".ls2", y), x, n, drop)
}

// expand is the first layer of a perceptron, and its activation.
func (v ViT) expand(b layer, name, layer string, x *G.Node) *G.Node {
	act := (*nn.Builder).GELU
	switch {
	case v.QuickGELU:
		act = quickGELU
	case v.GELUTanh:
		act = (*nn.Builder).GELUTanh
	}
	return act(b.Builder, name+".gelu", b.Linear(name+layer, x, cmp.Or(v.Hidden, 4*v.Width)))
}

// attend is timm's AttentionPoolLatent: y + perceptron(norm y) of the row y that a trained query finds in an image's
// rows x, for n images.
func (v ViT) attend(b layer, name string, x *G.Node, n int) *G.Node {
	query := b.AddParam(nn.Param{Name: name + latent, Shape: op.Shape{1, 1, v.Width},
		Init: nn.Init{Distribution: nn.Normal, Scale: cutNormal / math.Sqrt(float64(v.Width))}})
	query = b.Linear(name+".q", b.Reshape(name+".latent.row", query, 1, v.Width), v.Width)
	query = b.Expand(name+".queries", query, n, v.Width)
	kv := b.Linear(name+".kv", x, 2*v.Width)
	keys, values := b.Slice(name+".keys", kv, 1, 0, v.Width), b.Slice(name+".values", kv, 1, v.Width, 2*v.Width)
	y := b.Attention(name+".attention", query, keys, values, n, nn.Attention{Heads: v.Heads})
	y = b.Linear(name+".proj", y, v.Width)
	z := v.expand(b, name, ".mlp.fc1", b.LayerNorm(name+".norm", y, v.Eps))
	return b.Add(name+".add", b.Linear(name+".mlp.fc2", z, v.Width), y)
}

// scale multiplies rows x by a trained factor for each element, if the options ask for it.
func (v ViT) scale(b layer, name string, x *G.Node) *G.Node {
	if v.LayerScale == 0 {
		return x
	}
	return b.Scale(name, x, b.vector(name+".gamma", v.Width, v.LayerScale))
}

// rowResidual adds x, dropping the rows y of whole images, n in all, with probability drop in Train.
func (b layer) rowResidual(name string, y, x *G.Node, n int, drop float64) *G.Node {
	if drop == 0 || b.Config().Mode == nn.Eval || b.Err() != nil {
		return b.Add(name+".add", y, x)
	}
	s := y.Shape()
	y = b.StochasticDepth(name, b.Reshape(name+".images", y, n, s.TotalSize()/n), drop)
	return b.Add(name+".add", b.Reshape(name+".kept", y, s...), x)
}

// rowDropout is Dropout of the rows x of n images, whose numbers it draws image by image.
func (b layer) rowDropout(name string, x *G.Node, n int, p float64) *G.Node {
	if p == 0 || b.Config().Mode == nn.Eval || b.Err() != nil {
		return x
	}
	s := x.Shape()
	x = b.Dropout(name, b.Reshape(name+".images", x, n, s.TotalSize()/n), p)
	return b.Reshape(name+".rows", x, s...)
}

// initial is the initial distribution of a parameter.
func (v ViT) initial(p nn.Param) nn.Init {
	of := v.names()
	deviation := func(x float64) nn.Init { return nn.Init{Distribution: nn.Normal, Scale: x} }
	is := func(layers ...string) bool {
		for _, l := range layers {
			if strings.HasPrefix(p.Name, l+".") || strings.HasSuffix(p.Name, l+".weight") ||
				strings.HasSuffix(p.Name, l+".bias") {
				return true
			}
		}
		return false
	}
	matrix := len(p.Shape) == 2
	switch {
	case p.Name == of.place || p.Name == "dist_token":
		return deviation(.02)
	case p.Name == of.class && v.Torchvision:
		return nn.Init{}
	case p.Name == of.class || p.Name == registers:
		return deviation(1e-6)
	case strings.HasSuffix(p.Name, latent):
		return p.Init
	case !v.Torchvision && len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case !v.Torchvision && strings.HasSuffix(p.Name, ".gamma"):
		return p.Init
	case !v.Torchvision && (is(of.patches) || is(of.norm, of.norm1, of.norm2, preNorm)):
		return p.Init
	case !v.Torchvision && matrix:
		return deviation(.02)
	case !v.Torchvision:
		return nn.Init{}
	case len(p.Shape) == 4:
		return deviation(math.Sqrt(1 / float64(p.Shape[1:].Size())))
	case is(of.head):
		return nn.Init{}
	case matrix && is(preLogits):
		return deviation(math.Sqrt(1 / float64(p.Shape[1])))
	case matrix && is(of.proj):
		return p.Init
	case matrix: // Glorot's
		return nn.Init{Distribution: nn.Uniform, Scale: math.Sqrt(6 / float64(p.Shape[0]+p.Shape[1]))}
	case is(of.expand, of.contract):
		return deviation(1e-6)
	case is(of.norm, of.norm1, of.norm2):
		return p.Init
	}
	return nn.Init{} // of other biases
}
