package zoo

import (
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name string
		drop float64
		net  EfficientFormerV2
	}{
		{"s0", 0, EfficientFormerV2{Channels: [4]int{32, 48, 96, 176}, Attention: 2,
			MLPRatios: [4]string{"44", "44", "433344", "4334"}}},
		{"s1", 0, EfficientFormerV2{Channels: [4]int{32, 48, 120, 224}, Attention: 2,
			MLPRatios: [4]string{"444", "444", "443333444", "443344"}}},
		{"s2", .02, EfficientFormerV2{Channels: [4]int{32, 64, 144, 288}, Attention: 4,
			MLPRatios: [4]string{"4444", "4444", "443333334444", "44333344"}}},
		{"l", .1, EfficientFormerV2{Channels: [4]int{40, 80, 192, 384}, Attention: 6,
			MLPRatios: [4]string{"44444", "44444", "444433333334444", "4443333444"}}},
	} {
		imageNet(nn.Architecture{
			Name:          "efficientformerv2_" + v.name,
			Family:        "efficientformer",
			Summary:       fmt.Sprintf("EfficientFormer V2-%s, with timm's names", strings.ToUpper(v.name)),
			Reference:     "Li et al., Rethinking vision transformers for MobileNet size and speed, 2023",
			DropPath:      v.drop,
			Resize:        235,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Heads:         []string{"head", "head_dist"},
			Init:          truncated(.02),
			Build:         v.net.Build,
		})
	}
}

// EfficientFormerV2 are the options of a net of inverted residuals, with attention in the last blocks of two stages.
type EfficientFormerV2 struct {
	Channels [4]int // of each stage, the first even; timm's embed_dims
	// MLPRatios have a digit for each block of a stage: channels of the hidden layer for each of the block; timm's depths
	// and mlp_ratios.
	MLPRatios [4]string
	Attention int // blocks of attention in each of the last two stages, their last ones; timm's num_vit
}

// Build adds the layers to b.
func (o EfficientFormerV2) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("EfficientFormerV2", o).least(1, "Channels").least(0, "Attention").
		that(o.Channels[0]%2 == 0, "Channels", "even in the first stage")
	all := 0
	for _, s := range o.MLPRatios {
		digits := s != "" && strings.Trim(s, "123456789") == ""
		b.options("EfficientFormerV2", o).that(digits, "MLPRatios", "digits from 1 to 9")
		all += len(s)
	}
	if b.Err() != nil {
		return nil
	}
	c, done := o.Channels[0], 0
	x = b.GELU("stem.conv1.act", b.biasedBN("stem.conv1", x, nn.Conv{Filters: c / 2, Kernel: 3, Stride: 2}))
	x = b.GELU("stem.conv2.act", b.biasedBN("stem.conv2", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2}))
	for i, ratios := range o.MLPRatios {
		if i > 0 {
			name, before := fmt.Sprintf("stages.%d.downsample", i), x
			x = b.biasedBN(name+".conv", x, nn.Conv{Filters: o.Channels[i], Kernel: 3, Stride: 2})
			if i == 3 {
				x = b.Add(name+".add", b.downAttention(name+".attn", before, o.Channels[i]), x)
			}
			c = o.Channels[i]
		}
		for j, ratio := range ratios {
			drop, name := b.Config().DropPathAt(done, all), fmt.Sprintf("stages.%d.blocks.%d", i, j)
			if i >= 2 && j >= len(ratios)-o.Attention {
				y := b.gammas(name+".ls1", b.talkingPixels(name+".token_mixer", x, 4-i), efficientFormerScale)
				x = b.Add(name+".add1", b.StochasticDepth(name+".drop_path1", y, drop), x)
			}
			wide, mlp := int(ratio-'0')*c, name+".mlp"
			y := b.GELU(mlp+".fc1.act", b.biasedBN(mlp+".fc1", x, nn.Conv{Filters: wide, Kernel: 1}))
			y = b.GELU(mlp+".mid.act", b.biasedBN(mlp+".mid", y, nn.Conv{Filters: wide, Kernel: 3, Groups: wide}))
			y = b.gammas(name+".ls2", b.biasedBN(mlp+".fc2", y, nn.Conv{Filters: c, Kernel: 1}), efficientFormerScale)
			x = b.Add(name+".add2", b.StochasticDepth(name+".drop_path2", y, drop), x)
			done++
		}
	}
	x = b.GlobalAvgPool("pool", b.BatchNorm("norm", x, 1))
	return b.twoHeads(b.Dropout("head_drop", x, b.Config().Dropout))
}

