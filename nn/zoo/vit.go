package zoo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	const paper = "Dosovitskiy et al., An image is worth 16×16 words, 2021"
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

	// Mean gives the head the mean of the patches, without a class token: timm's global_pool="avg" with class_token=False
	// and fc_norm=False. It is not of Torchvision or Distilled.
	Mean bool

	ClassBeside bool // with Mean, there is a class token, which the head does not take: timm's class_token=True
	NormMean    bool // with Mean, the mean is normalised instead of the tokens: timm's fc_norm=True
	NoNorm      bool // tokens are not normalised behind the last block: timm's final_norm=False

	// AttentionPool attends to the patches, without a class token, from a trained query, for the head: timm's
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

	// Registers are the number of trained tokens before those of patches, which the head does not take: timm's reg_tokens.
	Registers int

	NoEmbedClass bool // only tokens of patches have places: timm's no_embed_class

	PreNorm   bool    // tokens are normalised before the first block, and patches have no bias: timm's pre_norm
	QuickGELU bool    // the activation is x·sigmoid(1.702·x): timm's act_layer="quick_gelu"
	GELUTanh  bool    // the activation is the approximation of GELU by tanh: timm's act_layer="gelu_tanh"
	Eps       float64 // is added to the variances of layer normalisations; 0 means 1e-6; norm_layer's eps
	Truncate  bool    // pixels behind the last whole patch are left out; else they are an error

	// PostNorm normalises results of attention and of perceptrons instead of their inputs. LayerScale is the initial
	// scale of these normalisations. It is timm's block_fn=ResPostBlock.
	PostNorm bool

	SwiGLU       bool // the hidden layer is a product with SiLU of another's: timm's mlp_layer=SwiGLUPacked
	SeparateMLP  bool // both have a matrix each: timm's mlp_layer=SwiGLU
	ScaleNorms   bool // results of heads, and hidden layers, are normalised: timm's scale_attn_norm and scale_mlp_norm
	RMSNorm      bool // rows are divided by their root mean square instead of normalised: norm_layer=RmsNorm
	EmbedNorm    bool // patches are normalised before their places are added: timm's embed_norm_layer
	NoLinearBias bool // linear layers of blocks behind attention have no bias: timm's proj_bias=False

	// Parallel adds attention and a perceptron of the same normalised tokens: timm's block_fn=ParallelScalingBlock, and
	// with Differential DiffParallelScalingBlock.
	Parallel bool

	// Differential subtracts a second attention of each head, times a trained factor: timm's attn_layer="diff".
	Differential bool

	NoPlaces bool // tokens have no trained places: timm's pos_embed="none"

	// NaFlex gives places, names and initial values of timm's NaFlexVit, whose places are those of patches alone. Patches
	// are products of a matrix and their pixels; nil: none of it.
	NaFlex *NaFlex

	embed   func(b layer, x *G.Node) *G.Node // makes images of patches of images; nil means a convolution
	vitamin *ViTamin                         // its blocks have its perceptrons; only with Mean

	// scores makes, for images of height×width patches, the function that adds biases of a block's scores; nil: none.
	scores func(b layer, height, width int) func(name string) *G.Node
	biases func(name string) *G.Node // that function
}

// vitNames are the names of parameters and layers; those inside a block follow the block's.
type vitNames struct {
	class, registers, place, patches, block, norm, head      string
	norm1, qkvWeight, qkvBias, proj, norm2, expand, contract string
	dropPlaces, dropProj, dropExpand, dropContract           string
}

var timmNames = vitNames{"cls_token", "reg_token", "pos_embed", "patch_embed.proj", "blocks.%d", "norm", "head",
	".norm1", ".attn.qkv.weight", ".attn.qkv.bias", ".attn.proj", ".norm2", ".mlp.fc1", ".mlp.fc2",
	"pos_drop", ".attn.proj_drop", ".mlp.drop1", ".mlp.drop2"}

