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
		letter string
		width  int
		blocks int
	}{{"s", 512, 8}, {"b", 768, 12}, {"l", 1024, 24}} {
		for _, patch := range []int{16, 32} {
			mixer(nn.Architecture{
				Name:      fmt.Sprintf("mixer_%s%d_224", v.letter, patch),
				Summary:   fmt.Sprintf("MLP-Mixer-%s/%d", strings.ToUpper(v.letter), patch),
				Reference: "Tolstikhin et al., MLP-Mixer: an all-MLP architecture for vision, 2021",
				Mean:      half,
				Std:       half,
			}, Mixer{Patch: patch, Width: v.width, Blocks: v.blocks})
		}
	}
	for _, blocks := range []int{12, 24} {
		mixer(nn.Architecture{
			Name:      fmt.Sprintf("gmixer_%d_224", blocks),
			Summary:   fmt.Sprintf("MLP-Mixer of %d blocks, gated hidden layers", blocks),
			Reference: "Tolstikhin et al., MLP-Mixer: an all-MLP architecture for vision, 2021",
		}, Mixer{Patch: 16, Width: 384, Blocks: blocks, TokenRatio: 1, SwiGLU: true})
	}
	for _, v := range []struct {
		name string
		net  Mixer
	}{
		{"12", Mixer{Patch: 16, Width: 384, Blocks: 12, LayerScale: 1e-4}},
		{"24", Mixer{Patch: 16, Width: 384, Blocks: 24, LayerScale: 1e-5}},
		{"36", Mixer{Patch: 16, Width: 384, Blocks: 36, LayerScale: 1e-6}},
		{"big_24", Mixer{Patch: 8, Width: 768, Blocks: 24, LayerScale: 1e-6}},
	} {
		mixer(nn.Architecture{
			Name:      "resmlp_" + v.name + "_224",
			Summary:   "ResMLP-" + v.name,
			Reference: "Touvron et al., ResMLP: feedforward networks for image classification, 2021",
		}, v.net)
	}
	for _, v := range []struct {
		size  string
		width int
	}{{"ti", 128}, {"s", 256}, {"b", 512}} {
		mixer(nn.Architecture{
			Name:      "gmlp_" + v.size + "16_224",
			Summary:   "gMLP-" + v.size,
			Reference: "Liu et al., Pay attention to MLPs, 2021",
			Mean:      half,
			Std:       half,
		}, Mixer{Patch: 16, Width: v.width, Blocks: 30, Gate: true, MLPRatio: 6})
	}
}

// mixer registers a net of the family.
func mixer(a nn.Architecture, net Mixer) {
	a.Family, a.MinSize, a.Resize, a.Interpolation = "mixer", net.Patch, 256, bicubic
	a.Summary += ", with timm's names"
	a.Block, a.Init, a.Build = `^(blocks\.\d+)\.`, mixerInitial, net.Build
	if net.SwiGLU {
		a.Init = gatedMixerInitial
	}
	imageNet(a)
}

// Mixer are the options of a net whose linear layers mix the elements of tokens, and the tokens of an image. Its
// weights fit images of one size.
type Mixer struct {
	Patch  int // height and width of a patch; timm's patch_size
	Width  int // elements of a token; timm's embed_dim
	Blocks int // timm's num_blocks

	// LayerScale is the initial factor of each element of a branch, of ResMLP: tokens are mixed by one linear layer, and
	// factors and biases take the place of normalisations. It is the init_values of timm's ResBlock; 0 means a Mixer.
	LayerScale float64

	// Gate makes blocks of one perceptron, half of whose hidden layer, mixed among tokens, multiplies the other: gMLP,
	// timm's SpatialGatingBlock.
	Gate bool

	// SwiGLU makes half of a hidden layer the factor of the other's elements, after a SiLU: timm's mlp_layer=GluMlp with
	// act_layer=nn.SiLU.
	SwiGLU bool

	// TokenRatio is the number of elements of the hidden layer that mixes tokens for each of a token, and MLPRatio that of
	// the other hidden layer; 0 means .5 and 4. They are timm's mlp_ratio.
	TokenRatio, MLPRatio float64
}

// gateEps is added to the variances of the hidden layers of gMLP.
const gateEps = 1e-5

