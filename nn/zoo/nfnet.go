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
	large := [4]int{256, 512, 1536, 1536}
	light := NFNet{Channels: large, Stem: "deep_quad", StemWidth: 128, GroupSize: 64, Ratio: .25, Features: 3072,
		ExtraConv: true, Activation: "silu"}
	register := func(name, summary string, size, resize int, o NFNet) {
		imageNet(nn.Architecture{
			Name:          name,
			Family:        "resnet",
			Summary:       summary + ", without normalisation, as timm's",
			Reference:     "Brock et al., High-performance large-scale image recognition without normalization, 2021",
			Size:          size,
			Resize:        resize,
			Interpolation: bicubic,
			SamePadding:   o.SkipInit,
			Block:         `^(stem|stages\.\d\.\d+)\.`,
			Init:          o.initial,
			Build:         o.Build,
		})
	}
	for i, size := range []int{192, 224, 256, 320, 384, 416, 448} {
		o := NFNet{Channels: large, Stem: "deep_quad", StemWidth: 128, GroupSize: 128, Ratio: .5, Features: 3072,
			ExtraConv: true, Excite: .5, Activation: "gelu", GammaInAct: true, SkipInit: true,
			Blocks: [4]int{i + 1, 2 * (i + 1), 6 * (i + 1), 3 * (i + 1)}}
		resize := []int{213, 246, 278, 340, 403, 436, 468}[i]
		register(fmt.Sprintf("dm_nfnet_f%d", i), fmt.Sprintf("NFNet-F%d of DeepMind", i), size, resize, o)
	}
	for i, size := range []int{224, 256, 320} {
		o := light
		o.ECA, o.Blocks = true, [4]int{i + 1, 2 * (i + 1), 6 * (i + 1), 3 * (i + 1)}
		if i == 0 {
			o.Features = 2304
		}
		register(fmt.Sprintf("eca_nfnet_l%d", i), fmt.Sprintf("ECA-NFNet-L%d", i), size, []int{248, 284, 355}[i], o)
	}
	light.Excite, light.Features, light.Blocks = .25, 2304, [4]int{1, 2, 6, 3}
	register("nfnet_l0", "NFNet-L0", 224, 248, light)
	register("nf_resnet50", "NF-ResNet-50", 256, 272, NFNet{Blocks: [4]int{3, 4, 6, 3},
		Channels: [4]int{256, 512, 1024, 2048}, Stem: "7x7_pool", StemWidth: 64, Ratio: .25, Activation: "relu"})
	register("nf_regnet_b1", "NF-RegNet-B1", 256, 284, NFNet{Blocks: [4]int{2, 4, 7, 7},
		Channels: [4]int{48, 104, 208, 440}, Width: .75, Stem: "3x3", GroupSize: 8, Ratio: 2.25, Features: 1280,
		Reg: true, Excite: .5, Activation: "silu"})
}

// NFNet are the options of a residual net without normalisation, whose convolutions have standardised weights.
type NFNet struct {
	Blocks     [4]int  // of the stages; timm's depths
	Channels   [4]int  // of the stages
	Width      float64 // factor of all channels; 0 means 1; timm's width_factor
	Stem       string  // "deep_quad", "3x3" or "7x7_pool", timm's stem_type
	StemWidth  int     // its channels; 0 means those of the first stage; timm's stem_chs
	GroupSize  int     // channels of a group of the 3×3 convolutions; 0 means all; timm's group_size
	Ratio      float64 // of a block's inner channels; timm's bottle_ratio
	Features   int     // of a last convolution; 0: none; timm's num_features
	Reg        bool    // Ratio is that to a block's input, and attention lies inside, as in a RegNet: timm's reg
	ExtraConv  bool    // a second 3×3 convolution: timm's extra_conv
	Excite     float64 // as nn.ResNet's
	ECA        bool    // as nn.ResNet's
	Activation string  // "relu", "silu" or "gelu": timm's act_layer
	GammaInAct bool    // activations have the factor that keeps their variance, not weights: timm's gamma_in_act
	SkipInit   bool    // a factor of each branch starts as 0: timm's skipinit
}

