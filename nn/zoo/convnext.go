package zoo

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name, letter string
		drop         float64
		resize       int
		net          ConvNeXt
	}{
		{"tiny", "T", .1, 236, ConvNeXt{Blocks: [4]int{3, 3, 9, 3}, Width: 96}},
		{"small", "S", .4, 230, ConvNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 96}},
		{"base", "B", .5, 232, ConvNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 128}},
		{"large", "L", .5, 232, ConvNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 192}},
	} {
		imageNet(nn.Architecture{
			Name:      "convnext_" + v.name,
			Family:    "convnext",
			Summary:   "ConvNeXt-" + v.letter,
			Reference: convNeXtReference,
			MinSize:   32,
			DropPath:  v.drop,
			Resize:    v.resize,
			Block:     `^(features\.[1357]\.\d+)\.`,
			Init:      convNeXtInitial,
			Build:     v.net.Build,
		})
	}
	for _, v := range []struct {
		name, letter string
		blocks       [4]int
		width        int
		drop         float64
	}{
		{"atto", "A", [4]int{2, 2, 6, 2}, 40, .1},
		{"femto", "F", [4]int{2, 2, 6, 2}, 48, .1},
		{"pico", "P", [4]int{2, 2, 6, 2}, 64, .1},
		{"nano", "N", [4]int{2, 2, 8, 2}, 80, .1},
		{"tiny", "T", [4]int{3, 3, 9, 3}, 96, .2},
		{"base", "B", [4]int{3, 3, 27, 3}, 128, .1},
		{"large", "L", [4]int{3, 3, 27, 3}, 192, .2},
	} {
		small := v.width < 96
		net := ConvNeXt{Blocks: v.blocks, Width: v.width, Timm: true, ConvMLP: small}
		a := nn.Architecture{
			Name:          "convnext_" + v.name,
			Family:        "convnext",
			Summary:       "ConvNeXt-" + v.letter + ", as timm's",
			Reference:     convNeXtReference,
			MinSize:       32,
			Interpolation: bicubic,
			Resize:        256,
			Block:         timmStage,
			Init:          convNeXtInitial,
			Build:         net.Build,
		}
		if v.name == "nano" {
			a.Resize = 235
		}
		if small {
			imageNet(a)
		}
		net.Response = true
		a.Name, a.Summary = "convnextv2_"+v.name, "ConvNeXt V2-"+v.letter+", as timm's"
		a.Reference = convNeXtV2Reference
		a.Resize, a.DropPath, a.Build = 256, v.drop, net.Build
		imageNet(a)
	}
	large := [4]int{3, 3, 27, 3}
	clip := nn.Architecture{Size: 256, Resize: 256, Mean: clipMean, Std: clipStd}
	hidden := clip
	hidden.Size, hidden.Resize = 320, 320
	small := nn.Architecture{Resize: 256}
	tight := nn.Architecture{Resize: 235}
	halves := nn.Architecture{Resize: 256, Mean: half, Std: half}
	halved := nn.Architecture{Resize: 248, Mean: half, Std: half}
	for _, v := range []struct {
		name, summary string
		images        nn.Architecture // how it takes them
		net           ConvNeXt
	}{
		{"xlarge", "-XL", small, ConvNeXt{Blocks: large, Width: 256}},
		{"xxlarge", "-XXL", clip, ConvNeXt{Blocks: [4]int{3, 4, 30, 3}, Width: 384, Eps: 1e-5}},
		{"large_mlp", "-L with a hidden layer behind the pooling", hidden, ConvNeXt{Blocks: large, Width: 192, Hidden: 1536}},
		{"tiny_hnf", "-T with a normalisation before the pooling", tight,
			ConvNeXt{Blocks: [4]int{3, 3, 9, 3}, Width: 96, NormFirst: true, ConvMLP: true}},
		{"atto_ols", "-A, overlapping stem", small, ConvNeXt{Blocks: [4]int{2, 2, 6, 2}, Width: 40, Stem: "overlap_tiered"}},
		{"femto_ols", "-F, overlapping stem", small, ConvNeXt{Blocks: [4]int{2, 2, 6, 2}, Width: 48, Stem: "overlap_tiered"}},
		{"pico_ols", "-P, overlapping stem", tight, ConvNeXt{Blocks: [4]int{2, 2, 6, 2}, Width: 64, Stem: "overlap_tiered"}},
		{"nano_ols", "-N, overlapping stem", tight, ConvNeXt{Blocks: [4]int{2, 2, 8, 2}, Width: 80, Stem: "overlap"}},
		{"zepto_rms", "-Z, pixels by their deviation", halves,
			ConvNeXt{Blocks: [4]int{2, 2, 4, 2}, Width: 32, SimpleNorm: true}},
		{"zepto_rms_ols", "-Z, pixels by their deviation, overlapping stem", halved,
			ConvNeXt{Blocks: [4]int{2, 2, 4, 2}, Width: 32, SimpleNorm: true, Stem: "overlap_act"}},
	} {
		a := v.images
		v.net.Timm, v.net.ConvMLP = true, v.net.ConvMLP || v.net.Width < 96
		a.Name, a.Summary, a.Reference = "convnext_"+v.name, "ConvNeXt"+v.summary+", as timm's", convNeXtReference
		a.Family, a.MinSize, a.Interpolation, a.Block = "convnext", 32, bicubic, timmStage
		a.Init, a.Build = convNeXtInitial, v.net.Build
		imageNet(a)
	}
	imageNet(nn.Architecture{
		Name:          "convnextv2_huge",
		Family:        "convnext",
		Summary:       "ConvNeXt V2-H, as timm's",
		Reference:     convNeXtV2Reference,
		Size:          384,
		MinSize:       32,
		Resize:        384,
		Interpolation: bicubic,
		DropPath:      .3,
		Block:         timmStage,
		Init:          convNeXtInitial,
		Build:         ConvNeXt{Blocks: large, Width: 352, Timm: true, Response: true}.Build,
	})
}

