package zoo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	const (
		pool     = "Yu et al., MetaFormer is actually what you need for vision, 2022"
		baseline = "Yu et al., MetaFormer baselines for vision, 2022"
	)
	small, medium, base := [4]int{64, 128, 320, 512}, [4]int{96, 192, 384, 768}, [4]int{128, 256, 512, 768}
	for _, v := range []struct {
		size     string
		blocks   [4]int
		channels [4]int
		scale    float64
		resize   int
		drop     float64
	}{
		{"s12", [4]int{2, 2, 6, 2}, small, 1e-5, 248, .1},
		{"s24", [4]int{4, 4, 12, 4}, small, 1e-5, 248, .1},
		{"s36", [4]int{6, 6, 18, 6}, small, 1e-6, 248, .2},
		{"m36", [4]int{6, 6, 18, 6}, medium, 1e-6, 235, .3},
		{"m48", [4]int{8, 8, 24, 8}, medium, 1e-6, 235, .4},
	} {
		metaFormer("poolformer_"+v.size, "PoolFormer-"+strings.ToUpper(v.size), pool, v.resize, v.drop,
			MetaFormer{Blocks: v.blocks, Channels: v.channels, Pools: true, LayerScale: v.scale})
		metaFormer("poolformerv2_"+v.size, "PoolFormer V2-"+strings.ToUpper(v.size), baseline, 224, v.drop,
			MetaFormer{Blocks: v.blocks, Channels: v.channels, Pools: true, V2: true})
	}
	for _, v := range []struct {
		size        string
		blocks      [4]int
		channels    [4]int
		convolution float64 // of DropPath
		attention   float64
	}{
		{"s18", [4]int{3, 3, 9, 3}, small, .2, .15},
		{"s36", [4]int{3, 12, 18, 3}, small, .3, .3},
		{"m36", [4]int{3, 12, 18, 3}, [4]int{96, 192, 384, 576}, .4, .4},
		{"b36", [4]int{3, 12, 18, 3}, base, .6, .6},
	} {
		net := MetaFormer{Blocks: v.blocks, Channels: v.channels, V2: true, MLPHead: true}
		metaFormer("convformer_"+v.size, "ConvFormer-"+strings.ToUpper(v.size), baseline, 224, v.convolution, net)
		net.Attention = 2
		metaFormer("caformer_"+v.size, "CAFormer-"+strings.ToUpper(v.size), baseline, 224, v.attention, net)
	}
}

// metaFormer registers a net of the family.
func metaFormer(name, summary, reference string, resize int, drop float64, net MetaFormer) {
	imageNet(nn.Architecture{
		Name:          name,
		Family:        "metaformer",
		Summary:       summary + ", with timm's names",
		Reference:     reference,
		MinSize:       32,
		DropPath:      drop,
		Resize:        resize,
		Interpolation: bicubic,
		Block:         timmStage,
		Init:          convNeXtInitial,
		Build:         net.Build,
	})
}

// MetaFormer are the options of a net whose blocks mix tokens by pooling, convolutions or attention.
type MetaFormer struct {
	Blocks   [4]int // of each stage; timm's depths
	Channels [4]int // timm's dims

	Pools     bool // tokens are mixed by pooling, and normalised by image: timm's Pooling, else its SepConv
	Attention int  // the number of stages, the last ones, that mix tokens by attention: in timm's token_mixers
	Head      int  // elements of a head; 0 means 32; timm's head_dim

	// V2 normalises the result of the stem and the inputs of later stages, multiplies shortcuts of the last two stages by
	// trained factors, takes StarReLU for GELU, and leaves out biases in blocks. It is timm's default, and without it the
	// net is the first PoolFormer.
	V2 bool

	LayerScale float64 // initial factor of each channel of a branch; 0 means no factors; timm's layer_scale_init_values
	MLPHead    bool    // the head is a perceptron: timm's use_mlp_head
}

// groupEps is added to the variances of images in the first PoolFormer.
const groupEps = 1e-5

// Build adds the layers to b.
func (o MetaFormer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Head = cmp.Or(o.Head, 32)
	b.options("MetaFormer", o).least(1, "Blocks", "Channels").least(0, "Attention", "Head", "LayerScale").
		that(o.Attention <= 4, "Attention", "at most 4").
		that(!o.Pools || o.Attention == 0, "Attention", "0 with Pools").
		that(o.V2 || o.Pools, "Pools", "true without V2")
	if !b.atLeast(x, 32) {
		return nil
	}
	for _, c := range o.Channels[4-o.Attention:] {
		b.options("MetaFormer", o).that(c%o.Head == 0, "Channels",
			fmt.Sprintf("divisible by Head, which is %d, in the last stages", o.Head))
	}
	x = b.Conv("stem.conv", x, nn.Conv{Filters: o.Channels[0], Kernel: 7, Stride: 4, Pad: 2, Bias: true})
	if o.V2 {
		x = b.pixelScale("stem.norm", x)
	}
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		name := fmt.Sprintf("stages.%d", i)
		if i > 0 && o.Channels[i] != o.Channels[i-1] {
			if o.V2 {
				x = b.pixelScale(name+".downsample.norm", x)
			}
			x = b.Conv(name+".downsample.conv", x, nn.Conv{Filters: o.Channels[i], Kernel: 3, Stride: 2, Pad: 1, Bias: true})
		}
		if b.Err() != nil {
			return nil
		}
		image, attends := x, i >= 4-o.Attention
		if attends {
			x = b.rows(name, x)
		}
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			x = o.block(b, fmt.Sprintf("%s.blocks.%d", name, j), x, o.V2 && i > 1, drop)
			done++
		}
		if attends {
			x = b.image(name, x, image)
		}
	}
	x = b.LayerNorm("head.norm", b.GlobalAvgPool("head.global_pool", x), rowEps)
	x = b.Dropout("head.drop", x, b.Config().Dropout)
	if !o.MLPHead {
		return b.Linear("head.fc", x, b.Config().Classes)
	}
	x = b.Map("head.fc.act", expr.Arg(0).Max(expr.Const(0)).Square(), b.Linear("head.fc.fc1", x, 4*o.Channels[3]))
	return b.Linear("head.fc.fc2", b.LayerNorm("head.fc.norm", x, rowEps), b.Config().Classes)
}