// Build adds the layers to b.
func (o Mixer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	simple := o.Gate || o.LayerScale > 0
	b.options("Mixer", o).least(1, "Patch", "Width", "Blocks").least(0, "LayerScale", "TokenRatio", "MLPRatio").
		that(!o.Gate || o.LayerScale == 0, "LayerScale", "0 with Gate").
		that(!simple || o.TokenRatio == 0, "TokenRatio", "0 with LayerScale or Gate").
		that(!simple || !o.SwiGLU, "SwiGLU", "false with LayerScale or Gate")
	o.TokenRatio, o.MLPRatio = cmp.Or(o.TokenRatio, .5), cmp.Or(o.MLPRatio, 4)
	hidden, across := int(float64(o.Width)*o.MLPRatio), int(float64(o.Width)*o.TokenRatio)
	b.options("Mixer", o).that(simple || across > 0, "TokenRatio", "at least 1/Width").
		that(hidden > 0, "MLPRatio", "at least 1/Width").
		that(!o.Gate || hidden%2 == 0, "MLPRatio", "such that the hidden layer is even with Gate").
		that(!o.SwiGLU || hidden%2 == 0, "MLPRatio", "such that the hidden layer is even with SwiGLU").
		that(!o.SwiGLU || across%2 == 0, "TokenRatio", "such that the hidden layer is even with SwiGLU")
	if !b.multipleOf(x, o.Patch) {
		return nil
	}
	s := x.Shape()
	n, height, width := s[0], s[2]/o.Patch, s[3]/o.Patch
	x = b.Conv("stem.proj", x, nn.Conv{Filters: o.Width, Kernel: o.Patch, Stride: o.Patch, Bias: true})
	x = b.rows("stem", x)
	for i := range o.Blocks {
		name := fmt.Sprintf("blocks.%d", i)
		switch {
		case o.Gate:
			x = o.gated(b, name, x, n)
		case o.LayerScale > 0:
			x = o.scaled(b, name, x, n)
		default:
			y := b.LayerNorm(name+".norm1", x, rowEps)
			y = b.acrossTokens(name+".mlp_tokens", y, n, func(y *G.Node) *G.Node {
				return o.perceptron(b, name+".mlp_tokens", y, across)
			})
			x = b.rowResidual(name+".drop_path1", y, x, n, b.Config().DropPath)
			y = o.perceptron(b, name+".mlp_channels", b.LayerNorm(name+".norm2", x, rowEps), hidden)
			x = b.rowResidual(name+".drop_path2", y, x, n, b.Config().DropPath)
		}
	}
	if o.LayerScale > 0 {
		x = b.affine("norm", x)
	} else {
		x = b.LayerNorm("norm", x, rowEps)
	}
	x = b.Reshape("by_image", x, n, height*width, o.Width)
	x = b.GlobalAvgPool("pool", b.Apply("planes", op.Planes{Height: height, Width: width}, x))
	return b.Linear("head", b.Dropout("head_drop", x, b.Config().Dropout), b.Config().Classes)
}

// perceptron has a hidden layer, and as many outputs as inputs.
func (o Mixer) perceptron(b layer, name string, x *G.Node, hidden int) *G.Node {
	if !o.SwiGLU || b.Err() != nil {
		return b.perceptron(name, x, hidden)
	}
	y := b.Linear(name+".fc1", x, hidden)
	gated, gate := b.Slice(name+".gated", y, 1, 0, hidden/2), b.Slice(name+".gate", y, 1, hidden/2, hidden)
	y = b.Map(name+".act", expr.Arg(0).Mul(expr.Arg(1)).Mul(expr.Arg(1).Sigmoid()), gated, gate)
	return b.Linear(name+".fc2", y, x.Shape()[1])
}

// acrossTokens applies f to rows of an element of all tokens of an image, for the rows x of n images.
func (b layer) acrossTokens(name string, x *G.Node, n int, f func(*G.Node) *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	tokens, c := x.Shape()[0]/n, x.Shape()[1]
	x = b.Permute(name+".across", b.Reshape(name+".by_image", x, n, tokens, c), 0, 2, 1)
	x = f(b.Reshape(name+".elements", x, n*c, tokens))
	x = b.Permute(name+".back", b.Reshape(name+".by_element", x, n, c, tokens), 0, 2, 1)
	return b.Reshape(name+".tokens", x, n*tokens, c)
}