const (
	convNeXtReference   = "Liu et al., A ConvNet for the 2020s, 2022"
	convNeXtV2Reference = "Woo et al., ConvNeXt V2: co-designing and scaling ConvNets with masked autoencoders, 2023"
)

// ConvNeXt are the options of a convolutional net with the blocks of a transformer.
type ConvNeXt struct {
	Blocks [4]int // of each stage
	Width  int    // channels of the first stage, which doubles from one to the next
	// LayerScale is the initial factor of a block's branch; 0 means 1e-6: torchvision's layer_scale, timm's ls_init_value.
	LayerScale float64

	Timm bool // names and order of parameters are timm's, else torchvision's
	// Response normalises the hidden layer of a block by the response of each channel over the image, and leaves out the
	// factors of branches: ConvNeXt V2, timm's use_grn with ls_init_value=None. Only Timm has it.
	Response bool
	// ConvMLP makes the linear layers of blocks convolutions 1×1, which changes their weights' shapes alone: timm's
	// conv_mlp. Only Timm has it.
	ConvMLP bool

	// The others are Timm's, too.

	// Stem is "overlap" for two 3×3 convolutions in place of the patches, "overlap_tiered" for such of which the first has
	// half the channels, "overlap_act" for a GELU between them; "" means patches: timm's stem_type.
	Stem       string
	NormFirst  bool    // a normalisation goes before the pooling, none behind it; timm's head_norm_first
	Hidden     int     // outputs of a layer before the last; 0 means none; timm's head_hidden_size
	Eps        float64 // of normalisations; 0 means 1e-6; timm's norm_eps
	SimpleNorm bool    // normalisations divide by the standard deviation alone; timm's norm_layer "simplenorm"
}

// convNeXtNames are the names of parameters; those inside a block follow the block's.
type convNeXtNames struct {
	stem, stemNorm, downsample, down, block, norm, head string
	step, from                                          int // of the numbers of stages
	scale, spatial, normal, expand, response, contract  string
}

var convNeXtTorchvision = convNeXtNames{"features.0.0", "features.0.1", "features.%d.0", "features.%d.1",
	"features.%d.%d", "classifier.0", "classifier.2", 2, 1, ".layer_scale", ".block.0", ".block.2", ".block.3", "", ".block.5"}

var convNeXtTimm = convNeXtNames{"stem.0", "stem.1", "stages.%d.downsample.0", "stages.%d.downsample.1",
	"stages.%d.blocks.%d", "head.norm", "head.fc", 1, 0, ".gamma", ".conv_dw", ".norm", ".mlp.fc1", ".mlp.grn", ".mlp.fc2"}