// pixelScale is pixelNorm without a bias, also of rows.
func (b layer) pixelScale(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	weight, zero := b.scaleParams(name, x.Shape()[1])
	norm := func(x *G.Node) *G.Node { return b.Apply(name, op.LayerNorm{Eps: rowEps}, x, weight, zero) }
	if len(x.Shape()) == 2 {
		return norm(x)
	}
	return b.perPixel(name, x, norm)
}

// scaleParams are the weights of a normalisation without a bias, and zeros in its place.
func (b layer) scaleParams(name string, c int) (weight, zero *G.Node) {
	return b.vector(name+".weight", c, 1), b.Constant(name+".zero", op.New(op.T(op.Float64, c)))
}

// block adds to images or rows x the mixture of normalised tokens, then a perceptron of each to the sum. Shortcuts are
// multiplied by factors if scaled. drop is the probability of dropping either branch in Train.
func (o MetaFormer) block(b layer, name string, x *G.Node, scaled bool, drop float64) *G.Node {
	x = o.residual(b, name, "1", x, scaled, drop, o.mix(b, name+".token_mixer", o.norm(b, name+".norm1", x)))
	if b.Err() != nil {
		return nil
	}
	y, c := o.norm(b, name+".norm2", x), x.Shape()[1]
	y = o.dense(b, name+".mlp.fc1", y, 4*c, !o.V2)
	if o.V2 {
		y = b.starReLU(name+".mlp.act", y)
	} else {
		y = b.GELU(name+".mlp.act", y)
	}
	return o.residual(b, name, "2", x, scaled, drop, o.dense(b, name+".mlp.fc2", y, c, !o.V2))
}

// norm normalises images, or pixels and rows.
func (o MetaFormer) norm(b layer, name string, x *G.Node) *G.Node {
	switch {
	case b.Err() != nil:
		return nil
	case !o.Pools:
		return b.pixelScale(name, x)
	case !o.V2:
		return b.GroupNorm(name, x, 1, groupEps)
	}
	weight, zero := b.scaleParams(name, x.Shape()[1])
	return b.Apply(name, op.GroupNorm{Groups: 1, Eps: rowEps}, x, weight, zero)
}

// mix mixes tokens: of rows by attention, of images by pooling or a separable convolution.
func (o MetaFormer) mix(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := slices.Clone(x.Shape())
	switch c := s[1]; {
	case len(s) == 2:
		y := b.selfAttention(name+".attention", o.dense(b, name+".qkv", x, 3*c, false), b.Config().Batch,
			nn.Attention{Heads: c / o.Head})
		return o.dense(b, name+".proj", y, c, false)
	case o.Pools:
		return b.poolAround(name, x)
	default:
		x = b.starReLU(name+".act1", o.dense(b, name+".pwconv1", x, 2*c, false))
		x = b.conv(name+".dwconv", x, nn.Conv{Filters: 2 * c, Kernel: 7, Groups: 2 * c})
		return o.dense(b, name+".pwconv2", x, c, false)
	}
}

// poolAround subtracts images x from the means of 3×3 pixels.
func (b layer) poolAround(name string, x *G.Node) *G.Node {
	mean, by := b.meanWithin(name, x)
	return b.Map(name, expr.Arg(0).Mul(expr.Arg(1)).Sub(expr.Arg(2)), mean, by, x)
}

// dense adds a linear layer of rows, or a convolution 1×1 of images.
func (o MetaFormer) dense(b layer, name string, x *G.Node, out int, bias bool) *G.Node {
	switch {
	case b.Err() != nil:
		return nil
	case len(x.Shape()) == 4:
		return b.Conv(name, x, nn.Conv{Filters: out, Kernel: 1, Bias: bias})
	}
	return b.unbiased(name, x, out)
}

// starReLU is the scaled square of a ReLU plus a bias, both of which are trained.
func (b layer) starReLU(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	scale, bias := b.scalars(name, x.Shape()[1])
	return b.Map(name, expr.Arg(0).Max(expr.Const(0)).Square().Mul(expr.Arg(1)).Add(expr.Arg(2)), x, scale, bias)
}

// residual adds the branch y, the first or second of a block, to x.
func (o MetaFormer) residual(b layer, name, number string, x *G.Node, scaled bool, drop float64, y *G.Node) *G.Node {
	if o.LayerScale > 0 {
		y = b.channelScale(name+".layer_scale"+number, y, o.LayerScale)
	}
	if scaled {
		x = b.channelScale(name+".res_scale"+number, x, 1)
	}
	return b.rowResidual(name+".drop_path"+number, y, x, b.Config().Batch, drop)
}

// channelScale multiplies channels by trained factors that start as initial.
func (b layer) channelScale(name string, x *G.Node, initial float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	return b.Scale(name, x, b.vector(name+".scale", x.Shape()[1], initial))
}