// scaled is a block of ResMLP for the rows x of n images.
func (o Mixer) scaled(b layer, name string, x *G.Node, n int) *G.Node {
	factors := b.factors(o.LayerScale, o.Width, name+".ls1", name+".ls2")
	y := b.acrossTokens(name+".linear_tokens", b.affine(name+".norm1", x), n, func(y *G.Node) *G.Node {
		return b.Linear(name+".linear_tokens", y, x.Shape()[0]/n)
	})
	y = b.Scale(name+".scaled1", y, factors[0])
	x = b.rowResidual(name+".drop_path1", y, x, n, b.Config().DropPath)
	y = b.perceptron(name+".mlp_channels", b.affine(name+".norm2", x), int(float64(o.Width)*o.MLPRatio))
	return b.rowResidual(name+".drop_path2", b.Scale(name+".scaled2", y, factors[1]), x, n, b.Config().DropPath)
}

// affine multiplies elements of rows by trained factors and adds trained numbers.
func (b layer) affine(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	alpha := b.AddParam(nn.Param{Name: name + ".alpha", Shape: op.Shape{1, 1, c},
		Init: nn.Init{Distribution: nn.Constant, Scale: 1}})
	beta := b.AddParam(nn.Param{Name: name + ".beta", Shape: op.Shape{1, 1, c}})
	alpha, beta = b.Reshape(name+".factors", alpha, c), b.Reshape(name+".numbers", beta, c)
	return b.Map(name, expr.Arg(0).Mul(expr.Arg(1)).Add(expr.Arg(2)), x, alpha, beta)
}

// gated is a block of gMLP for the rows x of n images.
func (o Mixer) gated(b layer, name string, x *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	hidden, mlp := int(float64(o.Width)*o.MLPRatio), name+".mlp_channels"
	y := b.GELU(mlp+".act", b.Linear(mlp+".fc1", b.LayerNorm(name+".norm", x, rowEps), hidden))
	v := b.LayerNorm(mlp+".gate.norm", b.Slice(mlp+".gated", y, 1, hidden/2, hidden), gateEps)
	v = b.acrossTokens(mlp+".gate.proj", v, n, func(v *G.Node) *G.Node {
		return b.Linear(mlp+".gate.proj", v, x.Shape()[0]/n)
	})
	y = b.Scale(mlp+".gate", b.Slice(mlp+".kept", y, 1, 0, hidden/2), v)
	return b.rowResidual(name+".drop_path", b.Linear(mlp+".fc2", y, o.Width), x, n, b.Config().DropPath)
}

// gatedMixerInitial is mixerInitial with gates that start open.
func gatedMixerInitial(p nn.Param) nn.Init {
	first := mixerInitial(p)
	switch {
	case strings.HasSuffix(p.Name, ".fc1.weight"):
		first.Second = &nn.Init{Distribution: nn.Normal, Scale: 1e-6}
	case strings.HasSuffix(p.Name, ".fc1.bias"):
		first.Second = &nn.Init{Scale: 1}
	}
	return first
}

// mixerInitial is the initial distribution of a parameter.
func mixerInitial(p nn.Param) nn.Init {
	deviation := func(x float64) nn.Init { return nn.Init{Distribution: nn.Normal, Scale: x} }
	switch matrix, mlp := len(p.Shape) == 2, strings.Contains(p.Name, ".mlp_"); {
	case strings.HasPrefix(p.Name, "head."):
		return nn.Init{}
	case strings.HasSuffix(p.Name, ".gate.proj.bias"):
		return nn.Init{Distribution: nn.Constant, Scale: 1}
	case strings.HasSuffix(p.Name, ".gate.proj.weight"):
		return deviation(1e-6)
	case len(p.Shape) == 4:
		return deviation(math.Sqrt(1 / float64(p.Shape[1:].Size())))
	case matrix: // Glorot's
		return nn.Init{Distribution: nn.Uniform, Scale: math.Sqrt(6 / float64(p.Shape[0]+p.Shape[1]))}
	case p.Init.Distribution == nn.Uniform && mlp: // a bias
		return deviation(1e-6)
	case p.Init.Distribution == nn.Uniform:
		return nn.Init{}
	}
	return p.Init
}