var torchvisionNames = vitNames{"class_token", "", "encoder.pos_embedding", "conv_proj",
	"encoder.layers.encoder_layer_%d", "encoder.ln", "heads.head",
	".ln_1", ".self_attention.in_proj_weight", ".self_attention.in_proj_bias", ".self_attention.out_proj", ".ln_2", ".mlp.0", ".mlp.3",
	"encoder.dropout", ".dropout", ".mlp.2", ".mlp.4"}

// preLogits is torchvision's layer before the head.
const preLogits = "heads.pre_logits"

// of makes a the architecture of the net.
func (v ViT) of(a nn.Architecture) nn.Architecture {
	a.Init, a.Build = v.initial, v.Build
	if v.AttentionPool {
		a.Block = `^(blocks\.\d+|attn_pool)\.`
	}
	if v.Parallel { // factors of attention have no layer in a block
		a.Block = `^(blocks\.\d+)\.`
	}
	a.Positions = v.positions()
	return a
}

// positions are those of the tokens of patches.
func (v ViT) positions() nn.Positions {
	switch {
	case v.NoPlaces, v.NaFlex != nil:
		return nn.Positions{}
	case v.NoEmbedClass && v.classes() > 0:
		return nn.Positions{Name: v.names().place, Class: v.names().class}
	case v.NoEmbedClass:
		return nn.Positions{Name: v.names().place}
	}
	return nn.Positions{Name: v.names().place, First: v.first()}
}

// first is the number of tokens before those of patches.
func (v ViT) first() int { return v.classes() + v.Registers }

// classes is the number of tokens for classes, the first ones. Heads take them without Mean.
func (v ViT) classes() int {
	switch {
	case v.Mean && !v.ClassBeside || v.AttentionPool:
		return 0
	case v.Distilled:
		return 2
	}
	return 1
}

// names are the net's.
func (v ViT) names() vitNames {
	switch {
	case v.Torchvision:
		return torchvisionNames
	case v.NaFlex != nil:
		return naFlexNames
	}
	return timmNames
}

// rowEps is added to the variances of layer normalisations, unless options say otherwise.
const rowEps = 1e-6

// cutNormal is the standard deviation of normal numbers from −2 to 2, as timm's trunc_normal_tf_ draws them.
const cutNormal = .8796

// timm's normalisations of patches, before the blocks and of the mean.
const patchNorm, preNorm, meanNorm = "patch_embed.norm", "norm_pre", "fc_norm"

// latent is the query of timm's attention pooling.
const latent = ".latent"

var quickGELU nn.Activation = func(b *nn.Builder, name string, x *G.Node) *G.Node {
	return b.Map(name, expr.Arg(0).Mul(expr.Arg(0).Scale(1.702).Sigmoid()), x)
}