// Build adds the layers to b.
func (o ConvNeXt) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, of := layer{builder}, convNeXtTorchvision
	if o.Timm {
		of = convNeXtTimm
	}
	b.options("ConvNeXt", o).least(1, "Blocks", "Width").least(0, "LayerScale").
		that(o.Timm || !o.Response, "Response", "false without Timm").
		that(o.Timm || !o.ConvMLP, "ConvMLP", "false without Timm").
		that(!o.Response || o.LayerScale == 0, "LayerScale", "0 with Response").
		that(slices.Contains([]string{"", "overlap", "overlap_tiered", "overlap_act"}, o.Stem), "Stem",
			`"", "overlap", "overlap_tiered" or "overlap_act"`).
		that(o.Timm || o.Stem == "", "Stem", `"" without Timm`).
		that(o.Timm || !o.NormFirst, "NormFirst", "false without Timm").
		least(0, "Hidden", "Eps").that(o.Timm && !o.NormFirst || o.Hidden == 0, "Hidden", "0 with NormFirst or without Timm").
		that(o.Timm || !o.SimpleNorm, "SimpleNorm", "false without Timm").
		that(!o.SimpleNorm || !o.NormFirst, "NormFirst", "false with SimpleNorm")
	if !b.atLeast(x, 32) {
		return nil
	}
	x = o.stem(b, of, x)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		if i > 0 {
			x = o.pixelNorm(b, fmt.Sprintf(of.downsample, of.step*i), x)
			x = b.Conv(fmt.Sprintf(of.down, of.step*i), x, nn.Conv{Filters: o.Width << i, Kernel: 2, Stride: 2, Bias: true})
		}
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			x = o.block(b, of, fmt.Sprintf(of.block, of.step*i+of.from, j), x, drop)
			done++
		}
	}
	if o.NormFirst {
		x = b.GlobalAvgPool("avgpool", o.pixelNorm(b, "norm_pre", x))
	} else {
		x = o.norm(b, of.norm, b.GlobalAvgPool("avgpool", x))
	}
	if o.Hidden > 0 {
		x = b.GELU("head.pre_logits.act", b.Linear("head.pre_logits.fc", x, o.Hidden))
	}
	return b.Linear(of.head, b.Dropout("dropout", x, b.Config().Dropout), b.Config().Classes)
}

// pixelNorm adds a layer normalisation of the channels of each pixel of x [N,C,H,W].
func (b layer) pixelNorm(name string, x *G.Node) *G.Node {
	return b.pixelNormBy(name, x, rowEps)
}

// pixelNormBy is pixelNorm with another number that is added to variances.
func (b layer) pixelNormBy(name string, x *G.Node, eps float64) *G.Node {
	return b.perPixel(name, x, func(x *G.Node) *G.Node { return b.LayerNorm(name, x, eps) })
}

// stem quarters the extent.
func (o ConvNeXt) stem(b layer, of convNeXtNames, x *G.Node) *G.Node {
	if o.Stem == "" {
		x = b.Conv(of.stem, x, nn.Conv{Filters: o.Width, Kernel: 4, Stride: 4, Bias: true})
		return o.pixelNorm(b, of.stemNorm, x)
	}
	at, first := 1, nn.Conv{Filters: o.Width, Kernel: 3, Stride: 2, Bias: true}
	second := first
	if o.Stem == "overlap_tiered" {
		first.Filters = divisible(float64(o.Width / 2))
	}
	x = b.conv("stem.0", x, first)
	if o.Stem == "overlap_act" {
		x = b.GELU("stem.1", x)
		at = 2
	}
	x = b.conv(fmt.Sprintf("stem.%d", at), x, second)
	return o.pixelNorm(b, fmt.Sprintf("stem.%d", at+1), x)
}

// norm normalises rows.
func (o ConvNeXt) norm(b layer, name string, rows *G.Node) *G.Node {
	eps := cmp.Or(o.Eps, rowEps)
	if !o.SimpleNorm {
		return b.LayerNorm(name, rows, eps)
	}
	if b.Err() != nil {
		return nil
	}
	n, x0, x1, x2 := rows.Shape()[1], expr.Arg(0), expr.Arg(1), expr.Arg(2)
	weight := b.vector(name+".weight", n, 1)
	square := b.Map(name+".square", x0.Sub(x1).Square(), rows, b.Reduce(name+".mean", rows, op.Mean, 1))
	variance := b.Reduce(name+".variance", square, op.Mean, 1) // of all; the factor makes it that of a sample
	of := x1.Scale(float64(n) / float64(n-1)).Shift(eps).Sqrt()
	return b.Map(name, x0.Div(of).Mul(x2), rows, variance, weight)
}