// normFree are activations with the factors that keep the variance of normal numbers.
var normFree = map[string]struct {
	act   nn.Activation
	gamma float64
}{
	"relu": {(*nn.Builder).ReLU, 1.7139588594436646},
	"silu": {(*nn.Builder).SiLU, 1.7881293296813965},
	"gelu": {(*nn.Builder).GELU, 1.7015043497085571},
}

// The share of a block's branch in its result, and the factor of attention: timm's alpha and attn_gain.
const normFreeAlpha, normFreeAttention = .2, 2

// Build adds the layers to b.
func (o NFNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	_, known := normFree[o.Activation]
	check := b.options("NFNet", o).least(1, "Blocks", "Channels").
		least(0, "Width", "StemWidth", "GroupSize", "Ratio", "Features", "Excite").
		that(known, "Activation", `"relu", "silu" or "gelu"`).
		that(o.Stem == "deep_quad" || o.Stem == "3x3" || o.Stem == "7x7_pool", "Stem", `"deep_quad", "3x3" or "7x7_pool"`).
		that(!o.ECA || o.Excite == 0, "Excite", "0 with ECA")
	if !check.ok() {
		return nil
	}
	width := func(n int) int { return divisible(float64(n) * cmp.Or(o.Width, 1)) }
	x = o.stem(b, x, width(cmp.Or(o.StemWidth, o.Channels[0])))
	done, all, variance := 0, sum(o.Blocks[:]), 1.
	for i, n := range o.Blocks {
		for j := range n {
			stride := 1
			if j == 0 && (i > 0 || o.Stem == "3x3") {
				stride = 2
			}
			ratio := o.Ratio
			if o.Reg && done == 0 {
				ratio = 1
			}
			x = o.block(b, fmt.Sprintf("stages.%d.%d", i, j), x, normFreeBlock{width(o.Channels[i]), stride, ratio,
				1 / math.Sqrt(variance), b.Config().DropPathAt(done, all)})
			if j == 0 {
				variance = 1
			}
			variance += normFreeAlpha * normFreeAlpha
			done++
		}
	}
	if o.Features > 0 {
		x = o.conv(b, "final_conv", x, nn.Conv{Filters: width(o.Features), Kernel: 1})
	}
	x = b.GlobalAvgPool("head.global_pool", o.act(b, "final_act", x, 1))
	return b.Linear("head.fc", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// conv adds a convolution.
func (o NFNet) conv(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	c.Bias, c.StdEps, c.Gain = true, 1e-5, 1
	if !o.GammaInAct {
		c.Gain = normFree[o.Activation].gamma
	}
	return b.conv(name, x, c)
}

// act adds an activation with a factor.
func (o NFNet) act(b layer, name string, x *G.Node, factor float64) *G.Node {
	a := normFree[o.Activation]
	if o.GammaInAct {
		factor *= a.gamma
	}
	x = a.act(b.Builder, name, x)
	if factor != 1 {
		x = b.Map(name+".gain", expr.Arg(0).Scale(factor), x)
	}
	return x
}

// stem is the first convolutions.
func (o NFNet) stem(b layer, x *G.Node, channels int) *G.Node {
	switch o.Stem {
	case "3x3":
		return o.conv(b, "stem.conv", x, nn.Conv{Filters: channels, Kernel: 3, Stride: 2})
	case "7x7_pool":
		return b.MaxPool("stem.pool", o.conv(b, "stem.conv", x, nn.Conv{Filters: channels, Kernel: 7, Stride: 2}), 3, 2, 1)
	}
	x = o.conv(b, "stem.conv1", x, nn.Conv{Filters: channels / 8, Kernel: 3, Stride: 2})
	x = o.conv(b, "stem.conv2", o.act(b, "stem.act2", x, 1), nn.Conv{Filters: channels / 4, Kernel: 3})
	x = o.conv(b, "stem.conv3", o.act(b, "stem.act3", x, 1), nn.Conv{Filters: channels / 2, Kernel: 3})
	return o.conv(b, "stem.conv4", o.act(b, "stem.act4", x, 1), nn.Conv{Filters: channels, Kernel: 3, Stride: 2})
}

// normFreeBlock is a block of an NFNet. beta divides its input by the expected standard deviation.
type normFreeBlock struct {
	channels, stride  int
	ratio, beta, drop float64
}

// block adds a residual block.
func (o NFNet) block(b layer, name string, x *G.Node, k normFreeBlock) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	inner, groups := divisible(float64(k.channels)*k.ratio), 1
	if o.Reg {
		inner = divisible(float64(in) * k.ratio)
	}
	if o.GroupSize > 0 {
		groups = max(inner/o.GroupSize, 1)
		if o.GroupSize%8 == 0 {
			inner = o.GroupSize * groups
		}
	}
	var skip *G.Node
	if o.SkipInit {
		skip = b.AddParam(nn.Param{Name: name + ".skipinit_gain", Shape: op.Shape{1}, Stored: op.Shape{}, BiasOrNorm: true})
	}
	y, shortcut := o.act(b, name+".act1", x, k.beta), x
	if in != k.channels || k.stride > 1 {
		shortcut = y
		if k.stride > 1 {
			shortcut = b.Pairs(name+".downsample.pool", y)
		}
		shortcut = o.conv(b, name+".downsample.conv", shortcut, nn.Conv{Filters: k.channels, Kernel: 1})
	}
	y = o.conv(b, name+".conv1", y, nn.Conv{Filters: inner, Kernel: 1})
	c := nn.Conv{Filters: inner, Kernel: 3, Stride: k.stride, Groups: groups}
	y = o.conv(b, name+".conv2", o.act(b, name+".act2", y, 1), c)
	if o.ExtraConv {
		c.Stride = 1
		y = o.conv(b, name+".conv2b", o.act(b, name+".act2b", y, 1), c)
	}
	factor := normFreeAlpha
	if o.Reg && (o.ECA || o.Excite > 0) {
		y = b.Map(name+".attn_gain", expr.Arg(0).Scale(normFreeAttention), o.attention(b, name+".attn", y))
	}
	y = o.conv(b, name+".conv3", o.act(b, name+".act3", y, 1), nn.Conv{Filters: k.channels, Kernel: 1})
	if !o.Reg && (o.ECA || o.Excite > 0) {
		y, factor = o.attention(b, name+".attn_last", y), factor*normFreeAttention
	}
	y = b.StochasticDepth(name+".drop_path", y, k.drop)
	sum := expr.Arg(0).Scale(factor)
	if skip != nil { // repeated, since gradients of channels are summed up faster than those of a scalar
		skip = b.Expand(name+".skips", skip, k.channels)
		return b.Map(name+".add", sum.Mul(expr.Arg(2)).Add(expr.Arg(1)), y, shortcut, skip)
	}
	return b.Map(name+".add", sum.Add(expr.Arg(1)), y, shortcut)
}

// attention scales the channels of x.
func (o NFNet) attention(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil || o.ECA {
		return b.ECA(name, x)
	}
	inner := eights(float64(x.Shape()[1]) * o.Excite)
	return b.SqueezeExcite(name, x, inner, (*nn.Builder).ReLU, (*nn.Builder).Sigmoid)
}

// initial gives convolutions weights by their inputs, and makes branches start as 0.
func (o NFNet) initial(p nn.Param) nn.Init {
	switch {
	case p.Name == "head.fc.weight":
		return nn.Init{Distribution: nn.Normal, Scale: .01}
	case strings.HasSuffix(p.Name, ".bias"):
		return nn.Init{}
	case strings.HasSuffix(p.Name, ".conv3.gain") && strings.HasPrefix(p.Name, "stages.") && !o.SkipInit:
		return nn.Init{}
	case len(p.Shape) == 4 && strings.HasSuffix(p.Name, ".weight"):
		return nn.Init{Distribution: nn.Normal, Scale: 1 / math.Sqrt(float64(p.Shape[1:].Size()))}
	}
	return p.Init
}