// Build adds the layers to b.
func (v ViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, of, depth := layer{builder}, v.names(), cmp.Or(v.Depth, 12)
	own := !v.Torchvision && !v.Distilled
	b.options("ViT", v).least(1, "Patch", "Width", "Heads").
		least(0, "Depth", "Hidden", "Representation", "LayerScale", "Registers", "Eps").
		multiple("Width", "Heads").probability("Dropout", "AttentionDropout").
		that(!v.Mean || !v.Torchvision && !v.Distilled, "Mean", "false with Torchvision or Distilled").
		that(!v.AttentionPool || !v.Mean && !v.Torchvision && !v.Distilled, "AttentionPool",
			"false with Mean, Torchvision or Distilled").
		that(v.Torchvision && !v.Distilled || v.Representation == 0, "Representation", "0 without Torchvision or with Distilled").
		that(!v.Torchvision || v.LayerScale == 0, "LayerScale", "0 with Torchvision").
		that(!v.Torchvision || !v.NoQKVBias, "NoQKVBias", "false with Torchvision").
		that(v.Mean || !v.ClassBeside, "ClassBeside", "false without Mean").
		that(v.Mean || !v.NormMean, "NormMean", "false without Mean").
		that(!v.NormMean || !v.NoNorm, "NoNorm", "false with NormMean").
		that(own || v.Registers == 0, "Registers", "0 with Torchvision or Distilled").
		that(own || !v.NoEmbedClass, "NoEmbedClass", "false with Torchvision or Distilled").
		that(!v.Torchvision || !v.PreNorm, "PreNorm", "false with Torchvision").
		that(!v.Torchvision || !v.QuickGELU, "QuickGELU", "false with Torchvision").
		that(!v.Torchvision && !v.QuickGELU || !v.GELUTanh, "GELUTanh", "false with Torchvision or QuickGELU").
		that(own || !v.NoNorm, "NoNorm", "false with Torchvision or Distilled").
		that(own || !v.PostNorm, "PostNorm", "false with Torchvision or Distilled").
		that(own && !v.AttentionPool || !v.SwiGLU, "SwiGLU", "false with Torchvision, AttentionPool or Distilled").
		that(v.SwiGLU || !v.SeparateMLP, "SeparateMLP", "false without SwiGLU").
		that(own || !v.ScaleNorms, "ScaleNorms", "false with Torchvision or Distilled").
		that(own && !v.AttentionPool || !v.RMSNorm, "RMSNorm", "false with Torchvision, AttentionPool or Distilled").
		that(own || !v.EmbedNorm, "EmbedNorm", "false with Torchvision or Distilled").
		that(own && !v.PostNorm && !v.SwiGLU && !v.ScaleNorms && !v.NoQKVBias && v.AttentionDropout == 0 || !v.Parallel,
			"Parallel", "false with Torchvision, Distilled, PostNorm, SwiGLU, ScaleNorms, NoQKVBias or AttentionDropout").
		that(own && !v.ScaleNorms && v.AttentionDropout == 0 || !v.Differential, "Differential",
			"false with Torchvision, Distilled, ScaleNorms or AttentionDropout").
		that(!v.Differential || v.Width%(2*max(v.Heads, 1)) == 0, "Width", "divisible by 2·Heads with Differential").
		that(own && !v.AttentionPool || !v.NoLinearBias, "NoLinearBias",
			"false with Torchvision, AttentionPool or Distilled").
		that(own || !v.NoPlaces, "NoPlaces", "false with Torchvision or Distilled").
		that(own && !v.PreNorm && !v.EmbedNorm && !v.Truncate || v.NaFlex == nil, "NaFlex",
			"nil with Torchvision, Distilled, PreNorm, EmbedNorm or Truncate")
	if v.NaFlex != nil {
		b.options("NaFlex", *v.NaFlex).least(1, "Grid").that(v.NaFlex.Grid <= 1024, "Grid", "at most 1024")
		v.NoEmbedClass = true
	}
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
		more := b.embedding(of.registers, v.Registers, v.Width)
		prefix = append(prefix, b.Expand("registers", more, n, v.Registers, v.Width))
	}
	if v.NaFlex != nil {
		place = v.NaFlex.build(b, height, width, v.Width)
	} else if !v.Torchvision && !v.NoPlaces {
		place = b.embedding(of.place, places, v.Width)
	}
	if v.Distilled {
		prefix = append(prefix, b.Expand("distillation", b.embedding("dist_token", 1, v.Width), n, 1, v.Width))
	}
	var y *G.Node
	switch {
	case v.embed != nil:
		y = v.embed(b, x)
	case v.NaFlex != nil:
		y = v.NaFlex.patches(b, x, v.Patch, v.Width)
	default:
		y = b.Conv(of.patches, x, nn.Conv{Filters: v.Width, Kernel: v.Patch, Stride: v.Patch, Bias: !v.PreNorm})
	}
	if v.Torchvision {
		place = b.embedding(of.place, places, v.Width)
	}
	if v.NaFlex == nil {
		y = b.Apply("patches", op.Tokens{}, y)
	}
	if v.EmbedNorm {
		y = v.norm(b, patchNorm, y)
	}
	located := func(y *G.Node) *G.Node {
		if place == nil {
			return y
		}
		return b.Map("places", expr.Arg(0).Add(expr.Arg(1)), y, place)
	}
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
		y = v.norm(b, preNorm, y)
	}
	if v.scores != nil {
		v.biases = v.scores(b, height, width)
	}
	for i := range depth {
		name, drop := fmt.Sprintf(of.block, i), b.Config().DropPathAt(i, depth)
		if v.Parallel {
			y = v.parallel(b, name, y, n, i, drop)
		} else {
			y = v.block(b, name, y, n, i, drop)
		}
	}
	if v.Mean || v.AttentionPool {
		if first > 0 {
			y = b.Slice("all_patches", b.Reshape("with_first", y, n, tokens, v.Width), 1, first, tokens)
			y = b.Reshape("patch_rows", y, n*height*width, v.Width)
		}
		if !v.NormMean && !v.NoNorm {
			y = v.norm(b, of.norm, y)
		}
		if v.AttentionPool {
			y = v.attend(b, "attn_pool", y, n)
		} else {
			y = b.Reshape("by_image", y, n, height*width, v.Width)
			y = b.GlobalAvgPool("pool", b.Apply("planes", op.Planes{Height: height, Width: width}, y))
		}
		if v.NormMean {
			y = v.norm(b, meanNorm, y)
		}
		return b.Linear(of.head, b.Dropout("dropout", y, b.Config().Dropout), b.Config().Classes)
	}
	y = b.Slice("first", b.Reshape("by_image", y, n, tokens, v.Width), 1, 0, v.classes())
	y = b.Reshape("first_rows", y, n*v.classes(), v.Width)
	if !v.NoNorm {
		y = v.norm(b, of.norm, y)
	}
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
	return b.gammas(name, x, v.LayerScale)
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