// pixelNorm is norm for the channels of each pixel of images.
func (o ConvNeXt) pixelNorm(b layer, name string, x *G.Node) *G.Node {
	if o.SimpleNorm {
		return b.image(name, o.norm(b, name, b.rows(name, x)), x)
	}
	return b.perPixel(name, x, func(x *G.Node) *G.Node { return o.norm(b, name, x) })
}

// perPixel applies f to the pixels of images x.
func (b layer) perPixel(name string, x *G.Node, f func(x *G.Node) *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	return b.Apply(name+".pixels", op.Planes{Height: s[2], Width: s[3]}, f(b.Apply(name+".rows", op.Tokens{}, x)))
}

// block adds to x a depthwise convolution 7×7 followed by a perceptron of each pixel. drop is the probability of
// dropping this branch in Train.
func (o ConvNeXt) block(b layer, of convNeXtNames, name string, x *G.Node, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	var factor *G.Node
	if !o.Response {
		p := nn.Param{Name: name + of.scale, Shape: op.Shape{c, 1, 1}, BiasOrNorm: o.Timm,
			Init: nn.Init{Distribution: nn.Constant, Scale: cmp.Or(o.LayerScale, 1e-6)}}
		if o.Timm {
			p.Shape = op.Shape{c}
		}
		factor = b.AddParam(p)
	}
	y := b.Conv(name+of.spatial, x, nn.Conv{Filters: c, Kernel: 7, Pad: 3, Groups: c, Bias: true})
	y = b.rows(name, y)
	y = o.linear(b, name+of.expand, o.norm(b, name+of.normal, y), x, 4*c)
	y = b.GELU(name+of.expand+".gelu", y)
	if o.Response {
		y = b.rows(name+of.response, b.response(name+of.response, b.image(name+of.response, y, x)))
	}
	y = b.image(name, o.linear(b, name+of.contract, y, x, c), x)
	if factor != nil {
		y = b.Map(name+".scaled", expr.Arg(0).Mul(expr.Arg(1)), y, factor)
	}
	return b.residual(name, y, x, drop)
}

// linear adds a linear layer of the rows y of image, one a pixel.
func (o ConvNeXt) linear(b layer, name string, y, image *G.Node, out int) *G.Node {
	if !o.ConvMLP {
		return b.Linear(name, y, out)
	}
	return b.rows(name, b.Conv(name, b.image(name, y, image), nn.Conv{Filters: out, Kernel: 1, Bias: true}))
}

// responseEps is added to the mean of responses.
const responseEps = 1e-6

// response adds x + x·g·weight + bias to x [N,C,H,W]: the global response normalisation of Woo et al. 2023. g is the
// norm of a channel over an image's pixels, by the mean of the channels'.
func (b layer) response(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	weight := b.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{s[1]}, BiasOrNorm: true})
	bias := b.AddParam(nn.Param{Name: name + ".bias", Shape: op.Shape{s[1]}, BiasOrNorm: true})
	x0, x1, x2 := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	norm := b.GlobalAvgPool(name+".mean_square", b.Map(name+".square", smallSquare, x))
	// The bound makes the gradient of a channel that is 0 everywhere 0, as PyTorch's is.
	norm = b.Map(name+".norm", ofSmallSquares(x0.Scale(float64(s[2]*s[3]))).Max(expr.Const(1e-30)).Sqrt(), norm)
	mean := b.Reduce(name+".mean", norm, op.Mean, 1)
	factor := b.Map(name+".factor", x0.Div(x1.Shift(responseEps)).Mul(x2).Shift(1), norm, mean, weight)
	return b.Map(name, x0.Mul(x1).Add(x2), x, factor, bias)
}

// convNeXtInitial is the initial distribution of a parameter.
func convNeXtInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 2, len(p.Shape) == 4:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case p.Init.Distribution == nn.Uniform: // a bias
		return nn.Init{}
	}
	return p.Init
}