// biasedBN is a convolution with biases, and a normalisation.
func (b layer) biasedBN(name string, x *G.Node, c nn.Conv) *G.Node {
	c.Bias = true
	return b.bnConv(name, x, c, nil)
}

// talkingPixels is attention among the pixels of x, or those of the rows and columns of a stride, whose scores and
// weights are mixed among the heads: timm's Attention2d.
func (b layer) talkingPixels(name string, x *G.Node, stride int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	const heads, key, value = efficientFormerHeads, efficientFormerKey, efficientFormerValue
	s := x.Shape()
	n, c := s[0], s[1]
	if s[2]%stride > 0 || s[3]%stride > 0 {
		b.Fail(fmt.Errorf("layer %s: images of %d×%d pixels: height and width must be multiples of %d: choose an input size "+
			"that is a multiple of 32", name, s[2], s[3], stride))
		return nil
	}
	g := grid{s[2] / stride, s[3] / stride, 1}
	t := g.height * g.width
	bias := b.Reshape(name+".biases", b.distances(name, heads, g), 1, heads, t*t)
	if stride > 1 {
		x = b.biasedBN(name+".stride_conv", x, nn.Conv{Filters: c, Kernel: 3, Stride: stride, Groups: c})
	}
	q := b.biasedBN(name+".q", x, nn.Conv{Filters: heads * key, Kernel: 1})
	k := b.biasedBN(name+".k", x, nn.Conv{Filters: heads * key, Kernel: 1})
	v := b.biasedBN(name+".v", x, nn.Conv{Filters: heads * value, Kernel: 1})
	local := b.biasedBN(name+".v_local", v, nn.Conv{Filters: heads * value, Kernel: 3, Groups: heads * value})
	byHead := func(part string, x *G.Node) *G.Node { return b.byHead(name+part, b.rows(name+part, x), n, heads) }
	mix := func(part string, x *G.Node) *G.Node {
		return b.Conv(name+part, x, nn.Conv{Filters: heads, Kernel: 1, Bias: true})
	}
	scores := b.Reshape(name+".scores", b.MatMul(name+".products", byHead(".q", q), byHead(".k", k), true), n, heads, t*t)
	scores = b.Map(name+".biased", expr.Arg(0).Scale(1/math.Sqrt(key)).Add(expr.Arg(1)), scores, bias)
	w := mix(".talking_head1", b.Reshape(name+".pairs", scores, n, heads, t, t))
	w = mix(".talking_head2", b.Softmax(name+".softmax", w))
	y := b.MatMul(name+".mixed", b.Reshape(name+".weights", w, n*heads, t, t), byHead(".v", v), false)
	y = b.image(name, b.ofHeads(name+".joined", y, n), local)
	y = b.bilinear(name+".upsample", b.Add(name+".sum", y, local), stride*g.height, stride*g.width, false)
	return b.biasedBN(name+".proj", b.GELU(name+".act", y), nn.Conv{Filters: c, Kernel: 1})
}

// downAttention is attention of every second pixel in both directions to all: timm's Attention2dDownsample.
func (b layer) downAttention(name string, x *G.Node, out int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	const heads, key, value = efficientFormerHeads, efficientFormerKey / 2, efficientFormerValue / 2
	s := x.Shape()
	c := s[1]
	bias := b.distances(name, heads, grid{s[2], s[3], 2})
	q := b.Conv(name+".q.local", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2, Pad: 1, Groups: c, Bias: true})
	q = b.biasedBN(name+".q.proj", b.Add(name+".q.add", q, b.AvgPool(name+".q.pool", x, 1, 2, 0)),
		nn.Conv{Filters: heads * key, Kernel: 1})
	k := b.biasedBN(name+".k", x, nn.Conv{Filters: heads * key, Kernel: 1})
	v := b.biasedBN(name+".v", x, nn.Conv{Filters: heads * value, Kernel: 1})
	local := b.biasedBN(name+".v_local", v, nn.Conv{Filters: heads * value, Kernel: 3, Stride: 2, Groups: heads * value})
	y := b.Attention(name+".attention", b.rows(name+".q", q), b.rows(name+".k", k), b.rows(name+".v", v), s[0],
		nn.Attention{Heads: heads}, bias)
	y = b.Add(name+".add", b.image(name, y, local), local)
	return b.biasedBN(name+".proj", b.GELU(name+".act", y), nn.Conv{Filters: out, Kernel: 1})
}