// partDropout drops parts of n images, such as windows, with probability drop in Train. Rows y are those of one part
// after the other.
func (b layer) partDropout(name string, y *G.Node, n, parts int, drop float64) *G.Node {
	if drop == 0 || b.Config().Mode == nn.Eval || b.Err() != nil {
		return y
	}
	s := y.Shape()
	ones := b.Constant(name+".ones", op.Tensor{Shape: op.Shape{n, parts}, Data: slices.Repeat([]float64{1}, n*parts)})
	kept := b.Reshape(name+".kept", b.Dropout(name, ones, drop), n*parts, 1)
	y = b.Scale(name+".scaled", b.Reshape(name+".parts", y, n*parts, s.TotalSize()/n/parts), kept)
	return b.Reshape(name+".rows", y, s...)
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
	if v.NaFlex != nil {
		return v.NaFlex.initial(v, p)
	}
	return v.own(p)
}

// own is initial without NaFlex.
func (v ViT) own(p nn.Param) nn.Init {
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
	case p.Name == of.class || p.Name == of.registers:
		return deviation(1e-6)
	case strings.Contains(p.Name, lambda):
		return p.Init
	case v.PostNorm && is(of.norm1, of.norm2):
		if strings.HasSuffix(p.Name, ".weight") {
			return nn.Init{Scale: v.LayerScale}
		}
		return nn.Init{}
	case strings.HasSuffix(p.Name, ".fc1_g.weight"): // of timm's SwiGLU
		return deviation(1e-6)
	case strings.HasSuffix(p.Name, ".fc1_g.bias"):
		return nn.Init{Scale: 1}
	case v.SwiGLU && strings.HasSuffix(p.Name, ".mlp.fc1.weight"): // timm takes the second half for the gate
		first := deviation(.02)
		first.Second = &nn.Init{Distribution: nn.Normal, Scale: 1e-6}
		return first
	case v.SwiGLU && strings.HasSuffix(p.Name, ".mlp.fc1.bias"):
		return nn.Init{Second: &nn.Init{Scale: 1}}
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
